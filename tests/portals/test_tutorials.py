"""The tutorials as a reader follows them: files are written, commands run in order, outputs compared.

A line of an output must be one that the last command has printed, but for spaces at its ends. Measured times
are somebody else's: they are compared as N, and what a table says of them is left out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import launchers
from conftest import needs_engine
from patience import seconds

ROOT = Path(__file__).resolve().parents[2]
FILE = r"^`(?P<file>[\w.]+)`:\n```\w+\n(?P<content>.*?)^```$"
OUTPUT = r"^```output\n(?P<output>.*?)^```$"
COMMAND = r"^    (?P<command>(?:[^\n]*\\\n)*[^\n]+)$"
STEP = re.compile(f"{FILE}|{OUTPUT}|{COMMAND}", re.DOTALL | re.MULTILINE)
SETTING_UP = ("make ", "export ")
PAGES = {  # what is found in each page, and whether its times are measured
    "halo": ({"file": 1, "output": 6, "command": 6}, True),
    "nic": ({"file": 0, "output": 7, "command": 7}, False),
    "portals": ({"file": 0, "output": 5, "command": 7}, True),
}

pytestmark = [
    needs_engine,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.skipif("mpich" not in launchers.available(), reason="the environment's MPICH is not there"),
]


@pytest.fixture
def folder(tmp_path) -> Path:
    """Has the examples, and programs of the names that the pages use."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    binaries = Path(sys.executable).parent
    for name, words in {
        "spinloom": [sys.executable, "-m", "spinloom.cli"],
        "mpicc": [str(binaries / "mpicc"), f"-Wl,-rpath,{binaries.parent / 'lib'}"],
        "mpiexec": launchers.available()["mpich"],
    }.items():
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return tmp_path


def plain(line: str, measured: bool) -> str:
    line = " ".join(line.split())
    if not measured:
        return line
    line = re.sub(r"^(\d+ \d+ (?:put|ack) \d+ \d+) .*", r"\1", line)  # a row of times
    line = re.sub(r"^(0 1 put|1 0 ack) \d+", r"\1 N", line)  # rank 0 asks until rank 1 is ready
    return re.sub(r"[\d.]+ [nu]s|\(\d+%\)|(?<=^spinloom: )\d+ messages with [\d,]+", "N", line)


@pytest.mark.parametrize("name", PAGES)
def test_the_tutorial_does_what_it_says(folder, name):
    there, measured = PAGES[name]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("SPINLOOM_NIC")},
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),  # prices as they are shipped
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    said: list[str] = []
    seen = {"file": 0, "output": 0, "command": 0}
    for step in STEP.finditer((ROOT / f"docs/tutorial-{name}.md").read_text(encoding="utf-8")):
        if step["file"]:
            seen["file"] += 1
            (folder / step["file"]).write_text(step["content"], encoding="utf-8")
        elif step["output"]:
            seen["output"] += 1
            for line in step["output"].splitlines():
                assert plain(line, measured) in said, f"the page shows '{line}', not among:\n" + "\n".join(
                    said
                )
        elif not step["command"].startswith(SETTING_UP):
            seen["command"] += 1
            ran = subprocess.run(
                ["sh", "-c", f"{step['command']} 2>&1"],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds(120),
            )
            assert ran.returncode == 0, f"{step['command']}:\n{ran.stdout}"
            said = [plain(line, measured) for line in ran.stdout.splitlines()]
    assert seen == there
