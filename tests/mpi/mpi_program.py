"""A datatype as a line of integers, for mpi_peer.c; and the C compilers of MPI libraries."""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path

from type_trees import PRIMITIVES

SOURCE = Path(__file__).with_name("mpi_peer.c")
CONSTRUCTORS = (
    "primitive contig vector hvector indexed hindexed idxblock hidxblock struct resized subarray darray dup"
)
NUMBER = {name: number for number, name in enumerate(CONSTRUCTORS.split())}
DISTRIBUTIONS = ("none", "block", "cyclic")


def counted(values: list[int]) -> list[int]:
    return [len(values), *values]


def program(tree: dict) -> list[int]:
    """Constructor, lower bound, extent, arguments, children."""
    return [
        NUMBER[tree["constructor"]],
        tree["lb"],
        tree["extent"],
        *arguments(tree),
        *(number for child in tree.get("children", []) for number in program(child)),
    ]


def arguments(tree: dict) -> list[int]:
    match tree["constructor"]:
        case "primitive":
            return [PRIMITIVES.index(tree["name"])]
        case "contig":
            return [tree["count"]]
        case "vector" | "hvector":
            return [tree["count"], tree["block_length"], tree["stride"]]
        case "indexed" | "hindexed" | "struct":
            return [*counted(tree["block_lengths"]), *tree["displacements"]]
        case "idxblock" | "hidxblock":
            return [tree["block_length"], *counted(tree["displacements"])]
        case "resized":
            return [tree["lb"], tree["extent"]]
        case "subarray":
            lists = (tree["sizes"], tree["subsizes"], tree["starts"])
            return [*(number for each in lists for number in counted(each)), int(tree["order"] == "C")]
        case "darray":
            distributions = [DISTRIBUTIONS.index(name) for name in tree["distributions"]]
            given = [-1 if argument is None else argument for argument in tree["arguments"]]
            lists = (tree["sizes"], distributions, given, tree["grid"])
            numbers = [number for each in lists for number in counted(each)]
            return [tree["processes"], tree["rank"], *numbers, int(tree["order"] == "C")]
    return []


@functools.cache
def compilers() -> tuple[str, ...]:
    """MPI compiler wrappers, each real one once."""
    names = [f"{sys.prefix}/bin/mpicc", "mpicc", "mpicc.mpich", "mpicc.openmpi"]
    paths = [path for name in names if (path := shutil.which(name))]
    return tuple({str(Path(path).resolve()): path for path in paths}.values())
