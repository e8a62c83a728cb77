"""A floor includes from floors under it only; sim and live do not know each other."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = [
    ["base"],
    ["layout", "schedule", "network", "packet"],
    ["hpu", "trace", "gpu", "registers"],
    ["spin"],
    ["nic", "frame"],
    ["wire", "slmp", "peer", "host", "program"],
    ["portals", "port"],
    ["testbed"],
    ["collective", "rails", "rma"],
    ["ptl", "sim", "live", "torture"],
    ["offload", "job", "process", "goal", "ethernet"],
    ["mpi", "predict"],
    ["app"],
]
HEIGHT = {floor: height for height, floors in enumerate(FLOORS) for floor in floors}
PUBLIC = {path.name for path in ROOT.glob("include/*.h")}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
USES = re.compile(r"spinloom_floor\s*\(\s*(\w+)[^)]*?USES([^)]*?)(?:TESTS|SOURCES|\))", re.DOTALL)


def may_use(floor: str, other: str) -> bool:
    return floor == other or HEIGHT[other] < HEIGHT[floor]


def violations(root: Path) -> list[str]:
    """One sentence for each include or link that does not point down."""
    found = []
    for path in sorted([*root.glob("src/**/*"), *root.glob("include/**/*")]):
        if path.suffix not in (".hpp", ".cpp", ".h", ".c"):
            continue
        parts = path.relative_to(root).parts
        floor = parts[1] if parts[0] == "src" else "include"
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            other = name.split("/")[0]
            if other == "spinloom" or name in PUBLIC:
                continue
            if path.suffix == ".c" and (path.parent / name).exists():
                continue  # a freestanding program has no include path, and its own folder is its own floor
            place = f"{path.relative_to(root)} includes {name}"
            if floor == "include":
                found.append(f"{place}: a public header includes public headers only")
            elif other not in HEIGHT:
                found.append(f"{place}: write floor/file.hpp or spinloom/file.h")
            elif not may_use(floor, other):
                found.append(f"{place}: {other} is not under {floor}")
    for path in sorted(root.glob("src/*/CMakeLists.txt")):
        for floor, used in USES.findall(path.read_text(encoding="utf-8")):
            found += [
                f"{path.relative_to(root)} links {other}: it is not under {floor}"
                for other in used.split()
                if other not in HEIGHT or not may_use(floor, other)
            ]
    return found


def test_floors_use_only_floors_under_them():
    assert violations(ROOT) == []


@pytest.fixture
def copy(tmp_path):
    """A copy of the sources that a test may spoil."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copytree(ROOT / "include", tmp_path / "include")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("src/base/spoiled.hpp", '#include "layout/type.hpp"', "layout is not under base"),
        ("src/sim/spoiled.cpp", '#include "live/threads.hpp"', "live is not under sim"),
        ("src/peer/spoiled.cpp", '#include "live/segment.hpp"', "live is not under peer"),
        ("src/live/spoiled.cpp", '#  include "sim/profile.hpp"', "sim is not under live"),
        ("src/nic/spoiled.cpp", '#include "profile.hpp"', "write floor/file.hpp"),
        ("include/spinloom/spoiled.h", '#include "base/result.hpp"', "public headers only"),
    ],
)
def test_a_wrong_include_is_found(copy, file, line, complaint):
    before = violations(copy)
    (copy / file).parent.mkdir(parents=True, exist_ok=True)
    (copy / file).write_text(line + "\n")
    (new,) = [found for found in violations(copy) if found not in before]
    assert complaint in new


def test_a_wrong_link_is_found(copy):
    (copy / "src/live").mkdir(exist_ok=True)
    (copy / "src/live/CMakeLists.txt").write_text(
        "spinloom_floor(live SOURCES a.cpp USES nic sim TESTS a_test.cpp)\n"
    )
    assert "src/live/CMakeLists.txt links sim: it is not under live" in violations(copy)
