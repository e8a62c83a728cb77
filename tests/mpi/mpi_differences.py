"""The differences between MPI libraries and the plain type map: docs/mpi-differences.md.

    python tests/mpi/mpi_differences.py            compares the page with the libraries of this machine
    python tests/mpi/mpi_differences.py --update   writes the page again; rows of absent libraries stay

Each Quirk is a cause with examples and a rule that says which other types it may touch; tests/mpi/test_mpi.py
lets a random type differ only where a quirk of the library explains it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # tests/, when this runs as a command

from mpi_libraries import differences, libraries

UPDATE = "update it with: python tests/mpi/mpi_differences.py --update"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "mpi-differences.md"
Tree = dict


def nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in tree.get("children", []):
        yield from nodes(child)


def holds_an_empty_type(tree: Tree) -> bool:
    return any(node["size"] == 0 for node in nodes(tree))


def steps_back(tree: Tree) -> bool:
    """Some elements follow each other without an advance."""
    return any(node["size"] > 0 and node["extent"] <= 0 for node in nodes(tree))


def holds_a_cyclic_darray(tree: Tree) -> bool:
    return any("cyclic" in node.get("distributions", []) for node in nodes(tree))


def binds_a_part(tree: Tree) -> bool:
    """A struct has a member whose bounds were set and one whose bounds were not."""
    return any(node["constructor"] == "struct" and len(node["children"]) > 1 for node in nodes(tree))


def overlaps_or_steps_by_parts(tree: Tree) -> bool:
    """Some blocks overlap or step back, or lie apart by no multiple of an element's size or extent."""
    if any(node["constructor"] == "vector" and node["stride"] < node["block_length"] for node in nodes(tree)):
        return True
    sizes = [node["size"] for node in nodes(tree) if node["constructor"] == "primitive"]
    sizes += [abs(node["extent"]) for node in nodes(tree) if node["extent"] != 0]
    steps = [node["stride"] for node in nodes(tree) if node["constructor"] == "hvector"]
    steps += [node["extent"] for node in nodes(tree) if node["constructor"] == "resized"]
    for node in nodes(tree):
        if node["constructor"] in ("hindexed", "hidxblock", "struct"):
            steps += node["displacements"]
    return any(step % size for step in steps for size in sizes)


def anywhere(_tree: Tree) -> bool:
    return True


@dataclass(frozen=True)
class Quirk:
    title: str
    remark: str
    library: str  # the version begins so
    kinds: tuple[str, ...]  # kinds of mpi_libraries.differences
    touches: Callable[[Tree], bool]
    examples: tuple[tuple[str, int], ...]  # text, count


QUIRKS = (
    Quirk(
        "Extents are padded for alignment",
        "Permitted: the standard's epsilon (MPI 4.1, section 5.1). MPICH pads structs, Open MPI every type. "
        "Spinloom never pads; its `to_mpi` sets the bounds.",
        "",
        ("padded",),
        anywhere,
        (("struct([(0B, double), (8B, char)])", 1), ("hvector(2, 1, 51B, int)", 1)),
    ),
    Quirk(
        "Bounds of types without data",
        "A type map without entries has bounds 0 unless a resized, subarray or darray in it sets them, "
        "and no true bounds. The libraries let blocks of length 0 count, forget the bounds that an empty "
        "part has set, or give the limits of an integer.",
        "",
        ("padded", "other bounds", "true bounds"),
        holds_an_empty_type,
        (
            ("idxblock(0, [2], byte)", 1),
            ("vector(3, 0, 4, float)", 1),
            ("contig(3, resized(0B, 16B, contig(0, int)))", 1),
            ("darray(3, 2, [1], [cyclic], [2], [3], F, int)", 1),
        ),
    ),
    Quirk(
        "Set bounds of some members",
        "Wrong: where an entry of a type map has bounds that were set (resized, subarray, darray), only "
        "such bounds count (MPI 4.1, section 5.1.6).",
        "MPICH",
        ("other bounds", "padded"),
        binds_a_part,
        (("struct([(0B, resized(0B, 4B, int)), (100B, double)])", 1),),
    ),
    Quirk(
        "A distributed array of an empty type is refused",
        "Wrong: nothing in MPI_Type_create_darray asks for data in the element.",
        "Open MPI",
        ("error",),
        holds_an_empty_type,
        (("darray(1, 0, [4], [none], [default], [1], C, contig(0, int))", 1),),
    ),
    Quirk(
        "An empty member ends the process",
        "Wrong: MPI_Type_commit or MPI_Pack divides by the zero bytes of a struct's member (signal 8).",
        "MPICH",
        ("error",),
        holds_an_empty_type,
        (("struct([(0B, int), (8B, vector(2, 0, 5, vector(2, 1, 2, int)))])", 1),),
    ),
    Quirk(
        "Elements that do not advance are read from beyond the buffer",
        "Wrong: with an extent of 0 or less, MPI_Pack gives bytes that the type map does not name.",
        "MPICH",
        ("packed",),
        steps_back,
        (
            ("contig(2, hidxblock(1, [174B], resized(0B, -54B, short)))", 2),
            ("contig(2, resized(12B, -47B, hvector(3, 1, 10B, int)))", 3),
        ),
    ),
    Quirk(
        "True bounds of cyclic distributions",
        "Wrong where the block of a cyclic distribution is longer than the dimension: what precedes the data "
        "counts as data.",
        "MPICH",
        ("true bounds",),
        holds_a_cyclic_darray,
        (
            ("darray(3, 2, [6, 2], [cyclic, cyclic], [1, 3], [3, 1], F, float)", 1),
            ("darray(1, 0, [2], [cyclic], [3], [1], C, hidxblock(1, [16B], double))", 1),
        ),
    ),
    Quirk(
        "Strides shorter than a block, or no multiple of the primitive",
        "Wrong: blocks that step back by their length or less, and in 5.0 16-byte primitives that are not a "
        "multiple of 16 bytes apart, are packed from other places than the type map says.",
        "Open MPI",
        ("packed", "other bounds", "true bounds"),
        overlaps_or_steps_by_parts,
        (
            ("hvector(2, 1, -1B, int)", 1),
            ("vector(3, 1, -1, byte)", 1),
            ("contig(2, resized(0B, 24B, c_double_complex))", 1),
            ("hidxblock(1, [77B, -43B], c_double_complex)", 1),
        ),
    ),
)


