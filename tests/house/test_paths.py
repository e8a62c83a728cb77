"""Files that the maps of the house name are there: CONTRIBUTING.md, READMEs and CHOICES.md of the sources.

A name with a folder is looked for from the root, from the folder of the map, from a wing and from the
package; a bare name anywhere in the tree.
"""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAPS = [
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "python/spinloom/README.md",
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("src/**/*.md"))),
]
NAMED = re.compile(r"`([\w.*/-]+)`")
ENDINGS = r"\.(cpp|hpp|h|c|cu|py|toml|md|csv|txt|cmake|map|list|sh|lua|ld|\*)$"
FOLDERS = (
    "",
    "include/",
    "src/",
    "src/*/",
    "python/spinloom/",
    "python/spinloom/*/",
    "tests/",
    "tests/*/",
    "data/",
)


def files(root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (root / name).exists()]


def missing(text: str, folder: str, there: list[str]) -> list[str]:
    found = []
    for name in NAMED.findall(text):
        if name.startswith(("/", "-", ".", "*")) or not re.search(ENDINGS, name):
            continue
        if re.search(r"[A-Z]{3,}|^x(_test)?\.", name.removesuffix("README.md").removesuffix("CHOICES.md")):
            continue  # NAME.toml, WING/CHOICES.md stand for many; x.cpp for any
        places = [f"{folder}/{name}", *(start + name for start in FOLDERS)]
        if "/" not in name:
            places.append(f"*/{name}")
        if not any(fnmatch(file, place) for place in places for file in there):
            found.append(name)
    return found


@pytest.mark.parametrize("name", MAPS)
def test_what_a_map_names_is_there(name):
    there = files(ROOT)
    assert missing((ROOT / name).read_text(encoding="utf-8"), str(Path(name).parent), there) == []


def test_folders_of_tests_are_in_the_map():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {
        path.parts[1] for path in map(Path, files(ROOT)) if path.parts[0] == "tests" and len(path.parts) > 2
    }
    assert sorted(folders) == sorted(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def test_a_missing_file_is_found():
    there = ["src/nic/portals/nic.cpp", "python/spinloom/bench/jobs.py"]
    text = (
        "`portals/nic.cpp`, `nic.*`, `jobs.py`, `bench/jobs.py`, `data/NAME.toml`, `gone.cpp`, `nic/nic.cpp`"
    )
    assert missing(text, "src/nic", there) == ["gone.cpp", "nic/nic.cpp"]
