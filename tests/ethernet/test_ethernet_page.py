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


NIC = (
    "spinloom nic run --wire packet:nic0 --address 10.7.0.2 --handlers arp_answer --rules arp >said 2>&1 &\n"
    "until grep -q packet:nic0 said; do kill -0 %1; sleep 0.1; done"
)
CABLE = """
set -em
ip link add nic0 type veth peer name host0
ip link set nic0 up
ip link set host0 up
ip address add 10.7.0.1/24 dev host0
"""


def section(title: str) -> str:
    return PAGE.read_text(encoding="utf-8").split(f"## {title}")[1].split("\n## ")[0]


def block(text: str, kind: str) -> str:
    return re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)[1]


def follow(steps: str, place: Path) -> str:
    """What the steps print, in a network of their own; NICs have names there that nobody else sees."""
    for name in ("unshare", "ip", "ping"):
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name} command")
    (place / "steps").write_text(steps)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["unshare", "-rn", "bash", "steps"],
        cwd=place,
        env={**os.environ, "PATH": path, "XDG_RUNTIME_DIR": str(place)},
        capture_output=True,
        text=True,
        timeout=patience.seconds(120),
    )
    if "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_handler_of_one_s_own_answers_ping(tmp_path):
    text = section("Your own handler in ten minutes")
    (tmp_path / "pong.c").write_text(block(text, "c"))
    enter, *rest = block(text, "sh").splitlines()
    assert enter == "unshare -rn bash"
    # The reader sees when the NIC is there; the test waits for its line, and ends it by Ctrl-C.
    steps = "\n".join(rest).replace("sleep 3", NIC.splitlines()[1])
    steps = steps.replace("--seconds 20 &", ">said 2>&1 &").replace("wait", "kill -INT %1; wait; cat said")
    said = follow("set -em\n" + steps, tmp_path)
    assert "3 received" in said
    assert re.search(r"sent by handlers\s+4", said), said


def test_a_program_answers_ping_together_with_the_nic(tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config command")
    text = section("Programs beside the handlers")
    (tmp_path / "helper.c").write_text(block(text, "c"))
    compile_it, _, start = block(text, "sh").rstrip().rpartition("\n")
    ready = "until grep -q ready helped; do kill -0 %2; sleep 0.1; done"
    end = "kill -INT %2; wait %2 || true; kill -INT %1; wait; cat said helped"
    program = f"{compile_it}\n{start} >helped 2>&1 &\n{ready}\nping -c 3 -i 0.2 10.7.0.2\n{end}"
    said = follow(f"{CABLE}\n{NIC}\n{program}", tmp_path)
    assert "3 received" in said
    assert "of a program" not in said  # it was gone before the NIC ended
