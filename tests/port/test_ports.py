"""Frame ports in namespaces: a process behind a port answers sockets and ping; the kernel keeps quiet.

The process is spinloom_port_echo, which `make check-cpp` builds. Every wait has a limit; none is asserted.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import patience
from cables import CLIENT, WAYS
from spinloom.ethernet import namespaces

ROOT = Path(__file__).resolve().parents[2]
ECHO = Path(os.environ.get("SPINLOOM_TEST_BUILD", ROOT / "build/release")) / "bin/spinloom_port_echo"
pytestmark = pytest.mark.skipif(not ECHO.exists(), reason="there is no spinloom_port_echo: make check-cpp")


@pytest.fixture(params=WAYS)
def cable(request):
    try:
        with namespaces.cable(rootless=request.param) as made:
            yield made
    except namespaces.Refused as refused:
        pytest.skip(str(refused))


class Station:
    """spinloom_port_echo in a namespace; the counters when it has ended."""

    def __init__(self, place: namespaces.Place, port: str, address: str = "10.7.0.2"):
        self.process = place.start(
            [str(ECHO), port, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.description = self.process.stdout.readline()
        if not self.description:
            _, trouble = self.process.communicate()
            pytest.skip(trouble.strip())

    def end(self) -> dict[str, int]:
        out, trouble = self.process.communicate(timeout=patience.seconds(60))
        assert self.process.returncode == 0, trouble
        words = out.split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def echoed(place: namespaces.Place, target: str, lengths: list[int]) -> int:
    limit = patience.seconds(20)
    done = place.run([sys.executable, "-c", CLIENT, target, str(limit), *map(str, lengths)])
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


# One call that the kernel cuts into ten datagrams of 500 bytes (UDP_SEGMENT of linux/udp.h).
CUT = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    end.settimeout(float(sys.argv[2]))
    end.connect((sys.argv[1], 7))
    end.send(b"the way is known")
    end.recv(100)
    end.setsockopt(socket.IPPROTO_UDP, 103, 500)
    data = [bytes([turn]) * 500 for turn in range(10)]
    end.send(b"".join(data))
    print(sum(end.recv(65536) == one for one in data))
"""


def pings(place: namespaces.Place, target: str, count: int, wait: int) -> subprocess.CompletedProcess:
    if shutil.which("ping") is None:
        pytest.skip("there is no ping command (Debian: apt install iputils-ping)")
    return place.run(["ping", "-n", "-c", str(count), "-i", "0.2", "-W", str(wait), target])


# 1472 bytes fill a frame of 1514.
LENGTHS = [0, 1, 2, 17, 18, 19, 1000, 1471, 1472] * 20


@pytest.mark.parametrize("kind", ["packet", "xdp"])
def test_a_socket_gets_its_datagrams_back(cable, kind):
    station = Station(cable.nic, f"{kind}:nic0")
    assert echoed(cable.client, "10.7.0.2", LENGTHS) == len(LENGTHS)
    counters = station.end()
    # An ARP request and the datagrams at least; the kernel of the client may ask again.
    assert counters["received"] >= len(LENGTHS) + 1
    assert counters["sent"] >= len(LENGTHS) + 1
    assert counters["dropped"] == counters["truncated"] == 0


@pytest.mark.parametrize("kind", ["packet", "xdp"])
def test_what_the_kernel_cuts_late_comes_in_frames(cable, kind):
    station = Station(cable.nic, f"{kind}:nic0")
    done = cable.client.run([sys.executable, "-c", CUT, "10.7.0.2", str(patience.seconds(20))])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 10
    assert station.end()["truncated"] == 0


@pytest.mark.parametrize("kind", ["packet", "xdp"])
def test_ping_is_answered_by_the_process_only(cable, kind):
    cable.nic.ip(
        "address add 10.7.0.3/32 dev lo"
    )  # Linux answers for each of its addresses on each interface
    station = Station(cable.nic, f"{kind}:nic0")
    answered = pings(cable.client, "10.7.0.2", 3, 20)
    assert answered.returncode == 0, answered.stdout
    assert "DUP!" not in answered.stdout
    assert "3 received" in answered.stdout
    assert pings(cable.client, "10.7.0.3", 1, 1).returncode == 1
    mac = station.description.split("(")[1][:17]
    cable.client.ip(f"neighbour replace 10.7.0.3 lladdr {mac} dev host0")  # it need not be found by ARP
    assert pings(cable.client, "10.7.0.3", 1, 1).returncode == 1
    station.end()


