"""tools/slmp.lua: what tshark shows of packets of SLMP that this test writes into a capture."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from patience import seconds

ROOT = Path(__file__).resolve().parents[2]
EOM, SYN, ACK, REPORT = 0x8000, 0x4000, 0x2000, 0x1000
SENDER, RECEIVER = ("10.0.0.1", 40000), ("10.0.0.2", 9330)

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="there is no tshark")


def frame(source: tuple[str, int], target: tuple[str, int], payload: bytes) -> bytes:
    """Ethernet, IPv4 and UDP around a payload; without checksums, as in captures of a sender."""
    udp = struct.pack("!HHHH", source[1], target[1], 8 + len(payload), 0) + payload
    addresses = b"".join(bytes(map(int, host.split("."))) for host, _ in (source, target))
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses + udp
    return bytes(12) + b"\x08\x00" + ip


def packet(flags: int, message: int, offset: int, payload: bytes = b"") -> bytes:
    return struct.pack("!HII", flags, message, offset) + payload


def to_receiver(payload: bytes) -> bytes:
    return frame(SENDER, RECEIVER, payload)


def to_sender(payload: bytes) -> bytes:
    return frame(RECEIVER, SENDER, payload)


@pytest.fixture
def shown(tmp_path):
    """shown(frames, field...) are the fields of each frame, of frames that are 1 ms apart."""

    def run(frames: list[bytes], *fields: str) -> list[list[str]]:
        capture = tmp_path / "slmp.pcap"
        content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        for number, one in enumerate(frames):
            content += struct.pack("<IIII", 1, number * 1000, len(one), len(one)) + one
        capture.write_bytes(content)
        command = ["tshark", "-n", "-X", f"lua_script:{ROOT}/tools/slmp.lua", "-r", capture, "-T", "fields"]
        for field in fields:
            command += ["-e", field]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds(120))
        assert done.returncode == 0, done.stderr
        assert "Lua" not in done.stderr, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    return run


def test_it_shows_every_field(shown):
    rows = shown(
        [
            to_receiver(packet(SYN, 7, 0, bytes(1408))),
            to_sender(packet(ACK, 7, 0)),
            to_receiver(packet(0, 7, 1408, bytes(1408))),
            to_receiver(packet(EOM | SYN, 0xFFFFFFFF, 0xFFFFFFFE, b"ab")),
        ],
        *("slmp.flags", "slmp.message", "slmp.offset", "slmp.length", "_ws.col.Protocol", "_ws.col.Info"),
    )
    assert rows == [
        ["0x4000", "7", "0", "1408", "SLMP", "SYN message 7 offset 0 length 1408"],
        ["0x2000", "7", "0", "0", "SLMP", "ACK message 7 offset 0"],
        ["0x0000", "7", "1408", "1408", "SLMP", "message 7 offset 1408 length 1408"],
        [
            "0xc000",
            "4294967295",
            "4294967294",
            "2",
            "SLMP",
            "SYN EOM message 4294967295 offset 4294967294 length 2",
        ],
    ]


# Frames leave 1 ms apart: the acknowledgement in frame 4 is of frame 3, so its round trip is 1 ms.
def test_it_pairs_packets_with_acknowledgements_and_repeats(shown):
    rows = shown(
        [
            to_receiver(packet(SYN, 7, 0, b"abcd")),
            to_sender(packet(ACK, 8, 0)),
            to_receiver(packet(SYN, 7, 0, b"abcd")),
            to_sender(packet(ACK, 7, 0)),
        ],
        *("slmp.acknowledges", "slmp.repeats", "slmp.round_trip", "_ws.col.Info"),
    )
    assert [row[:2] for row in rows] == [["", ""], ["", ""], ["", "1"], ["3", ""]]
    assert float(rows[3][2]) == pytest.approx(0.001, abs=1e-6)
    assert rows[2][3] == "SYN message 7 offset 0 again length 4"


def test_it_shows_reports(shown):
    rows = shown(
        [
            to_receiver(packet(SYN | REPORT, 7, 0, b"abcd")),
            to_sender(packet(ACK | REPORT, 7, 0, b"\x00\x00\x01\x00")),
            to_sender(packet(ACK, 7, 0)),
        ],
        *("slmp.flags.report", "slmp.room", "slmp.acknowledges", "_ws.expert.message", "_ws.col.Info"),
    )
    assert [row[0] in ("1", "True") for row in rows] == [True, True, False]
    assert [row[1:] for row in rows] == [
        ["", "", "", "SYN REPORT message 7 offset 0 length 4"],
        ["256", "1", "", "ACK REPORT message 7 offset 0 room 256"],
        ["", "1", "", "ACK message 7 offset 0"],
    ]


def test_it_names_what_is_wrong(shown):
    expected = {
        "Shorter than a header": packet(SYN, 7, 0)[:9],
        "A reserved flag is set": packet(SYN | 1, 7, 0),
        "ACK with SYN or EOM, or REPORT without ACK or SYN": packet(ACK | SYN, 7, 4),
        "ACK with a payload that is no report": packet(ACK | REPORT, 7, 8, b"xyz"),
        "Several packets, which are cut after this capture": packet(SYN, 7, 12, bytes(3000)),
    }
    rows = shown([to_receiver(payload) for payload in expected.values()], "_ws.expert.message")
    assert rows == [[sentence] for sentence in expected]
