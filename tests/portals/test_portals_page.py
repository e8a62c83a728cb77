"""The pages of Portals, collectives, rails and one-sided memory: programs run both ways, outputs compared."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import launchers
from conftest import needs_engine
from spinloom import cli

DOCS = Path(__file__).resolve().parents[2] / "docs"
# What is found in each page.
PAGES = {
    "portals.md": {"file": 4, "output": 8, "command": 5, "shell": 7},
    "rails.md": {"file": 1, "output": 2, "command": 1, "shell": 2},
    "collectives.md": {"file": 4, "output": 5, "command": 3, "shell": 5},
    "rma.md": {"file": 3, "output": 6, "command": 3, "shell": 6},
}
FILE = r"^`(?P<file>[\w.]+)`:\n```\w+\n(?P<content>.*?)^```$"
OUTPUT = r"^```output\n(?P<output>.*?)^```$"
COMMAND = r"^    spinloom (?P<command>sim [^\n]+(?:\.c|\./put))$"
NAMES = "put|reply|counted|lines|bcast|large|exchange|first|keys|notice"
SHELL = rf"^    (?P<shell>(?:cc|spinloom handler|(?:\w+=\S+ )?mpiexec) [^\n]*(?:{NAMES})[^\n]*)$"
STEP = re.compile(f"{FILE}|{OUTPUT}|{COMMAND}|{SHELL}", re.DOTALL | re.MULTILINE)

pytestmark = [
    needs_engine,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


def shell(command: str, launcher: str) -> str:
    """What a command of the page prints, with this Spinloom and this launcher by their usual names."""
    names = (
        f'spinloom() {{ {shlex.quote(sys.executable)} -m spinloom.cli "$@"; }}\n'
        f'mpiexec() {{ {shlex.join(launchers.available()[launcher])} "$@"; }}\n'
    )
    started = subprocess.Popen(
        ["bash", "-c", names + command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, complaint = started.communicate(timeout=launchers.TIME_LIMIT_S)
    except subprocess.TimeoutExpired:  # the launcher and its ranks would go on for ever without the shell
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        raise
    assert started.returncode == 0, f"{command}:\n{complaint}"
    return said


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("launcher", launchers.available() or ["none"])
def test_the_page_does_what_it_says(tmp_path, monkeypatch, capfd, launcher, page):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPINLOOM_NIC", raising=False)
    said, live = "", False
    seen = {"file": 0, "output": 0, "command": 0, "shell": 0}
    for step in STEP.finditer((DOCS / page).read_text(encoding="utf-8")):
        seen["file" if step["file"] else step.lastgroup] += 1
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["content"], encoding="utf-8")
        elif step["output"]:
            expected = step["output"]
            if live:  # a real clock is nobody's to foresee
                said, expected = (re.sub(r"\d+ ns", "N ns", text) for text in (said, expected))
            for line in expected.splitlines():
                assert line in said.splitlines()
        elif step["shell"]:
            if launcher == "none" and "mpiexec" in step["shell"]:
                pytest.skip("there is no launcher; what the page says before it was compared")
            said, live = shell(step["shell"], launcher), "mpiexec" in step["shell"]
        else:
            with pytest.raises(SystemExit) as ended:
                cli.main(shlex.split(step["command"]))
            said, complaint = capfd.readouterr()
            live = False
            assert ended.value.code == 0, complaint
    assert seen == PAGES[page]
