"""A handler's source or image as its author names it: its contents and its source lines.

Contract: image_of(path) builds FILE.c (or reads FILE.elf) and describes it; Trouble has the compiler's
messages. line_table(image) is address -> (file, line) for the very same code: the source is compiled again
with debug information and its code compared byte by byte with the image's. Code of an inline function of
the installed headers has the line that calls it, in the source or in a header beside it.
"""

from __future__ import annotations

import io
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.common import core, data, output
from spinloom.common.errors import Trouble
from spinloom.handlers import toolchain

ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True)
class Image:
    path: Path  # the file that was named
    elf: bytes
    handlers: tuple[str, ...]  # header_handler, ...
    code_bytes: int  # read-only data counts, too

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def is_source(self) -> bool:
        return self.path.suffix == ".c"

    def beside(self, suffix: str) -> Path:
        """NAME.toml, NAME_expect.py"""
        return self.path.with_name(self.name + suffix)


def image_of(path: Path, target: Path | None = None, defines: Sequence[str] = ()) -> Image:
    """Builds a source, into `target` if it is given, or reads an image."""
    if not path.is_file():
        raise Trouble("invalid", f"there is no file {path}")
    if path.suffix == ".c":
        elf = build(path, target, defines=defines)
    else:
        elf = path.read_bytes()
        if not elf.startswith(ELF_MAGIC):
            raise Trouble("invalid", f"{path} is neither a C source (FILE.c) nor a handler image (FILE.elf)")
    return describe(path, elf)


def describe(path: Path, elf: bytes) -> Image:
    engine = core.load()
    try:
        description = engine.describe_image(elf)
    except engine.SpinloomError as error:
        raise Trouble(error.code, f"{path}: {error.message}") from None
    handlers = tuple(name for name in toolchain.HANDLERS if name in description["symbols"])
    if not handlers:
        raise Trouble("invalid", f"{path} defines none of {', '.join(toolchain.HANDLERS)}")
    return Image(path, elf, handlers, description["bytes"])


def warn(text: str) -> None:
    """Shows what the compiler says of a source that it takes."""
    output.say(f"the compiler warns:\n{text}")


def build(
    source: Path, target: Path | None = None, source_lines: bool = False, defines: Sequence[str] = ()
) -> bytes:
    include, script = data.folder("include"), data.folder("handlers") / "handler.ld"
    if not script.is_file() or not include.is_dir():
        raise Trouble(
            "environment", f"this installation has no {script}; 'make setup' in the checkout brings it"
        )
    with tempfile.TemporaryDirectory() as scratch:
        image = target or Path(scratch) / "handler.elf"
        try:
            toolchain.compile(
                source,
                image,
                include=[include],
                script=script,
                source_lines=source_lines,
                defines=defines,
                warn=(lambda text: None) if source_lines else warn,  # lines are of what was built before
            )
        except toolchain.ToolchainError as error:
            raise Trouble("environment" if error.environment else "invalid", str(error)) from None
        except OSError as error:
            raise Trouble("environment", f"{image} cannot be written: {error.strerror}") from None
        return image.read_bytes()


def build_native(source: Path, target: Path, defines: Sequence[str] = ()) -> list[str]:
    """Makes a shared object for this machine; returns the handlers that the source defines."""
    if not source.is_file():
        raise Trouble("invalid", f"there is no file {source}")
    try:
        toolchain.compile_native(source, target, include=[data.folder("include")], defines=defines, warn=warn)
        return toolchain.handlers_of(source, defines)
    except toolchain.ToolchainError as error:
        raise Trouble("environment" if error.environment else "invalid", str(error)) from None
    except OSError as error:
        raise Trouble("environment", f"{target} cannot be written: {error.strerror}") from None


def line_table(image: Image) -> dict[int, tuple[str, int]]:
    """Address of an instruction -> (file name, line); for images that were built from a source."""
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise Trouble(
            "environment",
            "source lines need the package 'pyelftools' (pip install pyelftools), which is not here",
        ) from None
    with_lines = build(image.path, source_lines=True)
    described = ELFFile(io.BytesIO(with_lines))
    plain = ELFFile(io.BytesIO(image.elf))
    if described.get_section_by_name(".text").data() != plain.get_section_by_name(".text").data():
        raise Trouble(
            "fault", f"{image.path}: with debug information the compiler makes other code: no source lines"
        )
    return lines_of(described, {path.name for path in toolchain.with_headers_beside(image.path)})


