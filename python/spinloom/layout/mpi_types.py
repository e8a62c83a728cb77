"""Datatypes of an MPI library and Spinloom's text form, both ways, through mpi4py.

mpi4py is imported when a function is called, never before; its absence is a Trouble with code
"environment". The classic and the large-count constructors are chosen by mpi4py; an MPI library without the
latter refuses numbers beyond 2^31 with its own exception.

Bounds. The MPI standard lets a library pad an extent for alignment (its epsilon, MPI 4.1 section 5.1);
Spinloom never does. `to_mpi` therefore sets the bounds of each type that a library pads with
MPI_Type_create_resized, and `from_mpi` writes the library's bounds of a type as `resized(...)`
if they differ from the plain rule. So size, bounds and packed bytes are the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from spinloom.common import core
from spinloom.common.errors import Trouble

if TYPE_CHECKING:
    from mpi4py import MPI

Tree = dict[str, Any]

# Our names that differ from the MPI name in lower case, each with the member of mpi4py.MPI.
_MPI_NAMES = {"float_complex": "C_FLOAT_COMPLEX", "long_long_int": "LONG_LONG"}
_NAMES = (
    "byte packed char signed_char unsigned_char wchar short unsigned_short int unsigned long "
    "unsigned_long long_long unsigned_long_long int8_t int16_t int32_t int64_t uint8_t uint16_t "
    "uint32_t uint64_t float double long_double c_bool c_complex c_double_complex "
    "c_long_double_complex aint offset count character logical integer real double_precision complex "
    "double_complex integer1 integer2 integer4 integer8 real4 real8 complex8 complex16"
)
# The structs of the pair types for reductions.
_PAIRS = {
    "FLOAT_INT": ("float", 4),
    "DOUBLE_INT": ("double", 8),
    "LONG_INT": ("long", 8),
    "TWOINT": ("int", 4),
    "SHORT_INT": ("short", 4),
    "LONG_DOUBLE_INT": ("long_double", 16),
}


def mpi() -> Any:
    """The module mpi4py.MPI, or a Trouble that says how to get it."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise Trouble(
            "environment", f"this needs mpi4py and an MPI library: pip install mpi4py mpich ({error})"
        ) from error
    return MPI


def to_mpi(text: str) -> MPI.Datatype:
    """The committed MPI datatype of a text form; the caller frees it.

    A primitive gives a duplicate of the predefined type, so that every result may be freed.
    """
    datatype = build(core.load().type_tree(text))
    return (datatype.Dup() if datatype.is_predefined else datatype).Commit()


Bounds = tuple[int, int]  # lower bound, extent, in bytes
OnBounds = Callable[[Tree, Bounds], None]


def build(tree: Tree, on_bounds: OnBounds | None = None) -> MPI.Datatype:
    """The uncommitted MPI datatype of a tree (`_core.type_tree`), with the tree's bounds at every level.

    on_bounds(node, (lb, extent)) gets the MPI library's bounds of a node if they differ from the tree's
    own; the children of that node have the tree's bounds already.
    """
    lib = mpi()
    children = [build(child, on_bounds) for child in tree.get("children", [])]
    datatype = _construct(lib, tree, children)
    _free(children)
    lb, extent = datatype.Get_extent()
    if (lb, extent) == (tree["lb"], tree["extent"]):
        return datatype
    if on_bounds is not None:
        on_bounds(tree, (lb, extent))
    fixed = datatype.Create_resized(tree["lb"], tree["extent"])
    _free([datatype])
    return fixed


def _free(datatypes: list[Any]) -> None:
    for datatype in datatypes:
        if not datatype.is_predefined:
            datatype.Free()


def _construct(lib: Any, tree: Tree, children: list[Any]) -> Any:
    constructor = tree["constructor"]
    if constructor == "primitive":
        return _primitive(lib, tree["name"])
    if constructor == "struct":
        return lib.Datatype.Create_struct(tree["block_lengths"], tree["displacements"], children)
    (child,) = children
    if constructor == "contig":
        return child.Create_contiguous(tree["count"])
    if constructor in ("vector", "hvector"):
        make = child.Create_vector if constructor == "vector" else child.Create_hvector
        return make(tree["count"], tree["block_length"], tree["stride"])
    if constructor in ("indexed", "hindexed"):
        make = child.Create_indexed if constructor == "indexed" else child.Create_hindexed
        return make(tree["block_lengths"], tree["displacements"])
    if constructor in ("idxblock", "hidxblock"):
        make = child.Create_indexed_block if constructor == "idxblock" else child.Create_hindexed_block
        return make(tree["block_length"], tree["displacements"])
    if constructor == "resized":
        return child.Create_resized(tree["lb"], tree["extent"])
    if constructor == "dup":
        return child.Dup()
    order = lib.ORDER_C if tree["order"] == "C" else lib.ORDER_F
    if constructor == "subarray":
        return child.Create_subarray(tree["sizes"], tree["subsizes"], tree["starts"], order)
    default = lib.DISTRIBUTE_DFLT_DARG
    return child.Create_darray(
        tree["processes"],
        tree["rank"],
        tree["sizes"],
        [getattr(lib, f"DISTRIBUTE_{name.upper()}") for name in tree["distributions"]],
        [default if argument is None else argument for argument in tree["arguments"]],
        tree["grid"],
        order,
    )


