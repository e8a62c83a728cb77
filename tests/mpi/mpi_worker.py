"""Asks one MPI library about datatypes: lines of JSON in, one line of JSON out for each.

Run as a script in a process of its own, for a process has one MPI library. The first line out is the
library's version. A question is {"text", "count"}; its answer has size, bounds and true bounds, what the
library said of bounds before they were set (padded), the packed bytes of `count` elements and the text read
back from the datatype; or the library's error.
"""

from __future__ import annotations

import json
import re
import sys

from spinloom.common import core
from spinloom.layout import mpi_types

GUARD = 16


def memory_of(length: int) -> bytes:
    """Bytes that differ from their neighbours and from those a power of two away."""
    return bytes((at * 131 + at // 251) % 256 for at in range(length))


def place(tree: dict, count: int) -> tuple[int, int]:
    """The buffer address in a memory that holds `count` elements and guards, and the memory's length."""
    if count == 0 or tree["size"] == 0:
        return GUARD, 2 * GUARD
    way = (count - 1) * tree["extent"]
    base = GUARD - min(0, tree["true_lb"] + min(0, way))
    return base, base + max(0, tree["true_lb"] + tree["true_extent"] + max(0, way)) + GUARD


def pack(lib, datatype, count: int, base: int, length: int) -> bytes:
    """The packed bytes of `count` elements at memory[base], whatever their bounds are."""
    placed = datatype.Create_hindexed([count], [base])
    message = placed.Create_resized(0, length).Commit()  # MPI_Pack takes whole extents of a buffer
    packed = bytearray(message.Get_size())
    if packed:
        message.Pack(memory_of(length), packed, 0, lib.COMM_SELF)
    message.Free()
    placed.Free()
    return bytes(packed)


def answer(lib, text: str, count: int) -> dict:
    tree = core.load().type_tree(text)
    padded: list[dict] = []

    def note(node: dict, bounds: tuple[int, int]) -> None:
        ours = [node["lb"], node["extent"]]
        padded.append(
            {"constructor": node["constructor"], "size": node["size"], "ours": ours, "theirs": bounds}
        )

    datatype = mpi_types.build(tree, note)
    base, length = place(tree, count)
    facts = {
        "size": datatype.Get_size(),
        "bounds": datatype.Get_extent(),
        "true_bounds": datatype.Get_true_extent(),
        "padded": padded,
        "packed": pack(lib, datatype, count, base, length).hex(),
        "text": mpi_types.from_mpi(datatype),
    }
    if not datatype.is_predefined:
        datatype.Free()
    return facts


def version_of(lib) -> str:
    """For example "MPICH 5.0.2"."""
    text = lib.Get_library_version()
    name = "MPICH" if "MPICH" in text else "Open MPI" if "Open MPI" in text else text.split()[0]
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return f"{name} {found.group()}" if found else name


def main() -> None:
    lib = mpi_types.mpi()
    print(json.dumps(version_of(lib)), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            told = answer(lib, question["text"], question["count"])
        except lib.Exception as why:
            told = {"error": why.Get_error_string()}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
