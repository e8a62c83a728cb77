"""Programs and tools at a live NIC: a file that its handlers receive, and its registers."""

from __future__ import annotations

import hashlib
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import patience
from spinloom import namespaces

BIN = Path(sys.executable).parent
SPINLOOM = str(BIN / "spinloom")
ANSWERS_ARP = ("--handlers", "arp_answer", "--rules", "arp")


@pytest.fixture
def cable():
    try:
        with namespaces.cable(rootless=True) as made:
            yield made
    except namespaces.Refused as refused:
        pytest.skip(str(refused))


@pytest.fixture
def nic(cable):
    """The NIC's name."""
    process = cable.nic.start(
        [SPINLOOM, "nic", "run", "--wire", "packet:nic0", "--address", "10.7.0.2", *ANSWERS_ARP],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=patience.default_signals,
    )
    said = process.stdout.readline()
    found = re.match(r"(spinloom\d+): ", said)
    if found is None:
        process.communicate()
        pytest.skip(said.strip())
    yield found[1]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=patience.seconds(60))
    assert process.returncode == 0


def tool(*words: str) -> str:
    done = subprocess.run([SPINLOOM, *words], capture_output=True, text=True, timeout=patience.seconds(60))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("size", [0, 1, 1408, 3_000_001])
def test_a_file_is_received_by_handlers(cable, nic, tmp_path, size):
    content = hashlib.shake_128(b"file").digest(size)
    (tmp_path / "data.bin").write_bytes(content)
    copy = tmp_path / "copy.bin"
    words = ["slmp", "receive", str(copy), "--nic", nic, "--limit", "4MiB", "--linger", "10ms", "--json"]
    receiver = subprocess.Popen([SPINLOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "waiting for a message" in receiver.stderr.readline()
    words = [
        SPINLOOM,
        "slmp",
        "send",
        str(tmp_path / "data.bin"),
        "10.7.0.2",
        "--threads",
        "2",
        "--window",
        "32",
    ]
    sent = cable.client.run(words)
    assert sent.returncode == 0, sent.stderr
    out, trouble = receiver.communicate(timeout=patience.seconds(120))
    assert receiver.returncode == 0, trouble
    assert copy.read_bytes() == content
    digest = hashlib.sha256(content).hexdigest()
    assert digest in out
    assert digest in sent.stdout
    assert "context 1: " not in tool("nic-ctl", "--nic", nic, "status")  # the receiver has left


def test_registers_of_a_live_nic(cable, nic):
    assert "context 0: active" in tool("nic-ctl", "--nic", nic, "status")
    before = int(tool("nic-ctl", "--nic", nic, "read", "counts/sent_by_handlers").split()[-1], 0)
    cable.client.run(
        ["ping", "-n", "-c", "1", "-W", "1", "10.7.0.2"]
    )  # asks for the address; nobody answers pings
    after = int(tool("nic-ctl", "--nic", nic, "read", "counts/sent_by_handlers").split()[-1], 0)
    assert after > before
    tool("nic-ctl", "--nic", nic, "write", "spinloom/active/0", "0")
    assert "context 0: inactive" in tool("nic-ctl", "--nic", nic, "status")


def test_a_nic_that_is_not_there_is_named():
    words = [SPINLOOM, "slmp", "receive", "/nonexistent/x", "--nic", "nobody"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=patience.seconds(60))
    assert done.returncode != 0
    assert "spinloom nic run --name nobody" in done.stderr
