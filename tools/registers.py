"""registers.py [--check] - writes what is made from data/nics/fpspin.rdl; --check says what is not current.

The C header, the C++ table, the Python module and the tables of docs/registers.md hold the same numbers,
those of the board's shape. The C++ table also says which parameter each dimension of a register is, so that
a map of another shape can be made at run time. Exit code 1: something is not current.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from systemrdl import RDLCompiler
from systemrdl.node import AddrmapNode, RegNode

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "data/nics/fpspin.rdl"
BIN = Path(sys.executable).parent  # the environment that requirements.txt fills
# Sizes that no register has by itself: in a map of these, each dimension names its parameter.
MARKS = {"RULE_SETS": 11, "RULES": 13, "CONTEXTS": 17, "CLUSTERS": 19}
NOTE = "Made from data/nics/fpspin.rdl by tools/registers.py."
BEGIN, END = "<!-- made by tools/registers.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Register:
    group: str
    group_about: str
    group_base: int
    name: str
    about: str
    address: int
    count: int
    dimensions: tuple[str, ...]  # parameters; a literal size is not here
    literal: int  # the product of literal sizes
    access: str
    width: int
    reset: int
    guard: str

    @property
    def path(self) -> str:
        return f"{self.group}/{self.name}"

    @property
    def identifier(self) -> str:
        return f"{self.group}_{self.name}"

    @property
    def end(self) -> int:
        return self.address + 4 * self.count


@dataclass(frozen=True)
class Memory:
    name: str
    about: str
    host_offset: int
    nic_address: int
    size: int


@dataclass(frozen=True)
class Description:
    registers: list[Register]
    memories: list[Memory]
    registers_offset: int
    parameters: dict[str, int]

    @property
    def groups(self) -> dict[str, list[Register]]:
        by_group: dict[str, list[Register]] = {}
        for register in self.registers:
            by_group.setdefault(register.group, []).append(register)
        return by_group


def registers_of(node: AddrmapNode, marked: AddrmapNode) -> list[Register]:
    parameter = {mark: name for name, mark in MARKS.items()}
    registers = []
    for group, group_marked in zip(node.children(), marked.children(), strict=True):
        base = group.absolute_address - node.absolute_address
        for register_node, marked_node in zip(group.children(), group_marked.children(), strict=True):
            assert isinstance(register_node, RegNode)
            marks = marked_node.array_dimensions or []
            own_path = f"{group.inst_name}/{register_node.inst_name}"
            guard = register_node.get_property(
                "guarded_by", default=group.get_property("guarded_by", default="")
            )
            (field,) = register_node.fields()
            registers.append(
                Register(
                    group=group.inst_name,
                    group_about=group.get_property("desc"),
                    group_base=base,
                    name=register_node.inst_name,
                    about=register_node.get_property("desc"),
                    address=base
                    + (
                        register_node.raw_address_offset
                        if register_node.is_array
                        else register_node.address_offset
                    ),
                    count=math.prod(register_node.array_dimensions or []),
                    dimensions=tuple(parameter[mark] for mark in marks if mark in parameter),
                    literal=math.prod(mark for mark in marks if mark not in parameter),
                    access=register_node.type_name.partition("_")[0],
                    width=field.width,
                    reset=field.get_property("reset"),
                    guard="" if guard == own_path else guard,
                )
            )
    return registers


def read(source: Path = SOURCE) -> Description:
    """The compiler refuses what is wrong with the description, an overlap too."""
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    board = compiler.elaborate("board").top
    node = board.get_child_by_name("registers")
    marked = compiler.elaborate("fpspin", parameters=MARKS).top
    memories = [
        Memory(
            memory_node.inst_name,
            memory_node.get_property("desc"),
            memory_node.address_offset,
            memory_node.get_property("nic_address"),
            memory_node.size,
        )
        for memory_node in board.children()
        if memory_node is not node and memory_node.inst_name != "registers"
    ]
    parameters = {name: parameter.get_value() for name, parameter in node.inst.parameters_dict.items()}
    return Description(registers_of(node, marked), memories, node.address_offset, parameters)


def c_header(description: Description) -> str:
    lines = [
        "/* Control registers of an FPsPIN-like NIC: addresses, counts, reset values.",
        " *",
        f" * {NOTE} Register i of an array is 4 * i bytes after its first;",
        " * addresses are offsets in the registers' part of the application's PCIe addresses.",
        " * docs/registers.md explains each.",
        " */",
        "#ifndef SPINLOOM_FPSPIN_REGISTERS_H",
        "#define SPINLOOM_FPSPIN_REGISTERS_H",
        "",
    ]
    lines += [f"#define SPL_FPSPIN_{name} {value}u" for name, value in description.parameters.items()]
    lines += ["#define SPL_FPSPIN_STRIDE_BYTES 4u", ""]
    for memory in description.memories:
        name = f"SPL_FPSPIN_{memory.name.upper()}"
        lines += [
            f"#define {name}_HOST_OFFSET {memory.host_offset:#x}u",
            f"#define {name}_NIC_ADDRESS {memory.nic_address:#x}u",
            f"#define {name}_BYTES {memory.size:#x}u",
        ]
    lines.append(f"#define SPL_FPSPIN_REGISTERS_HOST_OFFSET {description.registers_offset:#x}u")
    for group, registers in description.groups.items():
        lines += ["", f"/* {group}: {registers[0].group_about} */"]
        for register in registers:
            name = f"SPL_FPSPIN_{register.identifier.upper()}"
            lines.append(f"#define {name} {register.address:#06x}u")
            if register.count > 1:
                lines.append(f"#define {name}_COUNT {register.count}u")
            if register.reset:
                lines.append(f"#define {name}_RESET {register.reset:#x}u")
    return "\n".join([*lines, "", "#endif", ""])


def cpp_table(description: Description) -> str:
    text = {
        "fields": ", ".join(register.identifier for register in description.registers),
        "count": len(description.registers),
    }
    rows = []
    for register in description.registers:
        dimensions = [f"Dimension::{name.lower()}" for name in register.dimensions]
        guard = f"Register::{register.guard.replace('/', '_')}" if register.guard else "no_register"
        numbers = f"{register.group_base:#x}, {register.address:#x}, {register.literal}"
        rules = f"Access::{register.access}, {register.width}, {register.reset:#x}, {guard}"
        rows.append(
            f'{{Register::{register.identifier}, "{register.group}", "{register.name}", {numbers}, '
            f"{{{', '.join(dimensions)}}}, {rules}}}"
        )
    memories = ", ".join(
        f'{{"{register.name}", {register.host_offset:#x}, {register.nic_address:#x}, {register.size:#x}}}'
        for register in description.memories
    )
    board = ", ".join(str(value) for value in description.parameters.values())
    return f"""// Table - every register of data/nics/fpspin.rdl as constants.
