"""One rank of the pair that `spinloom doctor --mpi` starts: python mpi_pair_probe.py LIBRARY FOLDER.

Contract: needs no compiler, no header and nothing beside the standard library. It calls the MPI through
ctypes by the handles of its binary interface, so that a preloaded layer sees the calls. The two ranks try to
read each other's memory, then send each other vectors and compare every byte of the receive buffers, gaps
included. Each rank writes FOLDER/RANK.json.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import sys
from pathlib import Path
from typing import Any

ROUNDS = 8
FACTS_BYTES = 1024
PATTERN = b"spinloom"
# The vector that a rank sends and the one that it receives, with the same number of bytes: blocks, bytes of a
# block, bytes from block to block.
SHAPES = (((128, 512, 1024), (64, 1024, 1536)), ((4096, 8, 64), (2048, 16, 48)))


class Mpi:
    """The calls that the pair needs. Handles: numbers in MPICH's interface, addresses in the others."""

    def __init__(self, library: str) -> None:
        loaded = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self.calls = ctypes.CDLL(None)  # a preloaded layer comes first
        self.handle: Any = ctypes.c_void_p
        if hasattr(loaded, "ompi_mpi_comm_world"):
            self.abi = "openmpi"
            names = ("ompi_mpi_comm_world", "ompi_mpi_byte")
            self.world, self.byte = (ctypes.addressof(ctypes.c_char.in_dll(loaded, name)) for name in names)
        elif Path(library).name.startswith("libmpi_abi"):
            self.abi, self.world, self.byte = "standard", 0x101, 0x247
        else:
            self.abi, self.world, self.byte, self.handle = "mpich", 0x44000000, 0x4C00010D, ctypes.c_int
        self.status = ctypes.create_string_buffer(128)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.calls, f"MPI_{name}")(*arguments)
        if code != 0:
            raise SystemExit(f"MPI_{name} returns {code}")

    def query_world(self, name: str) -> int:
        value = ctypes.c_int()
        self.call(name, self.handle(self.world), ctypes.byref(value))
        return value.value

    def version(self) -> str:
        text = ctypes.create_string_buffer(8192)
        length = ctypes.c_int()
        self.call("Get_library_version", text, ctypes.byref(length))
        return text.value.decode(errors="replace")

    def vector(self, shape: tuple[int, int, int]) -> Any:
        datatype = self.handle()
        self.call("Type_vector", *shape, self.handle(self.byte), ctypes.byref(datatype))
        self.call("Type_commit", ctypes.byref(datatype))
        return datatype

    def sendrecv(
        self, out: Any, out_type: Any, out_count: int, into: Any, in_type: Any, in_count: int, peer: int
    ):
        self.call("Sendrecv", out, out_count, out_type, peer, 1, into, in_count, in_type, peer, 1,
                  self.handle(self.world), self.status)  # fmt: skip


