"""Access to the engine, the native module spinloom._core.

Contract: load() returns the module or raises Trouble('environment'). The engine offers
    check_type(text)            raises SpinloomError unless the text is a datatype
    describe(text) -> dict      sizes and bounds of a datatype in text form
    type_tree(text) -> dict     a datatype node by node; type_bounds(text) -> (lb, extent)
    oracle_pack(text, count, memory, base) -> bytes    packed by the plain type map
    Layout                      a committed datatype; layout/__init__.py is its public face
    explain(text, count) -> dict        blocks, normal form, passes, leaves, compact program, kernel
    line_walk(...) -> dict      cache lines and pages of a copy by the level that has them
    probe_copy(...) -> list     measured host times of a copy, bytes compared first
    run_cell(config) -> dict    one simulated message; see nics/sweep.py for its keys
        more keys: preloaded (packets wait on the NIC: adds processing_time_ps), interval_packets (packets a
        checkpoint, 0 by the rule), profile_handlers (adds function_cycles), slice_cycles
    run_send_cell(config) -> dict       one simulated message, sent under a strategy; sending.py
    share(config) -> Share      one NIC for several types; Share.receive(index) -> dict is one message
    mix(config) -> dict         messages of several types, some before their receive; mixes.py
    delivery(config) -> dict    one message, asking first or not, to a receive in time or late; deliveries.py
    run_handler(config) -> dict         messages to an entry with handlers; handler_runs.py has its keys
    describe_image(elf), disassemble_image(elf)        the contents of a handler image
    nic_bandwidth(profile, block_bytes, ...) -> dict    a clustered NIC's memories, L2 to the host
    read_trace(directory, rank) -> RankTrace    what a rank of a recorded program did; recorded.py
    run_torture(config, first, last) -> dict    seeds of a scenario against the oracle; torture.py
    read_goal(bytes), open_goal(path), goal_pattern(name, ranks, bytes) -> Schedule     of many ranks: run()
        takes what goal_model.py and goal_network.py read, run_loggopsim() the parameters of the dialect
    tensor(capsule) -> dict     address, shape and strides of a DLPack capsule
    DeviceMemory, gpu_pack(), gpu_unpack(), gpu_copy(), GpuPackPlan, GpuCopyPlan, GpuSet, gpu_naive_pack()
        arrays of a GPU; device.py is their public face
    GpuPair, GpuPairMove        GPUs of two processes; gpu.py is their public face
    gpu_program(text, count, unpacks) -> dict   kernel, launches and bytes touched of a message; needs no GPU
    gpu_devices() -> list, gpu_why_not() -> str, gpu_launches() -> int
    limits                      those of src/base/limits.hpp that this package needs, by name
    SpinloomError               the engine's exception: errors.Trouble
and releases the interpreter lock while it runs.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from spinloom.common.errors import Trouble


def load() -> ModuleType:
    try:
        return importlib.import_module("spinloom._core")
    except ImportError as error:
        raise Trouble(
            "environment",
            f"this installation has no engine (spinloom._core: {error}); "
            "build it with 'make setup' in the checkout or 'pip install .'",
        ) from None


def limit(name: str) -> int:
    """One of the engine's limits, by its name in src/base/limits.hpp."""
    return load().limits[name]


def available() -> bool:
    try:
        load()
    except Trouble:
        return False
    return True