//
// Contract: {NOTE} Entries are in the order of their addresses.
// Threads: constants. Time: none.
#pragma once

#include <array>

#include "nic/registers/description.hpp"

namespace spinloom::registers {{

enum class Register : uint8_t {{ {text["fields"]} }};

inline constexpr uint32_t register_kinds = {text["count"]};
inline constexpr std::array<uint32_t, 4> board_counts = {{{board}}};
inline constexpr uint32_t registers_host_offset = {description.registers_offset:#x};
inline constexpr std::array<MemoryWindow, {len(description.memories)}> memory_windows = {{{{{memories}}}}};

inline constexpr std::array<Description, {text["count"]}> descriptions = {{{{
    // clang-format off
{"".join(f"    {row},{chr(10)}" for row in rows)}    // clang-format on
}}}};

}}  // namespace spinloom::registers
"""


def python_module(description: Description) -> str:
    rows = "".join(
        f'Register("{register.path}", {register.address:#x}, {register.count}, "{register.access}", '
        f"{register.width}, {register.reset:#x}, "
        f'"{register.guard}", "{register.about}"),\n'
        for register in description.registers
    )
    memories = "".join(
        f'"{register.name}": Memory({register.host_offset:#x}, '
        f"{register.nic_address:#x}, {register.size:#x}),\n"
        for register in description.memories
    )
    groups = "".join(f'"{name}": "{ones[0].group_about}",\n' for name, ones in description.groups.items())
    return f'''"""Control registers of an FPsPIN-like NIC, in the board's shape.

{NOTE} Register i of an array is 4 * i bytes after its first.
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


{"".join(f"{name} = {value}{chr(10)}" for name, value in description.parameters.items())}
REGISTERS_HOST_OFFSET = {description.registers_offset:#x}
MEMORIES = {{
{memories}}}
GROUPS = {{
{groups}}}
REGISTERS = {{
    register.path: register
    for register in (
{rows}    )
}}
'''


def docs_tables(description: Description) -> str:
    lines = ["| what | host offset | NIC address | bytes |", "|---|---|---|---|"]
    for memory in description.memories:
        lines.append(
            f"| {memory.about} | `{memory.host_offset:#08x}` | `{memory.nic_address:#x}` | {memory.size} |"
        )
    lines += [f"| registers | `{description.registers_offset:#08x}` | - | {0x10000} |", ""]
    words = {"kept": "read, write", "told": "read", "queue": "read takes one", "command": "write acts"}
    for group, registers in description.groups.items():
        count = sum(register.count for register in registers)
        lines += [f"### {group}: {registers[0].group_about} ({count} registers)", ""]
        lines += [
            "| address | name | number | access | reset | while 1, not writable | meaning |",
            "|---|---|---|---|---|---|---|",
        ]
        for register in registers:
            parts = [
                *([str(register.literal)] if register.literal > 1 else []),
                *(name.lower().replace("_", " ") for name in register.dimensions),
            ]
            number = f"{register.count} ({' x '.join(parts)})" if register.dimensions else str(register.count)
            reset = register.reset if register.reset < 256 else hex(register.reset)
            guard = f"`{register.guard}`" if register.guard else ""
            cells = [
                f"`{register.address:#06x}`",
                f"`{register.path}`",
                number,
                words[register.access],
                reset,
                guard,
                register.about,
            ]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        lines.append("")
    return "\n".join(lines)


def in_page(page: str, tables: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"docs/registers.md has no '{BEGIN}' ... '{END}'")
    return f"{before}{BEGIN}\n\n{tables}\n{END}{after}"


def formatted(text: str, name: str) -> str:
    command = (
        [BIN / "ruff", "format", "--stdin-filename", ROOT / name, "-"]
        if name.endswith(".py")
        else [BIN / "clang-format", f"--assume-filename={ROOT / name}"]
    )
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def generated_files(description: Description) -> dict[str, str]:
    """Each generated file by its path in the tree."""
    page = (ROOT / "docs/registers.md").read_text(encoding="utf-8")
    files = {
        "include/spinloom/fpspin_registers.h": c_header(description),
        "src/nic/registers/table.hpp": cpp_table(description),
        "python/spinloom/nics/fpspin_registers.py": python_module(description),
    }
    return {name: formatted(text, name) for name, text in files.items()} | {
        "docs/registers.md": in_page(page, docs_tables(description))
    }


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    stale = [
        (name, text)
        for name, text in generated_files(read()).items()
        if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != text
    ]
    for name, text in stale:
        if check:
            print(f"{name} is not what data/nics/fpspin.rdl gives; run python tools/registers.py")
        else:
            (ROOT / name).write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