def pid_namespace() -> str:
    """Returns the name of this process's PID namespace; '' without /proc."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def facts_of_this_process(pattern: Any, memory_fd: int) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "user": os.geteuid(),
        "processes": pid_namespace(),
        "machine": os.uname().nodename,
        "address": ctypes.addressof(pattern),
        "file": memory_fd,
    }


def read_by_system_call(peer: dict[str, Any]) -> int:
    """Returns 0, or the errno of process_vm_readv; EIO if the bytes that were read are not the peer's."""

    class Span(ctypes.Structure):
        _fields_ = (("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t))

    buffer = ctypes.create_string_buffer(len(PATTERN))
    here = Span(ctypes.addressof(buffer), len(PATTERN))
    there = Span(peer["address"], len(PATTERN))
    libc = ctypes.CDLL(None, use_errno=True)
    read = libc.process_vm_readv(
        peer["pid"],
        ctypes.byref(here),
        ctypes.c_ulong(1),
        ctypes.byref(there),
        ctypes.c_ulong(1),
        ctypes.c_ulong(0),
    )
    if read < 0:
        return ctypes.get_errno()
    return 0 if buffer.raw == PATTERN else errno.EIO  # the bytes of another process


def read_by_mapping(peer: dict[str, Any]) -> int:
    """Maps the peer's file as the layer maps a peer's heap. Returns 0 or the errno; EIO if the bytes are not
    the peer's."""
    try:
        descriptor = os.open(f"/proc/{peer['pid']}/fd/{peer['file']}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with mmap.mmap(descriptor, len(PATTERN), prot=mmap.PROT_READ) as mapped:
                return 0 if mapped[:] == PATTERN else errno.EIO
        finally:
            os.close(descriptor)
    except OSError as trouble:
        return trouble.errno or errno.EIO


def unpacked(packed: bytes, shape: tuple[int, int, int], gap: int) -> bytes:
    """Returns the memory of a vector that holds the packed bytes; the bytes of its gaps are `gap`."""
    blocks, length, stride = shape
    memory = bytearray([gap]) * (blocks * stride)
    for block in range(blocks):
        memory[block * stride : block * stride + length] = packed[block * length : (block + 1) * length]
    return bytes(memory)


def content(rank: int, message: int, size_bytes: int) -> bytes:
    """Returns the packed bytes of a message, which differ from those of every other message."""
    return b"".join(
        (rank << 56 | message << 32 | word).to_bytes(8, "little") for word in range(size_bytes // 8)
    )


def exchange(mpi: Mpi, rank: int) -> tuple[int, int]:
    """Returns how many packed bytes the compared messages had, and how many bytes of the receive buffers,
    gaps included, were wrong."""
    compared = wrong = message = 0
    for sent_shape, received_shape in SHAPES:
        sent_type, received_type = mpi.vector(sent_shape), mpi.vector(received_shape)
        size_bytes = sent_shape[0] * sent_shape[1]
        # Blocks of 64 KiB or more come from the heap that peers map, if it is preloaded: these are longer.
        send_buffer = ctypes.create_string_buffer(max(sent_shape[0] * sent_shape[2], 1 << 18))
        receive_buffer = ctypes.create_string_buffer(max(received_shape[0] * received_shape[2], 1 << 18))
        for _ in range(ROUNDS):
            message += 1
            sent_memory = unpacked(content(rank, message, size_bytes), sent_shape, 0)
            ctypes.memmove(send_buffer, sent_memory, len(sent_memory))
            ctypes.memset(receive_buffer, 0xEE, len(receive_buffer))
            mpi.sendrecv(send_buffer, sent_type, 1, receive_buffer, received_type, 1, 1 - rank)
            expected = unpacked(content(1 - rank, message, size_bytes), received_shape, 0xEE).ljust(
                len(receive_buffer), b"\xee"
            )
            compared += size_bytes
            if receive_buffer.raw != expected:
                wrong += sum(a != b for a, b in zip(receive_buffer.raw, expected, strict=True))
    return compared, wrong


def main(library: str, folder: str) -> None:
    mpi = Mpi(library)
    mpi.call("Init", None, None)
    rank, size = mpi.query_world("Comm_rank"), mpi.query_world("Comm_size")
    if size != 2:
        raise SystemExit(f"a job of 2 ranks has {size}: the launcher is of another MPI")
    pattern = ctypes.create_string_buffer(PATTERN)
    memory_fd = os.memfd_create("spinloom-doctor")
    os.write(memory_fd, PATTERN)
    own = json.dumps(facts_of_this_process(pattern, memory_fd)).encode()
    peer_facts = ctypes.create_string_buffer(FACTS_BYTES)
    byte = mpi.handle(mpi.byte)
    packed = ctypes.create_string_buffer(own, FACTS_BYTES)
    mpi.sendrecv(packed, byte, FACTS_BYTES, peer_facts, byte, FACTS_BYTES, 1 - rank)
    peer = json.loads(peer_facts.value)
    result = {
        "rank": rank,
        "abi": mpi.abi,
        "version": mpi.version(),
        "own": json.loads(own),
        "peer": peer,
        "mapping": read_by_mapping(peer),
        "system_call": read_by_system_call(peer),
    }
    # Neither rank goes on before both have tried to read the other's memory.
    mpi.sendrecv(packed, byte, FACTS_BYTES, peer_facts, byte, FACTS_BYTES, 1 - rank)
    result["compared"], result["wrong"] = exchange(mpi, rank)
    Path(folder, f"{rank}.json").write_text(json.dumps(result), encoding="utf-8")
    mpi.call("Finalize")


if __name__ == "__main__":
    main(*sys.argv[1:])
