"""tools/comments.py: which comments it lists."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
THIRTY = "word " * 30


def offences(text: str, suffix: str = ".cpp") -> list[str]:
    spec = importlib.util.spec_from_file_location("comments", ROOT / "tools/comments.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = ROOT / f"build/house_comments{suffix}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    try:
        return [one.partition(": ")[2] for one in module.offences(path)]
    finally:
        path.unlink()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("// True for messages that the receiver matches.\n", []),
        ("// Of messages that match.\n", ["fragment: Of messages that match."]),
        ("int x;  // By rank.\n", ["fragment: By rank."]),
        ("/* As in Portals 4. */\n", ["fragment: As in Portals 4."]),
        ("/*\n * Whether it is there.\n */\n", ["fragment: Whether it is there."]),
        ("// It is copied once.\n// With a heap, peers map it.\n", []),  # one comment, which opens well
        ("// It is copied once.\nint x;\n// With a heap.\n", ["fragment: With a heap."]),
        ('const char* text = "// Of a text";\n', []),
        (f"// {THIRTY}.\n", ["long: 154 columns"]),
        ("// " + THIRTY.replace(" ", "\n// ") + "end.\n", []),
        ("// " + "word\n// " * 41 + "end.\n", ["sentence: 42 words: " + "word " * 12]),
        ("int " + "x" * 130 + ";\n", []),  # clang-format's business
        ("int x;  // " + "y" * 120 + "\n", ["long: 131 columns"]),
    ],
)
def test_comments_that_are_hard_to_read_are_listed(text, found):
    assert [one.strip() for one in offences(text)] == [one.strip() for one in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("int bytes;  // of a reduction\n", ["trailing: of a reduction"]),
        ("int bytes;  // bytes of a reduction\n", []),
        ("int bytes; /* of a reduction */\n", ["trailing: of a reduction"]),
        ("void f(int /*to*/, int);\n", []),  # a name
        ("enum { a,  // to the wire\n  b };\n", ["trailing: to the wire"]),
        ("int x;  // not yet sent", ["trailing: not yet sent"]),
        ("int x;  // by\n", ["trailing: by"]),
        ("int x;  // by: rank\n", ["trailing: by: rank"]),
        ("int x;  // byte of a word\n", []),  # "byte" begins as "by" does
        ("int x;  // is_on of the layer\n", []),
        ("// of a reduction\nint x;\n", []),  # its sentence may begin above
        ('const char* text = "x;  // of a text";\n', []),
    ],
)
def test_comments_that_finish_a_name_are_listed(text, found):
    assert offences(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bytes = 1  # of a reduction\n", ["trailing: of a reduction"]),
        ("bytes = 1  # the bytes of a reduction\n", []),
        ("# of a reduction\nbytes = 1\n", []),
        ('text = """\nbytes = 1  # of a text\n"""\n', []),
    ],
)
def test_those_of_python_too(text, found):
    assert offences(text, ".py") == found


def test_lines_are_those_of_the_file():
    (found,) = offences("int x;\n\n// Of messages.\n")
    assert found == "fragment: Of messages."