def _primitive(lib: Any, name: str) -> Any:
    datatype = getattr(lib, _MPI_NAMES.get(name, name.upper()), lib.DATATYPE_NULL)
    if datatype == lib.DATATYPE_NULL:
        raise Trouble("unsupported", f"this MPI library has no predefined type for '{name}'")
    return datatype


def from_mpi(datatype: MPI.Datatype) -> str:
    """The text form of an MPI datatype, by envelope and contents (classic and large-count)."""
    lib = mpi()
    if datatype == lib.DATATYPE_NULL:
        raise Trouble("invalid", "MPI_DATATYPE_NULL is no datatype")
    return _text(lib, datatype, bounded=False)


def _text(lib: Any, datatype: Any, *, bounded: bool) -> str:
    """`bounded`: a resized() around the type already sets its bounds."""
    base, combiner, contents = datatype.decode()
    if combiner == "NAMED":
        return _named(lib, datatype)
    if combiner == "STRUCT":
        members = contents["datatypes"]
        written = [
            f"({at}B, {length}, {_text(lib, member, bounded=False)})"
            for at, length, member in zip(
                contents["displacements"], contents["blocklengths"], members, strict=True
            )
        ]
        text = f"struct([{', '.join(written)}])"
    else:
        members = [base]
        child = _text(lib, base, bounded=combiner == "RESIZED")
        text = _derived(lib, combiner, contents, child)
    _free(members)
    lb, extent = datatype.Get_extent()
    if bounded or (lb, extent) == core.load().type_bounds(text):
        return text
    return f"resized({lb}B, {extent}B, {text})"


def _derived(lib: Any, combiner: str, contents: dict[str, Any], child: str) -> str:
    match combiner:
        case "DUP":
            return f"dup({child})"
        case "CONTIGUOUS":
            return f"contig({contents['count']}, {child})"
        case "VECTOR":
            return f"vector({contents['count']}, {contents['blocklength']}, {contents['stride']}, {child})"
        case "HVECTOR":
            return f"hvector({contents['count']}, {contents['blocklength']}, {contents['stride']}B, {child})"
        case "INDEXED" | "HINDEXED":
            unit = "B" if combiner == "HINDEXED" else ""
            pairs = zip(contents["displacements"], contents["blocklengths"], strict=True)
            listed = ", ".join(f"{at}{unit} x {length}" for at, length in pairs)
            return f"{combiner.lower()}([{listed}], {child})"
        case "INDEXED_BLOCK" | "HINDEXED_BLOCK":
            name, unit = ("hidxblock", "B") if combiner == "HINDEXED_BLOCK" else ("idxblock", "")
            listed = ", ".join(f"{at}{unit}" for at in contents["displacements"])
            return f"{name}({contents['blocklength']}, [{listed}], {child})"
        case "RESIZED":
            return f"resized({contents['lb']}B, {contents['extent']}B, {child})"
        case "SUBARRAY":
            lists = ", ".join(str(list(contents[name])) for name in ("sizes", "subsizes", "starts"))
            return f"subarray({lists}, {_order(lib, contents)}, {child})"
        case "DARRAY":
            names = {
                lib.DISTRIBUTE_BLOCK: "block",
                lib.DISTRIBUTE_CYCLIC: "cyclic",
                lib.DISTRIBUTE_NONE: "none",
            }
            distributions = ", ".join(names[each] for each in contents["distribs"])
            arguments = ", ".join(
                "default" if each == lib.DISTRIBUTE_DFLT_DARG else str(each) for each in contents["dargs"]
            )
            return (
                f"darray({contents['size']}, {contents['rank']}, {list(contents['gsizes'])}, "
                f"[{distributions}], [{arguments}], {list(contents['psizes'])}, "
                f"{_order(lib, contents)}, {child})"
            )
    raise Trouble("unsupported", f"a datatype made by {combiner} has no text form")


def _order(lib: Any, contents: dict[str, Any]) -> str:
    return "C" if contents["order"] == lib.ORDER_C else "F"


def _named(lib: Any, datatype: Any) -> str:
    for name in _NAMES.split():
        if datatype == getattr(lib, name.upper(), None):
            return name
    for name, (first, second_at) in _PAIRS.items():
        if datatype == getattr(lib, name, None):
            _, extent = datatype.Get_extent()
            return f"resized(0B, {extent}B, struct([(0B, {first}), ({second_at}B, int)]))"
    raise Trouble("unsupported", f"the predefined type {datatype.Get_name()} has no text form")
