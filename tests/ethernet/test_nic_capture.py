"""A message of SLMP out of a capture that was taken on the sender, before hardware fills in checksums."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from spinloom.common import core, data
from spinloom.ethernet import nic_receive
from test_nic import ASKER_IP, STATION_IP, checksum, ip_frame, read_pcap, spinloom, write_pcap

PORT, SEGMENT = 9330, 1462
EOM, SYN, ACK = 0x8000, 0x4000, 0x2000
MESSAGE = bytes(number * 7 % 251 for number in range(38 * SEGMENT - 600))


def packet(offset: int, damaged: bool = False) -> bytes:
    """The checksum field holds the sum of the pseudo-header, as Linux leaves it."""
    flags = (SYN if offset == 0 else 0) | (EOM | SYN if offset + SEGMENT >= len(MESSAGE) else 0)
    payload = struct.pack(">HII", flags, 77, offset) + MESSAGE[offset : offset + SEGMENT]
    length = 8 + len(payload)
    left = checksum(ASKER_IP + STATION_IP + struct.pack(">HH", 17, length)) ^ 0xFFFF
    return ip_frame(17, struct.pack(">HHHH", 4711, PORT, length, left ^ damaged) + payload)


FRAMES = [packet(offset) for offset in range(0, len(MESSAGE), SEGMENT)]


def received(folder: Path, image: str) -> tuple[bytes, list[int], int]:
    """What slmp_file has in host memory, armed as its program does it; counters; its `armed` at the end."""
    engine = core.load()
    card = engine.Card(f"pcap:{folder / 'in.pcap'},{folder / 'out.pcap'}", None, 4, 1.0)
    segments = 1024
    constants = bytes(8) + STATION_IP + struct.pack("<QI", 1 << 20, segments)
    state_bytes = nic_receive.state_bytes(segments)
    state = bytes(nic_receive.STATE) + struct.pack("<I", 1)
    path = str(data.folder("handlers") / f"slmp_file{image}")
    card.install(0, path, constants, state, state_bytes, nic_receive.FILE_OFFSET + len(MESSAGE))
    card.activate(0, True)
    card.configure([engine.rules_named("slmp")])
    card.run(None)
    counters = struct.unpack_from("<3I", card.state(0), nic_receive.STATE + 36)
    (armed,) = struct.unpack_from("<I", card.state(0), nic_receive.STATE)
    return card.host_memory(0)[nic_receive.FILE_OFFSET :][: len(MESSAGE)], list(counters), armed


@pytest.mark.parametrize("image", [".elf", ".so"])
def test_a_capture_of_the_sender_is_a_whole_message(tmp_path, image):
    write_pcap(tmp_path / "in.pcap", FRAMES)
    message, refused_wrong_repeated, armed = received(tmp_path, image)
    assert (refused_wrong_repeated, armed) == ([0, 0, 0], 3)
    assert message == MESSAGE
    answers = read_pcap(tmp_path / "out.pcap")
    assert [struct.unpack_from(">HII", frame, 42) for frame in answers] == [
        (ACK, 77, 0),
        (ACK, 77, (len(FRAMES) - 1) * SEGMENT),
    ]


def test_damage_in_a_capture_is_still_found(tmp_path):
    write_pcap(tmp_path / "in.pcap", [*FRAMES[:5], packet(5 * SEGMENT, damaged=True), *FRAMES[6:]])
    _, refused_wrong_repeated, armed = received(tmp_path, ".elf")
    assert (refused_wrong_repeated, armed) == ([0, 1, 0], 2)


def test_handlers_that_wait_for_their_program_say_so(tmp_path):
    write_pcap(tmp_path / "in.pcap", FRAMES)
    words = ("--wire", "pcap:in.pcap,out.pcap", "--handlers", "slmp_file", "--rules", "slmp")
    done = spinloom(*words, "--address", "10.0.0.2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "slmp_file takes no packet until its program asks for a message" in done.stderr
    assert "spinloom nic receive FILE --name NAME" in done.stderr
    row, *_ = [line.split() for line in done.stdout.splitlines() if line.startswith(" slmp_file")]
    assert row[2:5] == [
        "38",
        f"{sum(map(len, FRAMES)):,}",
        "-",
    ]  # it has neither header nor completion handlers
    assert read_pcap(tmp_path / "out.pcap") == []
    (tmp_path / "out.pcap").unlink()
    done = spinloom(*words, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["contexts"][0]["messages"] == 0