def with_source_lines(image: Image, reasons: list[str]) -> list[str]:
    """Each reason, such as "illegal instruction at pc 0x10000010", with the source line of its address.

    Reasons stay as they are where the image was not built from a source here, or where lines cannot be had.
    """
    addresses = [re.search(r"\bpc 0x([0-9a-f]+)", reason) for reason in reasons]
    if not image.is_source or not any(addresses):
        return reasons
    try:
        lines = line_table(image)
    except Trouble:
        return reasons
    placed = []
    for reason, address in zip(reasons, addresses, strict=True):
        file, line = lines.get(int(address[1], 16), ("", 0)) if address else ("", 0)
        placed.append(f"{reason} ({file}:{line})" if line else reason)
    return placed


def source_of(image: Image) -> dict[int, tuple[str, str]]:
    """Address of an instruction -> its place ("words.c:12") and that line; empty for an image without source.

    Lines of headers that cannot be found beside the source or in this installation are empty.
    """
    if not image.is_source:
        return {}
    folders = [image.path.parent, data.folder("include") / "spinloom", data.folder("handlers") / "runtime"]
    texts: dict[str, list[str]] = {}
    table = {}
    for address, (name, line) in line_table(image).items():
        if name not in texts:
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            texts[name] = path.read_text(encoding="utf-8", errors="replace").splitlines() if path else []
        text = texts[name][line - 1].strip() if line <= len(texts[name]) else ""
        table[address] = (f"{name}:{line}", text)
    return table


def lines_of(elf: Any, own: set[str]) -> dict[int, tuple[str, int]]:
    """Address -> (file, line). Outside of the files `own`, the innermost call from one of these counts."""
    table: dict[int, tuple[str, int]] = {}
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = program["file_entry"]
        first = 0 if program["version"] >= 5 else 1
        names = [Path(file.name.decode("utf-8", "backslashreplace")).name for file in files]
        calls = calls_of(dwarf, unit, lambda number, names=names, first=first: names[number - first], own)
        rows = [entry.state for entry in program.get_entries() if entry.state is not None]
        for row, following in itertools.pairwise(rows):
            if row.end_sequence or row.line == 0:
                continue
            place = (names[row.file - first], row.line)
            for address in range(row.address, following.address, 2):
                table[address] = place if place[0] in own else calls.get(address, place)
    return table


def calls_of(
    dwarf: Any, unit: Any, name_of: Callable[[int], str], own: set[str]
) -> dict[int, tuple[str, int]]:
    """Address within an inlined function -> the innermost call of it in the files `own`."""
    calls: dict[int, tuple[str, int]] = {}
    for entry in unit.iter_DIEs():  # a call stands before those within it
        if entry.tag != "DW_TAG_inlined_subroutine":
            continue
        file, line = (entry.attributes[f"DW_AT_call_{what}"].value for what in ("file", "line"))
        if name_of(file) in own:
            for begin, end in ranges_of(dwarf, unit, entry):
                calls |= dict.fromkeys(range(begin, end, 2), (name_of(file), line))
    return calls


def ranges_of(dwarf: Any, unit: Any, entry: Any) -> Iterator[tuple[int, int]]:
    """The addresses of an entry, each as first and end."""
    if "DW_AT_low_pc" in entry.attributes:
        begin, end = entry.attributes["DW_AT_low_pc"].value, entry.attributes["DW_AT_high_pc"]
        yield begin, end.value + (0 if end.form == "DW_FORM_addr" else begin)
    elif "DW_AT_ranges" in entry.attributes:
        top = unit.get_top_DIE().attributes
        base = top["DW_AT_low_pc"].value if "DW_AT_low_pc" in top else 0
        for part in dwarf.range_lists().get_range_list_at_offset(
            entry.attributes["DW_AT_ranges"].value, unit
        ):
            if hasattr(part, "base_address"):
                base = part.base_address
            else:
                shift = 0 if getattr(part, "is_absolute", False) else base
                yield part.begin_offset + shift, part.end_offset + shift
