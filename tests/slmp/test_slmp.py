"""`spinloom nic send` and `receive`, and their C library, over loopback: with each other and plain peers."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from patience import seconds, until
from spinloom import slmp
from spinloom.common import data
from spinloom.common.errors import Trouble
from spinloom.verbs import nic_messages

ROOT = Path(__file__).resolve().parents[2]
EOM, SYN, ACK, REPORT = 0x8000, 0x4000, 0x2000, 0x1000
HEADER = struct.Struct("!HII")
CONTENT = bytes(range(256)) * 700 + b"the end"  # 127 packets and a part of one
SPINLOOM = [sys.executable, "-m", "spinloom.cli", "nic"]


class PlainReceiver:
    """What FPsPIN's handlers do: each payload to its offset; the header with ACK alone back to what has SYN.

    `lose` says of a header and of how often it has come whether the network has lost the packet."""

    def __init__(self, size: int, lose=lambda flags, offset, times: False) -> None:
        self.memory = bytearray(size)
        self.packets: list[tuple[int, int, int, int]] = []
        self.peers: set[int] = set()
        self.seen = 0  # lost ones count, too
        self.lose = lose
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    @property
    def place(self) -> tuple[str, int]:
        return self.socket.getsockname()

    def run(self) -> None:
        times: dict[int, int] = {}
        while not self.ended.is_set():
            try:
                packet, peer = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            flags, message, offset = HEADER.unpack_from(packet)
            times[offset] = times.get(offset, 0) + 1
            self.seen += 1
            if self.lose(flags, offset, times[offset]):
                continue
            self.peers.add(peer[1])
            self.packets.append((flags, message, offset, len(packet) - HEADER.size))
            self.memory[offset : offset + len(packet) - HEADER.size] = packet[HEADER.size :]
            if flags & SYN:
                self.socket.sendto(HEADER.pack(ACK, message, offset), peer)

    def __enter__(self) -> PlainReceiver:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        self.socket.close()


def send(place, content=CONTENT, *, message_id=7, window=16, align=64, gap_us=0, threads=1, **options):
    """With deadlines that no busy machine meets."""
    patient = {"silence_ms": int(seconds(240) * 1000)}
    if not options.get("as_original"):
        patient["tries"] = 1000
    return slmp.send(
        content, place, message_id, window, align, gap_us, threads, patient | options, lambda _: None
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("as_original", [0, 1])
def test_a_plain_receiver_gets_plain_packets(threads, as_original):
    # Rules: SLMP-1, SLMP-2, SLMP-3, SLMP-4, SLMP-6, SLMP-7, SLMP-11, SLMP-12, SLMP-18, SLMP-23, SLMP-24.
    with PlainReceiver(len(CONTENT)) as receiver:
        sent = send(receiver.place, threads=threads, as_original=as_original)
    assert bytes(receiver.memory) == CONTENT
    offsets = range(0, len(CONTENT), 1408)
    expected = [
        (SYN | (EOM if offset == offsets[-1] else 0), 7, offset, min(1408, len(CONTENT) - offset))
        for offset in offsets
    ]
    assert sorted(set(receiver.packets), key=lambda packet: packet[2]) == expected
    assert (receiver.packets[0], receiver.packets[-1]) == (expected[0], expected[-1])
    assert len(receiver.peers) == 1, "all threads send from one port"
    assert sent.packets == sent.acknowledged == len(expected)


@pytest.mark.parametrize(("mode", "asked"), [("none", 0), ("message", 2), ("segment", 40)])
def test_a_mode_says_what_is_acknowledged(mode, asked):
    # Rules: SLMP-21, SLMP-22.
    content = CONTENT[: 39 * 1408 + 1]
    with PlainReceiver(len(content)) as receiver:
        sent = send(receiver.place, content, mode=slmp.MODES.index(mode))
        assert until(lambda: len(receiver.packets) >= 40)
    assert sum(1 for flags, *_ in receiver.packets if flags & SYN) == asked
    assert sent.acknowledged == asked


def test_a_window_of_0_acknowledges_the_ends_of_the_message_only():
    # Rules: SLMP-24.
    content = CONTENT[: 39 * 1408 + 1]
    with PlainReceiver(len(content)) as receiver:
        send(receiver.place, content, window=0)
        assert until(lambda: len(receiver.packets) >= 40)
    assert [offset // 1408 for flags, _, offset, _ in receiver.packets if flags & SYN] == [0, 39]


@pytest.mark.parametrize(("window", "threads", "under_way"), [(5, 1, 5), (4, 2, 4), (5, 2, 6), (7, 3, 9)])
def test_each_thread_has_its_share_of_the_window_rounded_up(window, threads, under_way):
    """While nothing but the first packet is answered, so many others leave, again and again."""
    # Rules: SLMP-26, SLMP-27.
    came: dict[int, int] = {}
    answers = threading.Event()

    def lose(flags: int, offset: int, times: int) -> bool:
        came[offset] = times
        return offset > 0 and not answers.is_set()

    with PlainReceiver(len(CONTENT), lose) as receiver:
        sending = threading.Thread(
            target=send,
            args=(receiver.place,),
            kwargs={"window": window, "threads": threads, "fixed_window": 1},
        )
        sending.start()
        try:
            assert until(lambda: len(came) > under_way and sorted(came.values())[-under_way] > 1)
            assert len(came) == 1 + under_way
        finally:
            answers.set()
            sending.join()
    assert bytes(receiver.memory) == CONTENT


def test_a_message_is_sent_to_port_9330_unless_another_is_named(spinloom, tmp_path, monkeypatch):
    # Rules: SLMP-9.
    asked = []

    def send_nothing(content, place, *arguments):
        asked.append(place)
        raise Trouble("stalled", "nothing was sent")

    monkeypatch.setattr(nic_messages.protocol, "send", send_nothing)
    (tmp_path / "source").write_bytes(b"bytes")
    for place in ("127.0.0.1", "127.0.0.1:77"):
        assert spinloom("nic", "send", str(tmp_path / "source"), place).code == 1
    assert [port for _, port in asked] == [9330, 77]
    assert re.search(r"#define SLMP_PORT 9330\n", (ROOT / "include/spinloom/slmp.h").read_text())


@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_lost_is_sent_again(threads):
    """Every fifth packet does not come at first, the first and the last neither."""
    # Rules: SLMP-35, SLMP-40.
    lost = {0, *range(0, len(CONTENT), 5 * 1408), len(CONTENT) // 1408 * 1408}
    with PlainReceiver(len(CONTENT), lambda flags, offset, times: offset in lost and times == 1) as receiver:
        sent = send(receiver.place, threads=threads)
    assert bytes(receiver.memory) == CONTENT
    assert sent.retransmitted >= len(lost)
    assert receiver.packets[-1][0] == SYN | EOM, "EOM came when all else was there"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("refuses", [False, True])
def test_who_knows_no_reports_is_asked_by_the_first_packet_alone(threads, refuses):
    # Rules: SLMP-53.
    asked = []

    def lose(flags: int, offset: int, times: int) -> bool:
        if flags & REPORT:
            asked.append((offset, times))
        return refuses and bool(flags & REPORT)

    with PlainReceiver(len(CONTENT), lose) as receiver:
        send(receiver.place, threads=threads, reports=1)
    assert bytes(receiver.memory) == CONTENT
    assert (0, 1) in asked
    assert set(asked) <= {(0, 1), (0, 2)}
    if refuses:
        assert not any(flags & REPORT for flags, *_ in receiver.packets)


def test_reports_are_answered():
    # Rules: SLMP-51.
    with slmp.Receiver(("127.0.0.1", 0), 1000) as receiver:
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.settimeout(seconds(60))
        peer.connect(("127.0.0.1", receiver.port))
        peer.send(HEADER.pack(SYN | REPORT, 9, 0) + bytes(100))
        with pytest.raises(Trouble, match="no message has come whole"):
            receiver.receive(0)
        assert peer.recv(64) == HEADER.pack(ACK | REPORT, 9, 0) + struct.pack("!I", 9)
        peer.close()


def test_reports_need_acknowledgements_and_tries():
    # Rules: SLMP-56.
    with pytest.raises(Trouble, match="every packet must ask for one"):
        send(("127.0.0.1", 9), mode=slmp.MODES.index("message"), reports=1)
    with pytest.raises(Trouble, match="need more than 2 tries"):
        send(("127.0.0.1", 9), as_original=1, reports=1)


def test_without_retransmission_a_loss_is_an_error():
    # Rules: SLMP-32.
    with (
        PlainReceiver(len(CONTENT), lambda flags, offset, times: offset == 1408) as receiver,
        pytest.raises(Trouble, match="was sent 1 time and not acknowledged"),
    ):
        send(receiver.place, tries=0, silence_ms=300)


def test_a_host_where_nobody_listens_is_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        place = free.getsockname()
    with pytest.raises(Trouble, match=f"nobody listens at its UDP port {place[1]}") as failed:
        send(place, tries=2)
    assert failed.value.code == "stalled"


def test_progress_is_told_and_can_end_a_message():
    told = []

    def reached(through: int) -> None:
        told.append(through)
        raise KeyboardInterrupt

    with (
        PlainReceiver(len(CONTENT), lambda flags, offset, times: offset > 1408) as receiver,
        pytest.raises(KeyboardInterrupt),
    ):
        slmp.send(CONTENT, receiver.place, 7, 4, 64, 0, 1, {"tries": 1000}, reached)
    assert told in ([0], [1408], [2 * 1408])


def test_a_plain_sender_is_received():
    """Packets out of order, one twice, one that is no SLMP, and one without SYN."""
    # Rules: SLMP-3, SLMP-14, SLMP-15, SLMP-16, SLMP-17.
    with slmp.Receiver(("127.0.0.1", 0), 1 << 20) as receiver:
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.settimeout(seconds(60))
        peer.connect(("127.0.0.1", receiver.port))
        packets = [(SYN, 0, b"abcd"), (SYN | EOM, 8, b"ij"), (SYN, 0, b"abcd"), (0, 4, b"efgh")]
        for flags, offset, payload in packets:
            peer.send(HEADER.pack(flags, 9, offset) + payload)
        peer.send(b"nonsense")
        received = receiver.receive(seconds(60))
        assert (received.content, received.message_id) == (b"abcdefghij", 9)
        answers = [peer.recv(64) for _ in range(3)]
        assert sorted(answers) == sorted(HEADER.pack(ACK, 9, offset) for flags, offset, _ in packets if flags)
        peer.send(HEADER.pack(SYN | EOM, 9, 8) + b"ij")
        receiver.answer(0.2)
        assert peer.recv(64) == HEADER.pack(ACK, 9, 8), "a repeat after the end is answered"
        peer.close()
        counts = receiver.counts()
        assert (counts["packets"], counts["malformed"], counts["messages"]) == (3, 1, 1)


def test_answers_end_when_another_message_is_whole():
    with slmp.Receiver(("127.0.0.1", 0), 1 << 20) as receiver:
        place = ("127.0.0.1", receiver.port)
        sending = threading.Thread(target=send, args=(place, b"another"))
        sending.start()
        receiver.answer(seconds(240))
        assert receiver.receive(0).content == b"another"
        sending.join()


def receive_command(*arguments: object) -> tuple[subprocess.Popen, int]:
    """The command, and the port at which it listens."""
    started = subprocess.Popen(
        [*SPINLOOM, "receive", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = started.stderr.readline()
    found = re.search(r"at port (\d+)", said)
    assert found, said + started.stderr.read()
    return started, int(found[1])


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--workers", "4", "--window", "100"),
        ("--as-original", "--silence", "240s"),
        ("--reports", "--workers", "2"),
        ("--align", "4", "--gap", "1us", "--window", "1", "--tries", "99"),
    ],
)
@pytest.mark.parametrize("size", [0, 1, 150_000])
def test_the_commands_bring_a_file_over(spinloom, tmp_path, options, size):
    # Rules: SLMP-13.
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT[:size])
    receiver, port = receive_command(target, "--listen", "127.0.0.1:0", "--json", "--linger", "1ms")
    ran = spinloom("nic", "send", str(source), f"127.0.0.1:{port}", *options, "--json")
    out, _ = receiver.communicate(timeout=seconds(240))
    assert (ran.code, receiver.returncode) == (0, 0), ran.err
    (sent,), (received,) = json.loads(ran.out), json.loads(out)
    digest = hashlib.sha256(CONTENT[:size])
    assert sent["sha256"] == received["sha256"] == digest.hexdigest()
    assert sent["message"] == received["message"] == int.from_bytes(digest.digest()[:4], "big")
    assert target.read_bytes() == source.read_bytes()


def test_a_message_that_finds_no_room_is_named_at_both_ends(spinloom, tmp_path):
    # Rules: SLMP-39.
    (tmp_path / "source").write_bytes(CONTENT)
    receiver, port = receive_command(tmp_path / "target", "--listen", "127.0.0.1:0", "--limit", "100KiB")
    try:
        ran = spinloom("nic", "send", str(tmp_path / "source"), f"127.0.0.1:{port}", "--tries", "2")
        assert "packets find no room in 102,400 bytes" in receiver.stderr.readline()
    finally:
        receiver.kill()
        receiver.communicate()
    assert ran.code == 1
    assert "was sent 2 times and not acknowledged" in ran.err
    assert not (tmp_path / "target").exists()


def test_a_sender_that_nobody_answers_says_so_while_it_tries(spinloom, tmp_path, monkeypatch):
    monkeypatch.setattr(nic_messages, "SILENCE_S", 0.01)
    (tmp_path / "source").write_bytes(CONTENT)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        ran = spinloom("nic", "send", str(tmp_path / "source"), place, "--tries", "2")
    assert ran.code == 1
    assert f"nothing answers at port {place.partition(':')[2]} of 127.0.0.1 yet" in ran.err.splitlines()[0]


def test_more_than_four_gibibytes_are_refused_by_name(spinloom, tmp_path):
    # Rules: SLMP-8.
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate((4 << 30) + 1)  # a hole: nothing is on the disk
    ran = spinloom("nic", "send", str(large), "127.0.0.1")
    assert ran.code == 2
    assert "4,294,967,297 bytes: a message of SLMP has 4 GiB at most" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("send", "nosuch", "localhost"), 2, "nosuch cannot be read"),
        (("send", "there", "localhost:x"), 2, "must lie from 0 to 65535"),
        (("send", "there", "localhost", "--align", "1463"), 2, "must lie from 1 to 1462"),
        (("send", "there", "localhost", "--gap", "3 apples"), 2, "accepted forms"),
        (("send", "there", "no host"), 3, "there is no IPv4 address of host 'no host'"),
        (("receive", "there"), 2, "--force"),
        (("receive", "new", "--listen", "203.0.113.7:0"), 3, "203.0.113.7:0 cannot be opened"),
        (
            ("receive", "new", "--listen", "127.0.0.1:0", "--seconds", "0.001"),
            1,
            "within 0.001 s (0 packets have)",
        ),
    ],
)
def test_trouble_is_one_sentence(spinloom, tmp_path, monkeypatch, arguments, code, part):
    monkeypatch.chdir(tmp_path)
    Path("there").write_bytes(b"bytes")
    ran = spinloom("nic", *arguments)
    assert ran.code == code
    assert part in ran.err
    assert Path("there").read_bytes() == b"bytes"
    assert not Path("new").exists()


def test_an_interrupt_ends_a_receiver(tmp_path):
    receiver, _ = receive_command(tmp_path / "target", "--listen", "127.0.0.1:0")
    receiver.send_signal(signal.SIGINT)
    receiver.communicate(timeout=seconds(240))
    assert receiver.returncode == 130


def test_an_interrupt_ends_a_sender(tmp_path):
    (tmp_path / "source").write_bytes(CONTENT)
    with PlainReceiver(len(CONTENT), lambda flags, offset, times: True) as receiver:
        place = f"127.0.0.1:{receiver.place[1]}"
        command = [*SPINLOOM, "send", str(tmp_path / "source"), place, "--tries", "1000"]
        sender = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert until(lambda: receiver.seen > 0)
            sender.send_signal(signal.SIGINT)
            sender.communicate(timeout=seconds(60))
        finally:
            sender.kill()
    assert sender.returncode == 130


# 512 packets * 10 / (10 - 6)
def test_the_window_of_a_receivers_buffer():
    # Rules: SLMP-29, SLMP-30.
    library = slmp.library()
    library.slmp_window.argtypes = [slmp.ctypes.c_uint64] * 3
    library.slmp_window.restype = slmp.ctypes.c_uint64
    assert library.slmp_window(512, 10, 6) == 1280
    assert library.slmp_window(512, 6, 10) == 0


def documented_program() -> str:
    page = (ROOT / "docs/slmp.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    return program


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no cc")
def test_the_documented_program_sends(tmp_path):
    # Rules: SLMP-45.
    prefix = data.prefix()
    (tmp_path / "send.c").write_text(documented_program())
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    linked = [f"-I{prefix}/include", f"{prefix}/lib/libspinloom_slmp.so.0", f"-Wl,-rpath,{prefix}/lib"]
    subprocess.run(["cc", *strict, tmp_path / "send.c", "-o", tmp_path / "send", *linked], check=True)
    with slmp.Receiver(("127.0.0.1", 0), 1 << 20) as receiver:
        started = subprocess.Popen(
            [tmp_path / "send", "127.0.0.1", str(receiver.port)], stdout=subprocess.PIPE, text=True
        )
        received = receiver.receive(seconds(120))
        assert started.communicate(timeout=seconds(120))[0] == "sent 12 bytes in 1 packet(s)\n"
    assert received.content == b"hello, sPIN\n"