def explained(version: str, tree: Tree, kind: str) -> bool:
    return any(
        version.startswith(quirk.library) and kind in quirk.kinds and quirk.touches(tree) for quirk in QUIRKS
    )


Row = tuple[str, str, str]  # datatype, library, what it says


def observe(quirk: Quirk) -> list[Row]:
    """Returns the answers of this machine's libraries to the examples."""
    rows = []
    for library in libraries():
        for (text, count), told in zip(quirk.examples, library.ask(list(quirk.examples)), strict=True):
            said = "; ".join(differences(text, count, told).values())
            rows.append(
                (f"{count} x {text}" if count > 1 else text, library.version, said or "as the type map")
            )
    return rows


def read_page() -> dict[str, list[Row]]:
    """The rows of the page, by title."""
    rows: dict[str, list[Row]] = {}
    title = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []:
        if line.startswith("## "):
            title = line[3:]
        elif line.startswith("| `"):
            text, library, said = (cell.strip() for cell in line.strip("|").split("|"))
            rows.setdefault(title, []).append((text.strip("`"), library, said))
    return rows


def merged(quirk: Quirk, known: list[Row], observed: list[Row]) -> list[Row]:
    """The observed rows and those of the page whose library is not here, in the order of the examples."""
    here = {library for _, library, _ in observed}
    texts = [f"{count} x {text}" if count > 1 else text for text, count in quirk.examples]
    kept = [row for row in known if row[1] not in here and row[0] in texts]
    return sorted(kept + observed, key=lambda row: (texts.index(row[0]), row[1]))


HEADER = """# Where MPI libraries differ from the type map

Spinloom's oracle walks the type map of the MPI standard (MPI 4.1, section 5.1). `tests/mpi/test_mpi.py`
compares random datatypes with every MPI library that it finds: size, bounds, true bounds, packed bytes.
They agree except for the causes below. `python tests/mpi/mpi_differences.py --update` makes the tables, and
the tests check them on each library that is present. Bounds are in bytes, as [lower bound, extent].
"""


def page() -> str:
    known = read_page()
    parts = [HEADER]
    for quirk in QUIRKS:
        rows = merged(quirk, known.get(quirk.title, []), observe(quirk))
        parts.append(
            f"\n## {quirk.title}\n\n{quirk.remark}\n\n| datatype | library | it says |\n|---|---|---|\n"
        )
        parts += [f"| `{text}` | {library} | {said} |\n" for text, library, said in rows]
    return "".join(parts)


def main() -> int:
    new = page()
    if "--update" in sys.argv:
        PAGE.write_text(new, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != new:
        print(f"{PAGE} is not what the libraries say; {UPDATE}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
