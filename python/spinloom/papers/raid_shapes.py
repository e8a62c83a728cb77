"""The pieces of a storage request on the data nodes of a RAID-5 array.

Contract: shape(address, size, stripe) are the request's pieces, (offset in the node's block, bytes), from the
data node of its first byte on; a node with 0 bytes does not hear of it. Byte a of an ASU is in stripe unit
a // stripe, units go around over the four data nodes, and the parity is on a node of its own. A stripe of 0
cuts every request into four equal pieces, as the SC'17 sPIN paper's figure 7c does.
Requests of the same shape take the same time: which node is the first makes no difference, and offsets matter
only by how they lie in 4 KiB, the ranges that the parity's handlers lock.
"""

from __future__ import annotations

from functools import lru_cache

DATA_NODES = 4
RANGE_BYTES = 4096  # handlers/raid.h: RAID_PACKET_BYTES

Shape = tuple[tuple[int, int], ...]


def period_bytes(stripe: int) -> int:
    """Addresses that are this far apart have the same shape."""
    if stripe % RANGE_BYTES:
        raise ValueError(f"a stripe unit of {stripe} B is no multiple of {RANGE_BYTES} B")
    return DATA_NODES * (stripe or RANGE_BYTES)


@lru_cache(maxsize=1 << 16)
def shape(address: int, size_bytes: int, stripe: int) -> Shape:
    pieces = striped(address, size_bytes, stripe) if stripe else quartered(address, size_bytes)
    touched = [offset for offset, size in pieces if size]
    base = min(touched) // RANGE_BYTES * RANGE_BYTES
    return tuple((offset - base, size) if size else (0, 0) for offset, size in pieces)


def quartered(address: int, size_bytes: int) -> list[tuple[int, int]]:
    each = -(-size_bytes // DATA_NODES)
    starts = [min(size_bytes, node * each) for node in range(DATA_NODES)]
    return [(address // DATA_NODES, min(each, size_bytes - start)) for start in starts]


def striped(address: int, size_bytes: int, stripe: int) -> list[tuple[int, int]]:
    """A node's units of successive rows lie one behind the other: its part of a request is in one piece."""
    first = address // stripe
    pieces = [(0, 0)] * DATA_NODES
    end = address + size_bytes
    for unit in range(first, -(-end // stripe)):
        start, stop = max(address, unit * stripe), min(end, (unit + 1) * stripe)
        node = (unit - first) % DATA_NODES
        offset, size = pieces[node]
        if not size:
            offset = unit // DATA_NODES * stripe + start % stripe
        pieces[node] = (offset, size + stop - start)
    return pieces
