"""The order of the house: wings as src/README.md lists them, and the floors of each as its README.md does.

A file includes from its own floor, from lower floors of its wing and from lower wings. Tests do, too; they
also include from the folders `testing`. The folder `testing` of a floor belongs to it; that of a wing, or of
a group of floors, stands above its floors. Product files include nothing from `testing`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {path.name for path in ROOT.glob("include/*.h")}
SOURCES = (".hpp", ".cpp", ".h", ".c", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
USES = re.compile(r"spinloom_floor\s*\(\s*([\w/]+)[^)]*?USES([^)]*?)(?:TESTS|SOURCES|\))", re.DOTALL)
WING = re.compile(r"^\| \[(\w+)\]\(\w+/README\.md\) \|", re.MULTILINE)
FLOOR = re.compile(r"^\| `([\w/.]+)` \|", re.MULTILINE)


def floors_of(root: Path) -> list[str]:
    """Folders below src, from the ground up."""
    floors = []
    for wing in WING.findall((root / "src/README.md").read_text(encoding="utf-8")):
        text = (root / "src" / wing / "README.md").read_text(encoding="utf-8")
        named = FLOOR.findall(text.partition("## Floors")[2].partition("\n## ")[0]) or ["."]
        floors += [wing if name == "." else f"{wing}/{name}" for name in named]
    return floors


class House:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.floors = floors_of(root)

    def height(self, path: Path) -> float | None:
        """The number of a file's floor; the `testing` of a wing is half a step above the floors."""
        folders = path.parent.as_posix()
        whole, _, _ = folders.partition("/testing")
        own = [number for number, floor in enumerate(self.floors) if within(whole, floor)]
        if own:
            return max(own, key=lambda number: len(self.floors[number]))
        above = [number for number, floor in enumerate(self.floors) if within(floor, whole)]
        return max(above) + 0.5 if above and whole != folders else None

    def violations(self) -> list[str]:
        """One sentence for each folder, include or link that is out of order."""
        src = self.root / "src"
        files = [path for path in sorted(src.rglob("*")) if path.suffix in SOURCES]
        found = [
            f"src/{folder}: the README.md of its wing does not name it"
            for folder in sorted({path.relative_to(src).parent for path in files})
            if self.height(folder / "x") is None
        ]
        for path in files:
            found += self.includes(path)
        for path in sorted(self.root.glob("include/**/*")):
            if path.suffix not in SOURCES:
                continue
            found += [
                f"{path.relative_to(self.root)} includes {name}: a public header includes public headers only"
                for name in INCLUDE.findall(path.read_text(encoding="utf-8"))
                if not is_public(name)
            ]
        for path in sorted(src.rglob("CMakeLists.txt")):
            for floor, used in USES.findall(path.read_text(encoding="utf-8")):
                found += [
                    f"{path.relative_to(self.root)} links {other}: it is not under {floor}"
                    for other in used.split()
                    if not self.is_under(other, floor)
                ]
        return found

    def includes(self, path: Path) -> list[str]:
        src = self.root / "src"
        here = path.relative_to(src)
        is_test = "testing" in here.parts or here.stem.endswith("_test")
        found = []
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            place = f"src/{here} includes {name}"
            if is_public(name) or (path.suffix == ".c" and (path.parent / name).exists()):
                continue  # a freestanding program has no include path; what lies beside it is its own floor
            own, other = self.height(here), self.height(Path(name))
            if other is None or not (src / name).exists():
                found.append(f"{place}: write wing/floor/file.hpp or spinloom/file.h")
            elif "testing" in Path(name).parts and not is_test:
                found.append(f"{place}: only tests include from `testing`")
            elif own is not None and other > own:
                found.append(f"{place}: {Path(name).parent} is not under {here.parent}")
        return found

    def is_under(self, other: str, floor: str) -> bool:
        own, used = ([f for f in self.floors if within(f, one)] for one in (floor, other))
        return bool(own and used) and self.floors.index(used[0]) < self.floors.index(own[0])


def within(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(other + "/")


def is_public(name: str) -> bool:
    return name.startswith("spinloom/") or name in PUBLIC


def test_each_file_includes_from_below():
    assert House(ROOT).violations() == []


def test_contributing_leads_to_each_wing():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    wings = {floor.partition("/")[0] for floor in floors_of(ROOT)}
    assert wings == {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    assert [wing for wing in sorted(wings) if f"src/{wing}/" not in text] == []


@pytest.fixture
def copy(tmp_path):
    """A copy of the sources that a test may spoil."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copytree(ROOT / "include", tmp_path / "include")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "included", "complaint"),
    [
        ("src/base/a.hpp", "memory/layout/type.hpp", "memory/layout is not under base"),
        ("src/simulated/node/a.cpp", "live/node/node.hpp", "live/node is not under simulated/node"),
        ("src/memory/peer/a.cpp", "live/node/node.hpp", "live/node is not under memory/peer"),
        ("src/live/shm/a.cpp", "live/udp/udp_transport.hpp", "live/udp is not under live/shm"),
        ("src/live/udp/a_test.cpp", "live/testing/live_testbed.hpp", "live/testing is not under live/udp"),
        ("src/predict/goal/model/a.cpp", "predict/goal/nics/nics.hpp", "is not under predict/goal/model"),
        ("src/nic/portals/a.cpp", "profile.hpp", "write wing/floor/file.hpp"),
        ("src/nic/portals/a.cpp", "base/testing/seeds.hpp", "only tests include from `testing`"),
        ("src/nic/more/a.cpp", "base/result.hpp", "does not name it"),
        ("include/spinloom/a.h", "base/result.hpp", "public headers only"),
    ],
)
def test_what_is_out_of_order_is_found(copy, file, included, complaint):
    before = House(copy).violations()
    (copy / file).parent.mkdir(parents=True, exist_ok=True)
    (copy / file).write_text(f'#  include "{included}"\n')
    (new,) = [found for found in House(copy).violations() if found not in before]
    assert complaint in new


@pytest.mark.parametrize("file", ["live/shm/a_test.cpp", "live/testing/a.hpp", "live/process/a.cpp"])
def test_what_is_in_order_is_not(copy, file):
    (copy / "src" / file).write_text('#include "live/shm/shm_transport.hpp"\n#include "spinloom/layout.h"\n')
    assert House(copy).violations() == []


def test_a_wrong_link_is_found(copy):
    (copy / "src/memory/CMakeLists.txt").write_text(
        "spinloom_floor(memory/peer SOURCES a.cpp USES base nic/spin TESTS a_test.cpp)\n"
    )
    assert "src/memory/CMakeLists.txt links nic/spin: it is not under memory/peer" in House(copy).violations()
