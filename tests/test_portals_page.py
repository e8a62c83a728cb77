"""docs/portals.md: its programs are written, its commands run, its outputs compared."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom import cli

PAGE = Path(__file__).resolve().parent.parent / "docs/portals.md"
FILE = r"^`(?P<file>[\w.]+)`:\n```\w+\n(?P<content>.*?)^```$"
OUTPUT = r"^```output\n(?P<output>.*?)^```$"
COMMAND = r"^    spinloom (?P<command>sim [^\n]+\.c)$"
STEP = re.compile(f"{FILE}|{OUTPUT}|{COMMAND}", re.DOTALL | re.MULTILINE)

pytestmark = [
    needs_engine,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


def test_the_page_does_what_it_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPINLOOM_NIC", raising=False)
    said = ""
    seen = {"file": 0, "output": 0, "command": 0}
    for step in STEP.finditer(PAGE.read_text(encoding="utf-8")):
        seen["file" if step["file"] else step.lastgroup] += 1
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["content"], encoding="utf-8")
        elif step["output"]:
            for line in step["output"].splitlines():
                assert line in said.splitlines()
        else:
            with pytest.raises(SystemExit) as ended:
                cli.main(shlex.split(step["command"]))
            said, complaint = capfd.readouterr()
            assert ended.value.code == 0, complaint
    assert seen == {"file": 2, "output": 3, "command": 3}
