"""Control registers of an FPsPIN-like NIC, in the board's shape.

Made from data/nics/fpspin.rdl by tools/registers.py. Register i of an array is 4 * i bytes after its first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Register:
    path: str
    address: int
    count: int
    access: str  # kept, told, queue, command
    width: int
    reset: int
    guard: str  # writes are refused while the register of this path is 1
    about: str


@dataclass(frozen=True)
class Memory:
    host_offset: int
    nic_address: int
    size_bytes: int


RULE_SETS = 4
RULES = 4
CONTEXTS = 4
CLUSTERS = 2

REGISTERS_HOST_OFFSET = 0x800000
MEMORIES = {
    "handler_memory": Memory(0x0, 0x1C000000, 0x100000),
    "program_memory": Memory(0x400000, 0x1D000000, 0x8000),
}
GROUPS = {
    "cl": "handler processors",
    "stats": "what the NIC says of itself",
    "me": "matching engine",
    "her": "which contexts run handlers",
    "her_meta": "contexts: memory and handlers",
    "spinloom": "ours: activation, calls by the host (D4.7, 4.4.6 and 4.4.7)",
    "counts": "ours: what the engine counts (src/nic/frames/counts.hpp), the low 32 bits",
}
REGISTERS = {
    register.path: register
    for register in (
        Register(
            "cl/ctrl",
            0x0,
            2,
            "kept",
            32,
            0x0,
            "",
            "0: clusters that fetch, one bit each; 1: 1 holds processors and data path in reset",
        ),
        Register(
            "cl/fifo",
            0x8,
            1,
            "queue",
            32,
            0x0,
            "",
            "characters from handlers: cluster x 65536 + core x 256 + character; all ones: none",
        ),
        Register(
            "stats/cluster",
            0x1000,
            2,
            "told",
            32,
            0x0,
            "",
            "bits of clusters: 0 that ended a computation, 1 that are busy",
        ),
        Register("stats/mpq", 0x1008, 1, "told", 32, 0x0, "", "message queues that are full, one bit each"),
        Register(
            "stats/datapath",
            0x100C,
            2,
            "told",
            32,
            0x0,
            "",
            "0: frames that found no packet buffer; 1: the last error of outgoing DMA",
        ),
        Register("me/valid", 0x2000, 1, "kept", 1, 0x0, "", "1: the rules below are in force"),
        Register(
            "me/mode",
            0x2004,
            4,
            "kept",
            1,
            0x0,
            "me/valid",
            "0: all rules of the set but the last must hold; 1: one of these",
        ),
        Register("me/idx", 0x2014, 16, "kept", 32, 0x0, "me/valid", "which 32-bit word of the frame, from 0"),
        Register("me/mask", 0x2054, 16, "kept", 32, 0x0, "me/valid", "bits of the word that are looked at"),
        Register("me/start", 0x2094, 16, "kept", 32, 0x1, "me/valid", "the least masked word that matches"),
        Register("me/end", 0x20D4, 16, "kept", 32, 0x0, "me/valid", "the greatest masked word that matches"),
        Register(
            "her/valid",
            0x3000,
            1,
            "kept",
            1,
            0x0,
            "",
            "1: contexts are in force as they stand here and in her_meta",
        ),
        Register(
            "her/ctx_enabled",
            0x3004,
            4,
            "kept",
            1,
            0x0,
            "her/valid",
            "1: frames that the context's rule set matches run its handlers",
        ),
        Register(
            "her_meta/handler_mem_addr", 0x4000, 4, "kept", 32, 0x0, "her/valid", "NIC memory of the context"
        ),
        Register("her_meta/handler_mem_size", 0x4010, 4, "kept", 32, 0x0, "her/valid", "its bytes"),
        Register(
            "her_meta/host_mem_addr_0",
            0x4020,
            4,
            "kept",
            32,
            0x0,
            "her/valid",
            "host memory that handlers reach, low half of the address",
        ),
        Register("her_meta/host_mem_addr_1", 0x4030, 4, "kept", 32, 0x0, "her/valid", "high half"),
        Register("her_meta/host_mem_size", 0x4040, 4, "kept", 32, 0x0, "her/valid", "its bytes"),
        Register("her_meta/hh_addr", 0x4050, 4, "kept", 32, 0x0, "her/valid", "header handler"),
        Register("her_meta/hh_size", 0x4060, 4, "kept", 32, 0x0, "her/valid", "its bytes; 0: none"),
        Register("her_meta/ph_addr", 0x4070, 4, "kept", 32, 0x0, "her/valid", "packet handler"),
        Register("her_meta/ph_size", 0x4080, 4, "kept", 32, 0x0, "her/valid", "its bytes; 0: none"),
        Register("her_meta/th_addr", 0x4090, 4, "kept", 32, 0x0, "her/valid", "tail handler"),
        Register("her_meta/th_size", 0x40A0, 4, "kept", 32, 0x0, "her/valid", "its bytes; 0: none"),
        Register(
            "her_meta/scratchpad_0_addr",
            0x40B0,
            4,
            "kept",
            32,
            0x0,
            "her/valid",
            "scratchpad in cluster 0 (the board computes it)",
        ),
        Register("her_meta/scratchpad_0_size", 0x40C0, 4, "kept", 32, 0x0, "her/valid", "its bytes"),
        Register(
            "her_meta/scratchpad_1_addr",
            0x40D0,
            4,
            "kept",
            32,
            0x0,
            "her/valid",
            "scratchpad in cluster 1 (the board computes it)",
        ),
        Register("her_meta/scratchpad_1_size", 0x40E0, 4, "kept", 32, 0x0, "her/valid", "its bytes"),
        Register(
            "her_meta/scratchpad_2_addr", 0x40F0, 4, "kept", 32, 0x0, "her/valid", "scratchpad in cluster 2"
        ),
        Register("her_meta/scratchpad_2_size", 0x4100, 4, "kept", 32, 0x0, "her/valid", "its bytes"),
        Register(
            "her_meta/scratchpad_3_addr", 0x4110, 4, "kept", 32, 0x0, "her/valid", "scratchpad in cluster 3"
        ),
        Register("her_meta/scratchpad_3_size", 0x4120, 4, "kept", 32, 0x0, "her/valid", "its bytes"),
        Register(
            "spinloom/core_mask",
            0x5000,
            2,
            "kept",
            8,
            0xFF,
            "",
            "cores of the cluster that take handlers, one bit each",
        ),
        Register(
            "spinloom/active",
            0x5008,
            4,
            "kept",
            1,
            0x1,
            "",
            "0: the context is installed, but frames do not reach it yet",
        ),
        Register(
            "spinloom/init_addr",
            0x5018,
            4,
            "kept",
            32,
            0x0,
            "her/valid",
            "initialisation handler, runs once when her/valid becomes 1",
        ),
        Register("spinloom/init_size", 0x5028, 4, "kept", 32, 0x0, "her/valid", "its bytes; 0: none"),
        Register(
            "spinloom/init_state",
            0x5038,
            4,
            "told",
            32,
            0x0,
            "",
            "0: has not run; 1: runs; 2: has succeeded; 3: has failed",
        ),
        Register("spinloom/call_msg_id", 0x5048, 4, "kept", 32, 0x0, "", "the message of such a run"),
        Register(
            "spinloom/call",
            0x5058,
            4,
            "command",
            32,
            0x0,
            "",
            "writing 1 runs the packet handler without a frame; reads how often that was done",
        ),
        Register("counts/received", 0x6000, 1, "told", 32, 0x0, "", "frames received"),
        Register("counts/bypassed", 0x6004, 1, "told", 32, 0x0, "", "bypassed"),
        Register("counts/matched", 0x6008, 1, "told", 32, 0x0, "", "matched"),
        Register("counts/runts", 0x600C, 1, "told", 32, 0x0, "", "runts"),
        Register("counts/oversize", 0x6010, 1, "told", 32, 0x0, "", "oversize"),
        Register("counts/inactive", 0x6014, 1, "told", 32, 0x0, "", "context inactive"),
        Register("counts/dropped_full", 0x6018, 1, "told", 32, 0x0, "", "dropped: packet memory full"),
        Register("counts/spilled", 0x601C, 1, "told", 32, 0x0, "", "spilled to the host"),
        Register("counts/messages", 0x6020, 1, "told", 32, 0x0, "", "messages begun"),
        Register("counts/messages_done", 0x6024, 1, "told", 32, 0x0, "", "messages done"),
        Register("counts/messages_abandoned", 0x6028, 1, "told", 32, 0x0, "", "messages abandoned"),
        Register("counts/frames_done", 0x602C, 1, "told", 32, 0x0, "", "frames processed"),
        Register("counts/handler_dropped", 0x6030, 1, "told", 32, 0x0, "", "dropped by handlers"),
        Register("counts/handler_to_host", 0x6034, 1, "told", 32, 0x0, "", "passed to the host by handlers"),
        Register("counts/handler_failed", 0x6038, 1, "told", 32, 0x0, "", "failed in handlers"),
        Register("counts/handler_faults", 0x603C, 1, "told", 32, 0x0, "", "handler faults"),
        Register("counts/to_memory", 0x6040, 1, "told", 32, 0x0, "", "written to host memory"),
        Register("counts/memory_full", 0x6044, 1, "told", 32, 0x0, "", "dropped: host memory full"),
        Register("counts/sent_by_handlers", 0x6048, 1, "told", 32, 0x0, "", "sent by handlers"),
        Register("counts/sent_by_host", 0x604C, 1, "told", 32, 0x0, "", "sent by the host"),
        Register("counts/host_refused", 0x6050, 1, "told", 32, 0x0, "", "refused from the host"),
        Register("counts/host_runs", 0x6054, 1, "told", 32, 0x0, "", "handlers run by the host"),
        Register("counts/mails", 0x6058, 1, "told", 32, 0x0, "", "mails"),
        Register("counts/mails_refused", 0x605C, 1, "told", 32, 0x0, "", "mails refused"),
    )
}
