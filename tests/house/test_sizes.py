"""How large files are, and who may have public data.

A product file of more than 500 lines is split by noun or verb, unless it is one table or one interpreter. A
class (the keyword) has invariants and keeps its data to itself; plain records are structs. What is exempt
stands here with its reason, and leaves the list when the reason has gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES = 500
LONG = {
    "src/mpi/abi/bounce_rules.hpp": "one table: the buffers of every call of MPI",
    "src/nic/hpu/execute.hpp": "one interpreter",
    "python/spinloom/layout/__init__.py": "the public module",
}
PUBLIC_DATA = {
    "src/mpi/abi/bounce_buffers.hpp: BounceBuffers": "what a call is, as its rule finds it",
    "src/mpi/nic/nic.hpp: Nic": "functions of a library that is loaded when the program runs",
    "src/nic/registers/plain_board.hpp: PlainBoard": "a board that remembers, for who looks at it",
    "src/portals/calls/process.hpp: Process": "counts of calls, which every call of Portals bumps",
    "src/portals/rma/memory.hpp: Memory": "the part that only its context changes",
    "src/torture/handlers.hpp: Handlers": "what a run counts",
    "src/torture/world.hpp: World": "what a run is",
}
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|^#.*?(?<!\\)\n', re.DOTALL | re.MULTILINE)
CLASS = re.compile(r"(?<!enum )\bclass\s+(\w+)(?:\s+final)?\s*(?::[^{;]*)?\{")
NO_DATA = re.compile(
    r"(using|friend|static|typedef|template|enum|struct|class|explicit|virtual|\[\[|~|[A-Z_]+\()"
)


def product_files(root: Path) -> Iterator[Path]:
    for pattern in ("src/**/*.?pp", "include/**/*.h", "python/spinloom/**/*.py"):
        for path in sorted(root.glob(pattern)):
            if "testing" not in path.parts and not path.stem.endswith("_test"):
                yield path


def too_long(root: Path) -> list[str]:
    lengths = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8").count("\n")
        for path in product_files(root)
    }
    return sorted(name for name, lines in lengths.items() if lines > LINES)


def body(text: str, start: int) -> str:
    """What is between the brace before `start` and the one that closes it."""
    depth = 1
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return text[start : found.start()]
    return text[start:]


def statements(inside: str) -> Iterator[tuple[str, str]]:
    """The access and the text of each member of a class."""
    access, depth, begin = "private", 0, 0
    for found in re.finditer(r"[(){};]|(?<!:):(?!:)", inside):
        mark, end = found.group(), found.end()
        depth += (mark in "({") - (mark in ")}")
        if depth:
            continue
        held = inside[begin:end].strip()
        if mark == ";" or (mark == "}" and not re.compile(r"\s*[;,{]").match(inside, end)):
            yield access, held
            begin = end
        elif held in ("public:", "private:", "protected:"):
            access, begin = held[:-1], end


def is_data(statement: str) -> bool:
    if NO_DATA.match(statement) or "operator" in statement:
        return False
    declared = re.sub(r"\{.*\}$", "", statement.rstrip("; \n"), flags=re.DOTALL).partition("=")[0]
    declared = re.sub(r"<[^()]*>", "", declared).strip()
    return "(" not in declared and re.search(r"[\w>*&] +[*&]?[a-z]\w*(\[\w*\])?$", declared) is not None


def with_public_data(root: Path) -> list[str]:
    found = []
    for path in sorted(root.glob("src/**/*.hpp")):
        if "testing" in path.parts:
            continue
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        for match in CLASS.finditer(text):
            members = statements(body(text, match.end()))
            if any(access == "public" and is_data(said) for access, said in members):
                found.append(f"{path.relative_to(root)}: {match.group(1)}")
    return found


def test_product_files_are_short_or_named_here():
    assert too_long(ROOT) == sorted(LONG)


def test_classes_keep_their_data_to_themselves_or_are_named_here():
    assert with_public_data(ROOT) == sorted(PUBLIC_DATA)


@pytest.mark.parametrize(
    ("member", "wrong"),
    [
        ("int count = 0;", True),
        ("std::map<int, std::pair<int, int>> found;", True),
        ("const char* name{};", True),
        ("std::function<void(int)> call;", False),  # this is not seen: it looks like a function
        ("int count() const { return count_; }", False),
        ("A& operator=(const A&) = delete;", False),
        ("static constexpr int most = 4;", False),
        ("explicit A(int count) : count_{count} {}", False),
        ("struct Part {\n int count = 0;\n };", False),
        ("private: int count_ = 0;", False),
    ],
)
def test_public_data_is_found(tmp_path, member, wrong):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.hpp").write_text(f"class A {{\n int first_;\n public:\n A();\n {member}\n}};\n")
    assert with_public_data(tmp_path) == (["src/a.hpp: A"] if wrong else [])
