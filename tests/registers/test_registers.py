"""The description of the control registers, and what is made from it."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest
from systemrdl import RDLCompileError

from spinloom.nics import fpspin_registers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import registers  # noqa: E402

# FPsPIN's map (D4.7, 4.2.1; its register generator): address of the first, how many, reset value.
BOARD = {
    "cl/ctrl": (0x0000, 2, 0),
    "cl/fifo": (0x0008, 1, 0),
    "stats/cluster": (0x1000, 2, 0),
    "stats/mpq": (0x1008, 1, 0),
    "stats/datapath": (0x100C, 2, 0),
    "me/valid": (0x2000, 1, 0),
    "me/mode": (0x2004, 4, 0),
    "me/idx": (0x2014, 16, 0),
    "me/mask": (0x2054, 16, 0),
    "me/start": (0x2094, 16, 1),
    "me/end": (0x20D4, 16, 0),
    "her/valid": (0x3000, 1, 0),
    "her/ctx_enabled": (0x3004, 4, 0),
    "her_meta/handler_mem_addr": (0x4000, 4, 0),
    "her_meta/handler_mem_size": (0x4010, 4, 0),
    "her_meta/host_mem_addr_0": (0x4020, 4, 0),
    "her_meta/host_mem_addr_1": (0x4030, 4, 0),
    "her_meta/host_mem_size": (0x4040, 4, 0),
    "her_meta/hh_addr": (0x4050, 4, 0),
    "her_meta/hh_size": (0x4060, 4, 0),
    "her_meta/ph_addr": (0x4070, 4, 0),
    "her_meta/ph_size": (0x4080, 4, 0),
    "her_meta/th_addr": (0x4090, 4, 0),
    "her_meta/th_size": (0x40A0, 4, 0),
    "her_meta/scratchpad_0_addr": (0x40B0, 4, 0),
    "her_meta/scratchpad_0_size": (0x40C0, 4, 0),
    "her_meta/scratchpad_1_addr": (0x40D0, 4, 0),
    "her_meta/scratchpad_1_size": (0x40E0, 4, 0),
    "her_meta/scratchpad_2_addr": (0x40F0, 4, 0),
    "her_meta/scratchpad_2_size": (0x4100, 4, 0),
    "her_meta/scratchpad_3_addr": (0x4110, 4, 0),
    "her_meta/scratchpad_3_size": (0x4120, 4, 0),
}
OURS = ("spinloom", "counts")
READ_ONLY = {"cl/fifo", "stats/cluster", "stats/mpq", "stats/datapath"}


@pytest.fixture(scope="module")
def description() -> registers.Description:
    return registers.read()


@pytest.fixture
def spoiled(tmp_path):
    """spoiled(old, new) is the description with one thing changed."""

    def change(old: str, new: str) -> registers.Description:
        text = registers.SOURCE.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path = tmp_path / "spoiled.rdl"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return registers.read(path)

    return change


def test_what_is_generated_is_current(description):
    for name, text in registers.generated_files(description).items():
        assert (ROOT / name).read_text(encoding="utf-8") == text, "run: python tools/registers.py"


def test_the_boards_groups_are_the_boards(description):
    # Rules: FPS-1, FPS-2, FPS-3, FPS-4, FPS-5, FPS-6, FPS-7, FPS-8, FPS-9.
    ours = {
        one.path: (one.address, one.count, one.reset)
        for one in description.registers
        if one.group not in OURS
    }
    assert ours == BOARD
    assert sum(count for _, count, _ in ours.values()) == 158
    told = {one.path for one in description.registers if one.access in ("told", "queue")}
    assert {path for path in told if path.split("/")[0] not in OURS} == READ_ONLY


def test_every_count_of_the_engine_has_a_register(description):
    # Rules: FPS-65.
    counts = (ROOT / "src/nic/frames/counts.hpp").read_text(encoding="utf-8")
    enumeration = counts.split("enum class Count")[1].split("};")[0]
    names = re.findall(r"^  (\w+),", enumeration, re.MULTILINE)
    assert len(names) > 20
    assert [one.name for one in description.groups["counts"]] == names


def test_valid_guards_its_group_and_nothing_else(description):
    # Rules: FPS-12, FPS-13.
    guards = {one.path: one.guard for one in description.registers if one.group in ("me", "her", "her_meta")}
    assert (guards.pop("me/valid"), guards.pop("her/valid")) == ("", "")
    assert {path.split("/")[0]: guard for path, guard in guards.items()} == {
        "me": "me/valid",
        "her": "her/valid",
        "her_meta": "her/valid",
    }
    assert all(guards.values())


def test_memory_as_the_host_sees_it(description):
    # Rules: FPS-19, FPS-20.
    assert [(one.host_offset, one.nic_address, one.size) for one in description.memories] == [
        (0, 0x1C00_0000, 1 << 20),
        (0x40_0000, 0x1D00_0000, 32 << 10),
    ]
    assert description.registers_offset == 0x80_0000


def test_no_two_registers_share_an_address(description):
    # Rules: FPS-1.
    ends = [(one.address, one.end) for one in description.registers]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
    assert all(
        one.group_base <= one.address and one.end <= one.group_base + 0x1000 for one in description.registers
    )


def test_an_overlap_is_refused(spoiled):
    with pytest.raises(RDLCompileError):
        spoiled("} stats @ 0x1000;", "} stats @ 0x0004;")


def test_a_change_makes_every_generated_file_stale(spoiled):
    changed = registers.generated_files(spoiled("kept #(.RESET(1)) start", "kept #(.RESET(2)) start"))
    assert all((ROOT / name).read_text(encoding="utf-8") != text for name, text in changed.items())


def test_the_parameter_of_each_dimension(description):
    dimensions = {one.path: one.dimensions for one in description.registers}
    assert dimensions["me/idx"] == ("RULE_SETS", "RULES")
    assert dimensions["her_meta/ph_addr"] == ("CONTEXTS",)
    assert dimensions["spinloom/core_mask"] == ("CLUSTERS",)
    assert dimensions["cl/ctrl"] == ()
    assert {one.path: one.literal for one in description.registers}["cl/ctrl"] == 2


def test_c_and_python_have_the_same_numbers(description):
    header = (ROOT / "include/spinloom/fpspin_registers.h").read_text(encoding="utf-8")
    defined = {
        name: int(value, 0) for name, value in re.findall(r"#define SPL_FPSPIN_(\w+) (\w+)u\n", header)
    }
    assert defined["RULE_SETS"] == fpspin_registers.RULE_SETS == 4
    for one in description.registers:
        named = fpspin_registers.REGISTERS[one.path]
        name = one.identifier.upper()
        assert defined[name] == named.address == one.address
        assert defined.get(f"{name}_COUNT", 1) == named.count == one.count
        assert defined.get(f"{name}_RESET", 0) == named.reset == one.reset
