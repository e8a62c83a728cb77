"""`spinloom nic run`: capture files, and a NIC between a client and a kernel, in namespaces.

Every wait has a limit; none is asserted.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import patience
from cables import CLIENT, WAYS
from spinloom.ethernet import namespaces

SPINLOOM = [str(Path(sys.executable).with_name("spinloom")), "nic", "run"]


def checksum(data: bytes) -> int:
    words = struct.unpack(f">{len(data) // 2}H", data) if len(data) % 2 == 0 else ()
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


ASKER, STATION = bytes.fromhex("020000000009"), bytes.fromhex("020000000001")
ASKER_IP, STATION_IP = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


def ip_frame(protocol: int, payload: bytes, back: bool = False, life: int = 33) -> bytes:
    """From the asker to the station, or back."""
    macs, ips = (ASKER + STATION, STATION_IP + ASKER_IP) if back else (STATION + ASKER, ASKER_IP + STATION_IP)
    start = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(payload), 77, 0x4000, life, protocol)
    total = checksum(start + b"\0\0" + ips)
    return macs + b"\x08\x00" + start + struct.pack(">H", total) + ips + payload


def echo(kind: int, sequence: int, data: bytes) -> bytes:
    rest = struct.pack(">HH", 4711, sequence) + data
    return struct.pack(">BBH", kind, 0, checksum(struct.pack(">BBH", kind, 0, 0) + rest)) + rest


def write_pcap(path: Path, frames: list[bytes]) -> None:
    records = (struct.pack("<IIII", 1, 2, len(frame), len(frame)) + frame for frame in frames)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records))


def read_pcap(path: Path) -> list[bytes]:
    data, at, frames = path.read_bytes(), 24, []
    assert data[:4] in (struct.pack("<I", 0xA1B2C3D4), struct.pack("<I", 0xA1B23C4D))
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        frames.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return frames


def spinloom(*words: str, cwd: Path) -> subprocess.CompletedProcess:
    limit = patience.seconds(120)
    return subprocess.run([*SPINLOOM, *words], capture_output=True, text=True, cwd=cwd, timeout=limit)


PINGS = [ip_frame(1, echo(8, turn, bytes(range(2 * turn)))) for turn in range(100)]
# The time to live is 64; everything else but the ends, the kind and the sums is as it was.
PONGS = [ip_frame(1, echo(0, turn, bytes(range(2 * turn))), back=True, life=64) for turn in range(100)]
DATAGRAM = ip_frame(17, struct.pack(">HHHH", 1000, 9, 12, 0) + b"else")


@pytest.mark.parametrize("native", [False, True])
def test_a_capture_file_is_answered_byte_by_byte(tmp_path, native):
    write_pcap(tmp_path / "in.pcap", [*PINGS[:50], DATAGRAM, *PINGS[50:]])
    words = ["--native"] if native else []
    done = spinloom(
        *("--wire", "pcap:in.pcap,out.pcap", "--host-port", "pcap:,host.pcap"),
        *("--handlers", "icmp_echo", "--rules", "icmp", "--address", "10.0.0.2", "--json", *words),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert read_pcap(tmp_path / "out.pcap") == PONGS
    assert read_pcap(tmp_path / "host.pcap") == [DATAGRAM]
    report = json.loads(done.stdout)
    assert report["counts"]["frames received"] == 101
    assert report["counts"]["matched"] == report["counts"]["sent by handlers"] == 100
    assert report["counts"]["bypassed"] == 1
    assert report["contexts"][0]["payload handlers"] == 100


def udp_frame(port: int, payload: bytes) -> bytes:
    """With the checksum as a sender leaves it to its hardware: the sum of the pseudo-header only."""
    length = 8 + len(payload)
    pseudo = ASKER_IP + STATION_IP + struct.pack(">HH", 17, length)
    return ip_frame(17, struct.pack(">HHHH", 1000, port, length, checksum(pseudo) ^ 0xFFFF) + payload)


def arp_request() -> bytes:
    asked = struct.pack(">HHBBH", 1, 0x0800, 6, 4, 1) + ASKER + ASKER_IP + bytes(6) + STATION_IP
    return b"\xff" * 6 + ASKER + b"\x08\x06" + asked + bytes(18)


def timed(path: Path) -> list[tuple[float, bytes]]:
    """Seconds and frames of a capture file that the NIC wrote, which has nanoseconds."""
    data, at, found = path.read_bytes(), 24, []
    while at < len(data):
        seconds, ns, length = struct.unpack_from("<III", data, at)
        found.append((seconds + ns / 1e9, data[at + 16 : at + 16 + length]))
        at += 16 + length
    return found


PATHS = {
    "icmp_echo": ("icmp", lambda turn: PINGS[turn % 100]),
    "udp_echo": ("udp:7", lambda turn: udp_frame(7, b"%4d" % turn)),
    "arp_answer": ("arp", lambda turn: arp_request()),
    "the host": ("icmp", lambda turn: udp_frame(9, b"%4d" % turn)),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("wire", ["pcap:in.pcap,out.pcap", "replay:in.pcap,2,out.pcap"])
def test_an_answer_has_the_time_of_its_request(tmp_path, path, wire):
    """Frames of 200 seconds, three of them at the same time each."""
    rules, frame = PATHS[path]
    frames = [(1 + turn // 3, frame(turn)) for turn in range(600)]
    records = b"".join(struct.pack("<IIII", second, 5, len(one), len(one)) + one for second, one in frames)
    (tmp_path / "in.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records)
    handlers = path if path != "the host" else "icmp_echo"
    done = spinloom(
        *("--wire", wire, "--host-port", "pcap:,host.pcap", "--handlers", handlers),
        *("--rules", rules, "--address", "10.0.0.2"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    answers = timed(tmp_path / ("host.pcap" if path == "the host" else "out.pcap"))
    rounds = 2 if wire.startswith("replay") else 1
    assert [seconds for seconds, _ in answers] == [second + 5e-6 for second, _ in frames] * rounds


COUNTS = """
#include "spinloom/frame.h"
/* Counts frames and bytes in its state, and sends each frame back as often as its first constant says. */
int payload_handler(const ptl_payload_t p, void *state) {
  const uint32_t *const times = spl_constants();
  uint32_t *const counts = state;
  counts[0] += 1;
  for (uint32_t i = 0; i < *times; ++i) (void)spl_send_frame(spl_frame(), p.length, NULL);
  return DROP;
}
int initialise_handler(void *state) {
  *(uint32_t *)state = 41;
  return *(const uint32_t *)spl_constants() > 5 ? FAIL : SUCCESS;
}
"""
CONFIG = """
wire = "pcap:in.pcap,out.pcap"
[[context]]
handlers = "mine.c"
rules = {{ rule = [{{ word = 9, mask = 0xffff0000, value = 0x00090000 }}] }}
constants = [{times}]
state_bytes = 64
[[context]]
handlers = "icmp_echo"
rules = "icmp.toml"
"""


def test_a_file_says_what_the_contexts_are(tmp_path):
    (tmp_path / "mine.c").write_text(COUNTS)
    (tmp_path / "nic.toml").write_text(CONFIG.format(times=3))
    (tmp_path / "icmp.toml").write_text("[[rule]]\nword = 5\nmask = 0xff\nvalue = 1\n")
    write_pcap(tmp_path / "in.pcap", [DATAGRAM, PINGS[3]])
    done = spinloom("--config", "nic.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_pcap(tmp_path / "out.pcap") == [DATAGRAM] * 3 + [PONGS[3]]
    assert "dropped by handlers" in done.stdout
    (tmp_path / "out.pcap").unlink()
    (tmp_path / "nic.toml").write_text(CONFIG.format(times=6))
    done = spinloom("--config", "nic.toml", cwd=tmp_path)
    assert done.returncode != 0
    assert "its initialise_handler has failed" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--handlers icmp_echo --rules icmp", "--wire"),
        ("--wire pcap:in.pcap,", "does nothing"),
        ("--wire pcap:no.pcap, --handlers icmp_echo --rules icmp", "no.pcap"),
        ("--wire pcap:in.pcap, --handlers icmp_eko --rules icmp", "icmp_echo"),
        ("--wire pcap:in.pcap, --handlers icmp_echo --rules tcp", "udp:PORT"),
        ("--wire pcap:in.pcap, --handlers icmp_echo --rules icmp --address 10.0.0", "10.0.0"),
        ("--wire pcap:in.pcap, --handlers icmp_echo --handlers udp_echo --rules icmp", "--rules"),
        ("--wire pcap:in.pcap, --handlers missing.c --rules icmp", "missing.c"),
        ("--wire bus:1 --handlers icmp_echo --rules icmp", "tap:"),
        ("--config none.toml", "none.toml"),
        ("--config bad.toml", "mask"),
    ],
)
def test_trouble_is_one_sentence(tmp_path, words, said):
    write_pcap(tmp_path / "in.pcap", [])
    bad = '[[context]]\nhandlers = "icmp_echo"\nrules = { rule = [{ word = 1, mask = -1, value = 0 }] }\n'
    (tmp_path / "bad.toml").write_text('wire = "pcap:in.pcap,"\n' + bad)
    done = spinloom(*words.split(), cwd=tmp_path)
    assert done.returncode in (2, 3), done.stdout
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "--wire pcap:in.pcap,out.pcap --handlers no.elf --rules icmp",
        "--wire pcap:in.pcap,out.pcap --host-port pcap:,there.pcap --handlers icmp_echo --rules icmp",
        "--wire record:out.pcap,pcap:in.pcap --handlers icmp_echo --rules icmp --address 10.0.0",
    ],
)
def test_a_start_that_fails_leaves_the_files_as_they_were(tmp_path, words):
    write_pcap(tmp_path / "in.pcap", PINGS)
    (tmp_path / "there.pcap").write_text("dear to me")
    assert spinloom(*words.split(), cwd=tmp_path).returncode in (2, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.pcap", "there.pcap"]
    assert (tmp_path / "there.pcap").read_text() == "dear to me"


def test_an_empty_capture_gives_an_empty_capture(tmp_path):
    write_pcap(tmp_path / "in.pcap", [])
    words = ["--wire", "pcap:in.pcap,out.pcap", "--host-port", "pcap:,host.pcap"]
    done = spinloom(*words, "--handlers", "icmp_echo", "--rules", "icmp", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert read_pcap(tmp_path / "out.pcap") == read_pcap(tmp_path / "host.pcap") == []


SAYS = """
#include "spinloom/frame.h"
int payload_handler(const ptl_payload_t p, void *state) {
  (void)spl_debug("a frame of", p.length);
  return DROP;
}
"""


@pytest.mark.parametrize(
    ("times", "lost"), [(2, ""), (501, "spinloom: 2 more lines of handlers are not shown\n")]
)
def test_what_handlers_print_is_seen(tmp_path, times, lost):
    (tmp_path / "says.c").write_text(SAYS)
    write_pcap(tmp_path / "in.pcap", [DATAGRAM, PINGS[3]])
    done = spinloom(
        *(
            "--wire",
            f"record:seen.pcap,replay:in.pcap,{times}",
            "--handlers",
            "says.c",
            "--rules",
            "all",
            "--json",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["contexts"][0]["payload handlers"] == 2 * times
    assert lost == "" or done.stderr.endswith(lost)
    said = re.findall(r"^([01])\.([0-7]): a frame of (\d+)$", done.stderr, re.MULTILINE)
    assert [int(length) for _, _, length in said] == [len(DATAGRAM), len(PINGS[3])] * min(times, 500)


FAULTS = """
#include "spinloom/frame.h"
int initialise_handler(void *state) { return spl_debug("begins", 1); }
int payload_handler(const ptl_payload_t p, void *state) { return *(volatile int *)16; }
"""


def test_the_first_fault_of_a_context_is_said(tmp_path):
    (tmp_path / "faults.c").write_text(FAULTS)
    write_pcap(tmp_path / "in.pcap", PINGS)
    done = spinloom("--wire", "pcap:in.pcap", "--handlers", "faults.c", "--rules", "all", cwd=tmp_path)
    assert done.returncode == 0
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("spinloom: context")]
    assert "context 0: the payload handler" in told
    assert "later faults are only counted" in told
    assert "0.0: begins 1" in done.stderr


ENDLESS = """
#include "spinloom/frame.h"
int {kind}_handler({arguments}) {{
  (void)spl_debug("never ends", 1);
  for (;;) __asm__ volatile("");
}}
"""
PAYLOAD = ENDLESS.format(kind="payload", arguments="const ptl_payload_t p, void *state")
INITIALISE = (
    ENDLESS.format(kind="initialise", arguments="void *state")
    + "int payload_handler(const ptl_payload_t p, void *state) { return DROP; }"
)


@pytest.mark.parametrize(
    ("source", "number", "named"),
    [
        (PAYLOAD, signal.SIGINT, "the payload handler of context 0"),
        (PAYLOAD, signal.SIGTERM, "the payload handler of context 0"),
        (INITIALISE, signal.SIGTERM, "the initialise handler of context 0"),
    ],
)
def test_a_native_handler_that_never_ends_is_named_and_ended(tmp_path, source, number, named):
    (tmp_path / "endless.c").write_text(source)
    write_pcap(tmp_path / "in.pcap", PINGS)
    process = subprocess.Popen(
        [*SPINLOOM, "--wire", "pcap:in.pcap", "--handlers", "endless.c", "--rules", "all", "--native"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=patience.default_signals,
    )
    with process:
        try:
            assert process.stderr.readline().endswith("never ends 1\n")
            process.send_signal(number)
            if number == signal.SIGINT:
                assert (
                    process.stderr.readline()
                    == f"spinloom: {named} has not ended; Ctrl-C again ends the process\n"
                )
                process.send_signal(number)
            _, said = process.communicate(timeout=patience.seconds(60))
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert said.startswith(
        f"spinloom: {named} does not end: the process ends without its report; in the sandbox"
    )
    assert len(said.splitlines()) == 1


# ---- on a cable ----


@pytest.fixture(params=WAYS)
def cable(request):
    try:
        with namespaces.cable(rootless=request.param) as made:
            yield made
    except namespaces.Refused as refused:
        pytest.skip(str(refused))


class Nic:
    """`spinloom nic run` in the NIC's namespace; its report when it has ended by a Ctrl-C."""

    def __init__(self, place: namespaces.Place, *words: str):
        self.process = place.start(
            [*SPINLOOM, "--json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=patience.default_signals,
        )
        said = self.process.stderr.readline()
        if not re.match(r"spinloom\d+: ", said):
            self.process.communicate()
            pytest.skip(said.strip())

    def end(self) -> dict:
        self.process.send_signal(signal.SIGINT)
        out, trouble = self.process.communicate(timeout=patience.seconds(60))
        assert self.process.returncode == 0, trouble
        return json.loads(out)


def ping(place: namespaces.Place, target: str, *words: str) -> subprocess.CompletedProcess:
    if shutil.which("ping") is None:
        pytest.skip("there is no ping command (Debian: apt install iputils-ping)")
    wait = str(int(patience.seconds(20)))
    return place.run(["ping", "-n", "-c", "5", "-i", "0.2", "-W", wait, *words, target])


ANSWERS = ("--handlers", "icmp_echo", "--rules", "icmp", "--handlers", "arp_answer", "--rules", "arp")


@pytest.mark.parametrize("kind", ["packet", "xdp"])
@pytest.mark.parametrize("native", [True, False])
def test_ping_is_answered_by_the_nic(cable, kind, native):
    words = ["--native"] if native else []
    nic = Nic(cable.nic, "--wire", f"{kind}:nic0", *ANSWERS, "--address", "10.7.0.2", *words)
    done = ping(cable.client, "10.7.0.2", "-s", "1400")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 received" in done.stdout
    report = nic.end()
    icmp, arp = report["contexts"]
    assert icmp["payload handlers"] >= 5
    assert arp["payload handlers"] >= 1
    assert report["counts"]["sent by handlers"] == icmp["payload handlers"] + arp["payload handlers"]
    assert report["counts"]["handler faults"] == 0


def test_a_socket_gets_its_datagrams_back_from_the_nic(cable):
    nic = Nic(
        cable.nic,
        *("--wire", "packet:nic0", "--address", "10.7.0.2"),
        *("--handlers", "udp_echo", "--rules", "udp:7", "--handlers", "arp_answer", "--rules", "arp"),
    )
    lengths = [0, 1, 17, 18, 19, 1000, 1471, 1472] * 10
    words = [sys.executable, "-c", CLIENT, "10.7.0.2", str(patience.seconds(20)), *map(str, lengths)]
    done = cable.client.run(words)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(lengths)
    assert nic.end()["contexts"][0]["payload handlers"] == len(lengths)


FORWARDED = """
import socket, sys, time
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("10.7.0.1", 9000))
receiver.settimeout(0.05)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
number, until = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:  # those that come before the address is known are dropped
    sender.sendto(b"%d" % number, ("10.7.0.2", 7000))
    number += 1
    try:
        payload, (address, port) = receiver.recvfrom(100)
        print(int(payload), address)
        break
    except TimeoutError:
        pass
"""


def test_a_handler_forwards_where_the_protocol_unit_finds_the_way(cable, tmp_path):
    """Its unit asks the client's kernel for the Ethernet address of 10.7.0.1."""
    words = struct.unpack(
        "<3I", socket.inet_aton("10.7.0.2") + socket.inet_aton("10.7.0.1") + b"\x23\x28\0\0"
    )
    (tmp_path / "nic.toml").write_text(
        'wire = "packet:nic0"\naddress = "10.7.0.2"\n'
        '[[context]]\nhandlers = "arp_unit"\nrules = "arp"\n'
        f'[[context]]\nhandlers = "udp_forward"\nrules = "udp:7000"\nconstants = {list(words)}\n'
    )
    nic = Nic(cable.nic, "--config", str(tmp_path / "nic.toml"))
    done = cable.client.run([sys.executable, "-c", FORWARDED, str(patience.seconds(20))])
    assert done.returncode == 0, done.stderr
    number, address = done.stdout.split()
    assert int(number) >= 1, "the first one is dropped"
    assert address == "10.7.0.2"
    report = nic.end()
    assert report["counts"]["mails"] >= 2
    assert report["counts"]["handler faults"] == 0


def test_the_kernel_behind_the_nic_has_what_no_rule_takes(cable):
    """Its device tap0 has the address and answers ARP and ping; the NIC answers datagrams for port 7."""
    nic = Nic(
        cable.nic,
        *("--wire", "packet:nic0", "--host-port", "tap:tap0,10.7.0.2/24"),
        *("--handlers", "udp_echo", "--rules", "udp:7", "--native"),
    )
    done = ping(cable.client, "10.7.0.2")
    assert done.returncode == 0, done.stdout + done.stderr
    words = [sys.executable, "-c", CLIENT, "10.7.0.2", str(patience.seconds(20)), "5", "500"]
    assert cable.client.run(words).stdout.strip() == "2"
    # The kernel behind the NIC asks, too, and the client answers.
    done = ping(cable.nic, "10.7.0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    report = nic.end()
    assert report["contexts"][0]["payload handlers"] == 2
    assert report["counts"]["bypassed"] >= 6  # ARP, five pings, five answers to the kernel's
    assert report["counts"]["sent by the host"] >= 6
    assert report["counts"]["lost on the way to the host"] == 0


def test_a_wire_that_goes_away_ends_the_nic_with_a_reason(cable):
    nic = Nic(cable.nic, "--wire", "packet:nic0", *ANSWERS)
    cable.nic.ip("link delete nic0")
    _, trouble = nic.process.communicate(timeout=patience.seconds(60))
    assert nic.process.returncode not in (0, None)
    assert "nic0" in trouble


@pytest.mark.parametrize("kind", ["packet", "xdp"])
def test_an_interface_has_one_nic(cable, kind):
    """A NIC that is killed leaves the interface to the next."""
    nic = Nic(cable.nic, "--wire", "packet:nic0", *ANSWERS)
    second = cable.nic.run([*SPINLOOM, "--wire", f"{kind}:nic0", *ANSWERS], timeout=patience.seconds(60))
    assert second.returncode == 3
    assert "another NIC has the interface nic0" in second.stderr
    nic.process.kill()
    nic.process.communicate(timeout=patience.seconds(60))
    Nic(cable.nic, "--wire", "packet:nic0", *ANSWERS).end()


# Of an interface: checksums, segmentation and GRO by hardware, no ARP, and whether IPv6 is disabled.
LOOK = """
import ctypes, fcntl, pathlib, socket, struct, sys
name = sys.argv[1].encode()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    for command in (0x16, 0x1E, 0x23, 0x2B):
        value = bytearray(struct.pack("II", command, 0))
        place = (ctypes.c_char * 8).from_buffer(value)
        fcntl.ioctl(end, 0x8946, struct.pack("16sQ16x", name, ctypes.addressof(place)))
        print(struct.unpack("II", value)[1])
    print(struct.unpack("16xH", fcntl.ioctl(end, 0x8913, name.ljust(18, b"\\0")))[0] & 0x80)
print(pathlib.Path(f"/proc/sys/net/ipv6/conf/{sys.argv[1]}/disable_ipv6").read_text())
"""


def test_a_nic_that_ends_puts_back_what_it_has_changed(cable):
    def look() -> str:
        return cable.nic.run([sys.executable, "-c", LOOK, "nic0"], check=True).stdout

    before = look()
    nic = Nic(cable.nic, "--wire", "packet:nic0", *ANSWERS)
    assert look() != before
    nic.end()
    assert look() == before
    refused = cable.nic.run(
        [*SPINLOOM, "--wire", "packet:nic0", "--handlers", "/proc/self/status.so", "--rules", "icmp"],
        timeout=patience.seconds(60),
    )
    assert refused.returncode != 0
    assert look() == before
