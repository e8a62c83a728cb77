"""Network namespaces for trying a NIC that is a process: the client's, the NIC's, a cable between them.

Contract: cable() gives a Cable: the client's end, host0, has an address; the NIC's end, nic0, has none and is
for a frame port ("packet:nic0"). The client's kernel cuts what it sends into frames, as on a wire; it leaves
checksums to hardware, which ports mend. Place.command() is a command line that runs in a namespace, run() and
start() run one. Without root, user namespaces are used, where the machine allows them; `rootless` asks for
them also as root. What is missing or refused raises Refused with one sentence.
Invariants: (1) namespaces and interfaces are gone when the with block ends, and also when this process is
killed: a namespace lives as long as a `cat` that reads from a pipe of ours; (2) nothing outside is changed.
Threads: one. Time: host time; commands that do not wait.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

HOLD = ["sh", "-c", "echo ready; exec cat >/dev/null"]


class Refused(Exception):
    """The machine has no namespaces for us; the sentence says what is missing."""


@dataclass
class Place:
    """A network namespace, as long as its holder lives."""

    holder: subprocess.Popen
    rootless: bool

    def command(self, words: list[str]) -> list[str]:
        user = ["--user", "--preserve-credentials"] if self.rootless else []
        return ["nsenter", f"--target={self.holder.pid}", "--net", *user, "--", *words]

    def run(self, words: list[str], **options: Any) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(words), **({"capture_output": True, "text": True} | options))

    def start(self, words: list[str], **options: Any) -> subprocess.Popen:
        return subprocess.Popen(self.command(words), **options)

    def ip(self, text: str) -> None:
        """One call of the ip command, which must succeed."""
        done = self.run(["ip", *text.split()])
        if done.returncode != 0:
            raise Refused(f"ip {text}: {done.stderr.strip()}")


@dataclass
class Cable:
    client: Place
    nic: Place


def _hold(words: list[str], rootless: bool) -> Place:
    holder = subprocess.Popen(
        [*words, *HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if holder.stdout.readline() == "ready\n":
        return Place(holder, rootless)
    _, trouble = holder.communicate()
    raise Refused(f"no network namespace: {trouble.strip() or 'unshare failed'}")


def _let_go(place: Place) -> None:
    place.holder.communicate()  # closes its input, and it ends


@contextlib.contextmanager
def namespace(rootless: bool | None = None) -> Iterator[Place]:
    """A network namespace with nothing but a loopback interface that is up."""
    rootless = os.geteuid() != 0 if rootless is None else rootless
    for tool, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2")):
        if shutil.which(tool) is None:
            raise Refused(f"there is no {tool} command (Debian: apt install {package})")
    place = _hold(["unshare", "--net", *(["--map-root-user"] if rootless else [])], rootless)
    try:
        place.ip("link set lo up")
        yield place
    finally:
        _let_go(place)


@contextlib.contextmanager
def cable(
    address: str = "10.7.0.1/24",
    rootless: bool | None = None,
    client_end: str = "host0",
    nic_end: str = "nic0",
) -> Iterator[Cable]:
    """Two namespaces joined by a veth pair; the client's end has the address."""
    with namespace(rootless) as client:
        nic = _hold(client.command(["unshare", "--net"]), client.rootless)
        try:
            client.ip(f"link add {client_end} type veth peer name {nic_end} netns {nic.holder.pid}")
            for place, end in ((client, client_end), (nic, nic_end)):
                place.ip(f"link set {end} addrgenmode none")
                place.ip(f"link set {end} up")
            client.ip(f"link set {client_end} gso_max_segs 1")
            client.ip(f"address add {address} dev {client_end}")
            yield Cable(client, nic)
        finally:
            _let_go(nic)
