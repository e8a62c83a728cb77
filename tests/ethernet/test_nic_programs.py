"""Programs and tools at a live NIC: files that handlers receive, messages that they unpack, registers."""

from __future__ import annotations

import hashlib
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import patience
from spinloom import layout
from spinloom.common.errors import Trouble
from spinloom.ethernet import namespaces, nic_types
from spinloom.papers.observe_frames import TYPES

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
    words = ["nic", "receive", str(copy), "--name", nic, "--limit", "4MiB", "--linger", "10ms", "--json"]
    receiver = subprocess.Popen([SPINLOOM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "waiting for a message" in receiver.stderr.readline()
    assert "context 1: active" in tool("nic", "status", "--name", nic)  # no packet comes too early
    words = [
        SPINLOOM,
        "nic",
        "send",
        str(tmp_path / "data.bin"),
        "10.7.0.2",
        "--workers",
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
    assert "context 1: " not in tool("nic", "status", "--name", nic)  # the receiver has left


def landed(unpacked: nic_types.Unpacked, messages: int) -> set[int | None]:
    """The numbers of the messages that come; None among them if they are too few."""
    found: set[int | None] = set()
    while len(found) < messages and None not in found:
        found.add(unpacked.next(patience.seconds(60)))
    return found


# A window of one packet keeps the order, so that of bytes that are written twice the last ones stay.
@pytest.mark.parametrize("kind", [".so", ".elf"])
@pytest.mark.parametrize(
    ("name", "handlers"),
    [("simple", "frame_ddt_seek"), ("complex", "frame_ddt_seek"), ("complex", "frame_ddt_segment")],
)
def test_messages_are_unpacked_by_handlers(cable, nic, tmp_path, name, handlers, kind):
    count, messages = 2, 3
    whole = layout.from_text(f"contig({count}, {TYPES[name]})")
    where = np.concatenate([np.arange(at, at + more) for at, more in whole.blocks(limit=whole.size)])
    with nic_types.Unpacked(nic, handlers + kind, TYPES[name], count, messages) as unpacked:
        memory = np.frombuffer(unpacked.shared, np.uint8)[unpacked.first :]
        memory[:] = 0xA5
        expected = memory.copy()

        def send(number: int, *more: str) -> subprocess.Popen:
            words = ["nic", "send", str(tmp_path / str(number)), "10.7.0.2", "--window", "1", "--align", "4"]
            identity = ["--message-id", str(nic_types.wire_id(number))]
            return cable.client.start([SPINLOOM, *words, *identity, *more], stdout=subprocess.DEVNULL)

        packed = [
            np.frombuffer(hashlib.shake_128(bytes([each])).digest(whole.size), np.uint8)
            for each in range(messages)
        ]
        for number, content in enumerate(packed):
            (tmp_path / str(number)).write_bytes(content.tobytes())
        (tmp_path / str(messages)).write_bytes(b"of no message of the context")
        assert send(messages, "--tries", "2").wait(patience.seconds(60)) != 0
        senders = [send(number) for number in range(messages)]
        assert landed(unpacked, messages) == set(range(messages))
        assert [each.wait(patience.seconds(60)) for each in senders] == [0] * messages
        for number, content in enumerate(packed):
            begin = number * unpacked.stride
            expected[begin + where] = content  # the last one counts of places that come twice
            assert bytes(unpacked.memory(number)) == expected[begin : begin + unpacked.span].tobytes()
        assert np.array_equal(memory, expected)


def test_what_handlers_cannot_unpack_is_refused(nic):
    with pytest.raises(Trouble, match="0 B"):
        nic_types.Unpacked(nic, "frame_ddt_seek.so", "contig(0, byte)", 1, 1)
    with pytest.raises(Trouble, match="4 GiB"):
        nic_types.Unpacked(nic, "frame_ddt_seek.so", "contig(200000000, byte)", 1, 40)


def test_registers_of_a_live_nic(cable, nic):
    if shutil.which("ping") is None:
        pytest.skip("there is no ping command (Debian: apt install iputils-ping)")
    assert "context 0: active" in tool("nic", "status", "--name", nic)
    assert tool("nic", "read", "her/valid", "--name", nic).split()[-1] == "0x00000001"
    words = [SPINLOOM, "nic", "write", "her/valid", "0", "--name", nic]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=patience.seconds(60))
    assert refused.returncode == 2
    assert "her/valid/0 cannot be changed: contexts of this NIC" in refused.stderr
    before = int(tool("nic", "read", "counts/sent_by_handlers", "--name", nic).split()[-1], 0)
    cable.client.run(
        ["ping", "-n", "-c", "1", "-W", "1", "10.7.0.2"]
    )  # asks for the address; nobody answers pings
    after = int(tool("nic", "read", "counts/sent_by_handlers", "--name", nic).split()[-1], 0)
    assert after > before
    tool("nic", "write", "spinloom/active/0", "0", "--name", nic)
    assert "context 0: installed, not active" in tool("nic", "status", "--name", nic)


def test_a_nic_that_is_not_there_is_named():
    words = [SPINLOOM, "nic", "receive", "/nonexistent/x", "--name", "nobody"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=patience.seconds(60))
    assert done.returncode != 0
    assert "spinloom nic run --name nobody" in done.stderr
