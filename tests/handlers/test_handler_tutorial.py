"""docs/handler-tutorial.md from its first line to its last, as a reader follows it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.handlers import toolchain

PAGE = Path(__file__).resolve().parents[2] / "docs/handler-tutorial.md"
FILE = r"^`(?P<file>[\w.]+)`:\n```\w+\n(?P<content>.*?)^```$"
OUTPUT = r"^```output\n(?P<output>.*?)^```$"
COMMAND = r"^    spinloom (?P<command>[^\n]+)$"
STEP = re.compile(f"{FILE}|{OUTPUT}|{COMMAND}", re.DOTALL | re.MULTILINE)

pytestmark = [
    needs_engine,
    pytest.mark.skipif(
        toolchain.compiler_version() != toolchain.COMPILER_VERSION,
        reason="the handler compiler is not installed",
    ),
]


def test_the_page_does_what_it_says(spinloom, tmp_path, monkeypatch):
    pytest.importorskip("elftools")
    monkeypatch.chdir(tmp_path)
    said = ""
    seen = {"file": 0, "output": 0, "command": 0}
    for step in STEP.finditer(PAGE.read_text(encoding="utf-8")):
        seen[step.lastgroup if step.lastgroup != "content" else "file"] += 1
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["content"], encoding="utf-8")
        elif step["output"]:
            for line in step["output"].splitlines():
                assert line in said, f"the page shows '{line}', the last command said:\n{said}"
        else:
            line, _, may_fail = step["command"].partition(" || ")
            ran = spinloom(*shlex.split(line))
            assert ran.code == (1 if may_fail else 0), f"spinloom {line}:\n{ran.out}{ran.err}"
            said = ran.out
    assert seen["file"] >= 5
    assert seen["output"] >= 3
    assert seen["command"] >= 10
