"""One rank of the pair that `spinloom doctor --mpi` starts: python mpi_pair_probe.py LIBRARY FOLDER.

Contract: needs no compiler, no header and nothing beside the standard library. It calls the MPI through
ctypes by the handles of its binary interface, so that a preloaded layer sees the calls. The two ranks try to
read each other's memory, then send each other vectors and compare every byte of the receive buffers, gaps
included. Each rank writes FOLDER/RANK.json.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
from pathlib import Path
from typing import Any

ROUNDS = 8
FACTS_BYTES = 1024
WORD = b"spinloom"
# Blocks, bytes of a block, bytes from block to block: of the sender and of the receiver; as many bytes.
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

    def number(self, name: str) -> int:
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

    def swap(
        self, out: Any, out_type: Any, out_count: int, into: Any, in_type: Any, in_count: int, peer: int
    ):
        self.call("Sendrecv", out, out_count, out_type, peer, 1, into, in_count, in_type, peer, 1,
                  self.handle(self.world), self.status)  # fmt: skip


def own_processes() -> str:
    """The namespace of the ids of this process; '' without /proc."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def facts_of_this_process(word: Any, memory: int) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "user": os.geteuid(),
        "processes": own_processes(),
        "machine": os.uname().nodename,
        "address": ctypes.addressof(word),
        "file": memory,
    }


def read_by_system_call(peer: dict[str, Any]) -> int:
    """0, or the error of process_vm_readv."""

    class Span(ctypes.Structure):
        _fields_ = (("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t))

    buffer = ctypes.create_string_buffer(len(WORD))
    here = Span(ctypes.addressof(buffer), len(WORD))
    there = Span(peer["address"], len(WORD))
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
    return 0 if buffer.raw == WORD else 5  # EIO: another process


def read_by_mapping(peer: dict[str, Any]) -> int:
    """0, or the error of mapping the other's memory, as the layer maps its heap."""
    try:
        file = os.open(f"/proc/{peer['pid']}/fd/{peer['file']}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            with mmap.mmap(file, len(WORD), prot=mmap.PROT_READ) as mapped:
                return 0 if mapped[:] == WORD else 5
        finally:
            os.close(file)
    except OSError as trouble:
        return trouble.errno or 5


def spread(packed: bytes, shape: tuple[int, int, int], gap: int) -> bytes:
    """Packed bytes as a vector lays them, with `gap` between its blocks."""
    blocks, length, stride = shape
    laid = bytearray([gap]) * (blocks * stride)
    for number in range(blocks):
        laid[number * stride : number * stride + length] = packed[number * length : (number + 1) * length]
    return bytes(laid)


def content(rank: int, number: int, size: int) -> bytes:
    """Bytes that no other message has in the same order."""
    return b"".join((rank << 56 | number << 32 | at).to_bytes(8, "little") for at in range(size // 8))


def exchange(mpi: Mpi, rank: int) -> tuple[int, int]:
    """Bytes compared, and those that were wrong."""
    compared = wrong = number = 0
    for own_shape, peer_shape in SHAPES:
        sent_type, received_type = mpi.vector(own_shape), mpi.vector(peer_shape)
        size = own_shape[0] * own_shape[1]
        # As large as heaps that peers map want them.
        out = ctypes.create_string_buffer(max(own_shape[0] * own_shape[2], 1 << 18))
        into = ctypes.create_string_buffer(max(peer_shape[0] * peer_shape[2], 1 << 18))
        for _ in range(ROUNDS):
            number += 1
            laid = spread(content(rank, number, size), own_shape, 0)
            ctypes.memmove(out, laid, len(laid))
            ctypes.memset(into, 0xEE, len(into))
            mpi.swap(out, sent_type, 1, into, received_type, 1, 1 - rank)
            expected = spread(content(1 - rank, number, size), peer_shape, 0xEE).ljust(len(into), b"\xee")
            compared += size
            if into.raw != expected:
                wrong += sum(a != b for a, b in zip(into.raw, expected, strict=True))
    return compared, wrong


def main(library: str, folder: str) -> None:
    mpi = Mpi(library)
    mpi.call("Init", None, None)
    rank, size = mpi.number("Comm_rank"), mpi.number("Comm_size")
    if size != 2:
        raise SystemExit(f"a job of 2 ranks has {size}: the launcher is of another MPI")
    word = ctypes.create_string_buffer(WORD)
    memory = os.memfd_create("spinloom-doctor")
    os.write(memory, WORD)
    own = json.dumps(facts_of_this_process(word, memory)).encode()
    peer_facts = ctypes.create_string_buffer(FACTS_BYTES)
    byte = mpi.handle(mpi.byte)
    packed = ctypes.create_string_buffer(own, FACTS_BYTES)
    mpi.swap(packed, byte, FACTS_BYTES, peer_facts, byte, FACTS_BYTES, 1 - rank)
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
    # Neither goes on before both have looked.
    mpi.swap(packed, byte, FACTS_BYTES, peer_facts, byte, FACTS_BYTES, 1 - rank)
    result["compared"], result["wrong"] = exchange(mpi, rank)
    Path(folder, f"{rank}.json").write_text(json.dumps(result), encoding="utf-8")
    mpi.call("Finalize")


if __name__ == "__main__":
    main(*sys.argv[1:])
