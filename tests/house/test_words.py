"""One word for one thing: words that the wings' READMEs explain, namespaces, and words that have gone.

A wing's README explains its words under `## Words`, in bold; no two wings explain the same word. A namespace
is named after its floor or its wing. CHANGELOG.md lists the words that were replaced, with the wing where
they must not come back.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOLD = re.compile(r"\*\*([^*]+)\*\*")
NAMESPACE = re.compile(r"^namespace spinloom::(\w+)", re.MULTILINE)
GONE = re.compile(r"^\| `(\w+)` \| .* \| `([\w/]+)` \|$", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # a part of a name in snake or camel case


def explained(root: Path) -> dict[str, list[str]]:
    """The wings that explain a word, by the word in small letters."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.glob("src/*/README.md")):
        words = path.read_text(encoding="utf-8").partition("## Words")[2].partition("\n## ")[0]
        for word in BOLD.findall(words):
            found.setdefault(word.lower(), []).append(path.parent.name)
    return found


def strange_namespaces(root: Path) -> list[str]:
    src = root / "src"
    found = []
    for path in sorted(src.rglob("*.?pp")):
        folders = [name for name in path.relative_to(src).parts[:-1] if name != "testing"]
        if not folders or folders == ["base"]:
            continue  # results and limits belong to all
        for name in NAMESPACE.findall(path.read_text(encoding="utf-8")):
            if name not in folders and name != "fuzz":
                found.append(f"{path.relative_to(root)}: namespace {name} is neither its floor nor its wing")
    return found


def gone(root: Path) -> list[tuple[str, str]]:
    """Words and the folders in which they must not be."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return GONE.findall(text.partition("### Words")[2].partition("\n## ")[0])


def come_back(root: Path) -> list[str]:
    found = []
    for path in sorted(root.glob("src/**/*.?pp")):
        code = COMMENT.sub("", path.read_text(encoding="utf-8"))
        parts = {part.lower().removesuffix("s") for part in PART.findall(f"{path.stem} {code}")}
        for word, folder in gone(root):
            if word.removesuffix("s") in parts and path.is_relative_to(root / folder):
                found.append(f"{path.relative_to(root)}: '{word}' has another word now (CHANGELOG.md)")
    return found


def test_a_word_is_explained_once():
    twice = {word: wings for word, wings in explained(ROOT).items() if len(wings) > 1}
    assert twice == {}
    assert len(explained(ROOT)) > 40


def test_namespaces_follow_folders():
    assert strange_namespaces(ROOT) == []


def test_replaced_words_do_not_come_back():
    assert len(gone(ROOT)) >= 8
    assert come_back(ROOT) == []


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "src/mpi/abi").mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    return tmp_path


def test_what_is_wrong_is_found(copy):
    (copy / "src/mpi/abi/a.cpp").write_text("namespace spinloom::nic {\nclass LoanOfHatch;  // parcel\n}\n")
    (copy / "src/mpi/README.md").write_text("## Words\n\n- **Record**: a.\n")
    (copy / "src/nic").mkdir()
    (copy / "src/nic/README.md").write_text("## Words\n\n- **Record**: b.\n")
    assert explained(copy) == {"record": ["mpi", "nic"]}
    (strange,) = strange_namespaces(copy)
    assert "namespace nic" in strange
    assert [line.partition("'")[2].partition("'")[0] for line in come_back(copy)] == ["hatch", "loan"]
