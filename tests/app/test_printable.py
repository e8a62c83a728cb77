"""Text from outside as a terminal shows it, and that nothing goes out beside it."""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import core, errors, output
from spinloom.common.printable import html, printable

PACKAGE = Path(output.__file__).parents[1]
HOSTILE = {
    "\x1b]0;owned\x07": r"\x1b]0;owned\x07",
    "a\rb\x7f\x9b": r"a\x0db\x7f\x9b",
    "\u202etxt.exe": r"\u202etxt.exe",
    "zero\u200bwidth\ufeff": r"zero\u200bwidth\ufeff",
    "\U000e0041": r"\U000e0041",
    "\udcff/x": r"\xff/x",
    "\ud800": r"\ud800",
    "\u2028": r"\u2028",
}


@pytest.mark.parametrize(("given", "shown"), HOSTILE.items())
def test_what_a_terminal_obeys_or_hides_is_written_out(given, shown):
    assert printable(given) == shown
    assert printable(shown) == shown


def test_text_stays_as_it_is():
    for text in ("", "a b\tc\n", "äöü €\u00a0🙂 日本", "back\\slash", "<&>"):
        assert printable(text) == text
    assert html("<\x1b>") == r"&lt;\x1b&gt;"


@needs_engine
def test_the_engine_writes_the_same():
    draw = random.Random(1)
    pieces = [*HOSTILE, "a", "ä", "\n", "🙂", "\ud7ff", "\ue000", "\ufff9", "\U0010ffff"]
    for _ in range(3000):
        noise = bytes(draw.randrange(256) for _ in range(draw.randrange(6)))
        text = "".join(draw.choices(pieces, k=3)).encode("utf-8", "surrogatepass") + noise
        assert core.load().printable(text) == printable(text.decode("utf-8", "backslashreplace")), text


def test_sentences_tables_and_lines_go_out_by_it(capsys):
    output.say("\x1b[2J")
    output.echo("\x1b[2J")
    output.show(output.table(["\x1bname"], [["\x1b[31mred"], ["\u202e"]], title="\x1b]0;"))
    output.console().print("\x1b[2J")
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert (said.out.count("\\x1b"), said.out.count("\\u202e")) == (5, 1)
    assert said.err == "spinloom: \\x1b[2J\n"
    assert errors.Trouble("invalid", "\x1b").message == r"\x1b"


def test_bytes_are_what_they_are_except_on_a_terminal(capsysbinary, monkeypatch):
    output.echo(b"\xff\x1b", nl=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.echo(b"\xff\x1b", nl=False)
    assert capsysbinary.readouterr().out == b"\xff\x1b" + rb"\xff\x1b"


def test_a_name_on_the_command_line_is_written_out(spinloom):
    ran = spinloom("simulate", "--no-such-\x1b[31m")
    assert ran.code == errors.EXIT_USAGE
    assert "\x1b" not in ran.err
    assert r"\x1b[31m" in ran.err


def prints(node: ast.AST) -> bool:
    """print(), click.echo(), a console of rich's own, or a standard stream that is written to."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("print", "click.echo", "click.secho", "Console", "sys.stdout.write")
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout.buffer", "sys.stderr.write")


def test_nothing_is_printed_beside_it():
    """output.py is the one place where text goes out. The other two run as scripts of their own."""
    apart = {"output.py", "toolchain.py", "peer_pair.py"}
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for path in PACKAGE.rglob("*.py")
        if path.name not in apart
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if prints(node)
    ]
    assert found == []