def test_a_quiet_end_has_no_kernel_without_the_process_either(cable):
    """Without an address, nobody answers; the ends are joined all the same."""
    assert pings(cable.client, "10.7.0.2", 1, 1).returncode == 1
    station = Station(cable.nic, "packet:nic0")
    assert echoed(cable.client, "10.7.0.2", [100]) == 1
    station.end()


@pytest.mark.parametrize("rootless", WAYS)
def test_a_tap_device_is_a_cable_to_the_kernel(rootless):
    try:
        with namespaces.namespace(rootless) as place:
            station = Station(place, "tap:tap0,10.7.0.1/24")
            assert echoed(place, "10.7.0.2", LENGTHS) == len(LENGTHS)
            counters = station.end()
            assert counters["received"] >= len(LENGTHS) + 1
            assert counters["truncated"] == 0
    except namespaces.Refused as refused:
        pytest.skip(str(refused))


def test_other_tools_read_what_a_file_port_writes(tmp_path):
    """A question in a capture file, made by hand here; the answer as tcpdump reads it."""
    if shutil.which("tcpdump") is None:
        pytest.skip("there is no tcpdump command (Debian: apt install tcpdump)")
    here, asked, answers = bytes.fromhex("020000000001"), tmp_path / "asked.pcap", tmp_path / "answers.pcap"
    arp = bytes.fromhex("0001080006040001") + here + bytes([10, 7, 0, 1]) + bytes(6) + bytes([10, 7, 0, 2])
    frame = b"\xff" * 6 + here + b"\x08\x06" + arp + bytes(18)
    file = struct.pack(">IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    asked.write_bytes(file + struct.pack(">IIII", 1_700_000_000, 250_000, len(frame), len(frame)) + frame)
    done = subprocess.run(
        [str(ECHO), f"pcap:{asked},{answers}", "10.7.0.2"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert "received 1 sent 1" in done.stdout
    read = subprocess.run(["tcpdump", "-n", "-tt", "-r", str(answers)], capture_output=True, text=True)
    assert read.stdout.startswith("1700000000.250000 ARP, Reply 10.7.0.2 is-at 02:53:4c"), (
        read.stdout + read.stderr
    )


@pytest.mark.parametrize("rootless", WAYS)
def test_nothing_is_left_after_the_block(rootless):
    try:
        with namespaces.cable(rootless=rootless) as made:
            holders = [made.client.holder, made.nic.holder]
            assert all(holder.poll() is None for holder in holders)
    except namespaces.Refused as refused:
        pytest.skip(str(refused))
    assert all(holder.poll() == 0 for holder in holders)


def test_nothing_is_left_of_a_process_that_was_killed():
    program = (
        "import spinloom.ethernet.namespaces as n\n"
        "with n.cable() as made:\n"
        "    print(made.client.holder.pid, made.nic.holder.pid, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as user:
        line = user.stdout.readline()
        if not line:
            pytest.skip(user.communicate()[1].strip().splitlines()[-1])
        holders = [Path("/proc") / word for word in line.split()]
        assert all(holder.exists() for holder in holders)
        user.send_signal(signal.SIGKILL)
        user.wait()
        assert patience.until(lambda: all(map(ended, holders)))


def ended(process: Path) -> bool:
    """Gone, or waiting for somebody to ask how it ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_missing_right_is_said_with_what_helps():
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        if shutil.which("setpriv") is None:
            pytest.skip("there is no setpriv command (Debian: apt install util-linux)")
    else:
        words = []
    done = subprocess.run(
        [*words, str(ECHO), "packet:lo", "10.7.0.2"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode not in (2, 3):
        pytest.skip(f"cannot run it as another user: {done.stderr.strip()}")
    assert "127.0.0.1" in done.stderr or "unshare --map-root-user --net" in done.stderr
