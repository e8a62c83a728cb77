"""docs/ethernet.md, followed: its handler answers ping in a network of one's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import patience

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ethernet.md"


def test_a_handler_of_one_s_own_answers_ping(tmp_path):
    for name in ("unshare", "ip", "ping"):
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name} command")
    section = (
        PAGE.read_text(encoding="utf-8").split("## Your own handler in ten minutes")[1].split("\n## ")[0]
    )
    handler, commands = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("c", "sh"))
    enter, *rest = commands.splitlines()
    assert enter == "unshare -rn bash"
    (tmp_path / "pong.c").write_text(handler)
    # The reader sees when the NIC is there; the test waits for its line, and ends it by Ctrl-C.
    steps = "\n".join(rest).replace(
        "sleep 3", "until grep -q packet:nic0 said; do kill -0 %1; sleep 0.1; done"
    )
    steps = steps.replace("--seconds 20 &", ">said 2>&1 &").replace("wait", "kill -INT %1; wait; cat said")
    (tmp_path / "steps").write_text("set -em\n" + steps)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*enter.split(), "steps"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience.seconds(120),
    )
    if "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 received" in done.stdout
    assert re.search(r"sent by handlers\s+4", done.stdout), done.stdout
