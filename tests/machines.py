"""Machines that are imitated on this one, for jobs that span several.

Each has its own network namespace with an address on a common bridge, its own host name, process ids, /proc,
/etc/hosts and /dev/shm. Other files are shared, as on a cluster with one file system. A machine lives as long
as its process 1, and everything that runs in it ends with that; a process keeps the bridge as well. So
nothing has a name outside, and sessions of tests side by side do not meet. All of these processes end when
the one that made them does, however that ends, because each reads a pipe from it.

The first machine also sees the process ids of the others. So a script on the first machine can enter another
one: launchers get it in place of ssh.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from patience import seconds, until

LETTERS = "abcdefgh"
TOOLS = ("ip", "nsenter", "unshare", "mount")
OWN_NAMESPACES = ("--net", "--uts", "--ipc", "--pid", "--mount")

# Runs a command on the machine of the rank, when something on this one starts the ranks.
RANK_SHELL = """#!/bin/sh
case $((PMI_RANK / {each})) in
{cases}
esac
exec nsenter --target "$id" {namespaces} --wd=/ -- "$@"
"""

# What process 1 of a machine does. It says its process id, as seen from here and from the machines around it.
FIRST_PROCESS = """
set -e
name=$1 hosts=$2
while read -r key ids; do if [ "$key" = NSpid: ]; then said=$ids; fi; done < /proc/self/status
mount -t proc proc /proc
mount -t tmpfs tmpfs /dev/shm
mount --bind "$hosts" /etc/hosts
echo "$name" > /proc/sys/kernel/hostname
trap '' CHLD
echo $said
exec cat > /dev/null
"""

# In place of ssh: as there, the command is words for a shell, and no variable goes with it.
REMOTE_SHELL = """#!/bin/sh
while true; do case $1 in -*) shift ;; *) break ;; esac; done
host=$1; shift
read -r id name < {folder}/"$host" || exit 255
exec nsenter --target "$id" {namespaces} --wd=/ -- \\
  env -i HOME="$HOME" PATH="$PATH" TMPDIR={folder}/files-"$name" sh -c "$*"
"""


@dataclass
class Machine:
    name: str
    address: str
    holder: subprocess.Popen[str]
    first: int  # its process 1, as seen from here

    def words(self, *command: str | Path, folder: str | Path = "/") -> list[str]:
        """Returns the words that run a command in the machine."""
        entered = ["nsenter", "--target", str(self.first), *OWN_NAMESPACES, f"--wd={folder}", "--"]
        return [*entered, *map(str, command)]

    def ip(self, *words: str) -> None:
        """Changes its network."""
        run("nsenter", "--target", str(self.first), "--net", "ip", *words)

    def die(self) -> None:
        """Nothing of it goes on. Those with a connection to it hear that, unless it was unplugged before."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first, signal.SIGKILL)
        self.holder.wait()


@dataclass
class Machines:
    folder: Path  # the folder of their files, the same for all
    switch: subprocess.Popen[str]
    remote_shell: Path
    members: list[Machine] = field(default_factory=list)

    def __getitem__(self, index: int) -> Machine:
        return self.members[index]

    @property
    def names(self) -> str:
        return ",".join(machine.name for machine in self.members)

    def ip(self, *words: str) -> None:
        """Changes the network between them."""
        run("nsenter", "--target", str(self.switch.pid), "--net", "ip", *words)

    def cable(self, index: int, network: int = 0) -> str:
        """A new interface netN of a machine, with the address 10.77.N.INDEX+1, and its bridge."""
        machine, end = self.members[index], f"{LETTERS[index]}{network}"
        there = ("peer", "name", f"net{network}", "netns", str(machine.first))
        with contextlib.suppress(subprocess.CalledProcessError):  # it is there
            self.ip("link", "add", f"bridge{network}", "type", "bridge", "forward_delay", "0")
        self.ip("link", "set", f"bridge{network}", "up")
        self.ip("link", "add", end, "type", "veth", *there)
        self.ip("link", "set", end, "master", f"bridge{network}", "up")
        address = f"10.77.{network}.{index + 1}"
        machine.ip("addr", "add", f"{address}/24", "dev", f"net{network}")
        machine.ip("link", "set", f"net{network}", "up")
        return address

    def unplug(self, index: int, network: int = 0) -> None:
        """Nothing comes from the machine any more, and nothing goes there."""
        self.ip("link", "set", f"{LETTERS[index]}{network}", "down")

    def shape(self, network: int, mbit: int) -> None:
        """Limits each machine's sending into the network to this rate, by a token bucket of the kernel."""
        bucket = ("tbf", "rate", f"{mbit}mbit", "burst", "64kb", "latency", "50ms")
        for machine in self.members:
            entered = ("nsenter", "--target", str(machine.first), "--net")
            run(*entered, "tc", "qdisc", "replace", "dev", f"net{network}", "root", *bucket)

    def rank_shell(self, each: int) -> Path:
        """A program that runs its arguments on the machine of the rank PMI_RANK; `each` ranks have one."""
        cases = "\n".join(f"  {index}) id={machine.first} ;;" for index, machine in enumerate(self.members))
        path = self.folder / f"rank-shell-{each}"
        text = RANK_SHELL.format(each=each, cases=cases, namespaces=" ".join(OWN_NAMESPACES))
        return program(path, text)

    def run(self, *command: str | Path, limit_s: float, **settings: str) -> subprocess.CompletedProcess[str]:
        """The end of a command that runs on the first machine, with these variables."""
        return subprocess.run(
            self.members[0].words(*command, folder=self.folder),
            env={**os.environ, "TMPDIR": str(self.folder / f"files-{self.members[0].name}"), **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def nothing_runs(self, program: Path) -> bool:
        """Waits until no process on any machine runs the program; False if one still does at the end."""

        def running() -> bool:
            for entry in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if os.readlink(entry / "exe") == str(program):
                        return True
            return False

        return until(lambda: not running())


def program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, text=True)


def started(*words: str) -> tuple[subprocess.Popen[str], str]:
    """A process that goes on until its input ends, and its first line."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    line = process.stdout.readline()
    if not line:
        raise subprocess.CalledProcessError(process.wait(), words, stderr=process.stderr.read())
    return process, line


def end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Those of started(), all at once, because a machine takes its time to end what runs in it."""
    for process in processes:
        with contextlib.suppress(OSError):
            process.stdin.close()
    for process in processes:
        try:
            process.wait(seconds(20))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


@contextlib.contextmanager
def machines(folder: Path, count: int, first_interface: str = "") -> Iterator[Machines]:
    """Machines a, b and so on with the addresses 10.77.0.1, 10.77.0.2 and so on.

    The first interface of each may be one that leads nowhere, with this address: a container engine's bridge
    has the same one on all machines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shell = REMOTE_SHELL.format(folder=shlex.quote(str(folder)), namespaces=" ".join(OWN_NAMESPACES))
    remote_shell = program(folder / "remote-shell", shell)
    first = program(folder / "first-process", FIRST_PROCESS)
    hosts = folder / "hosts"
    lines = [f"10.77.0.{i + 1} {LETTERS[i]}" for i in range(count)]
    hosts.write_text("\n".join(["127.0.0.1 localhost", *lines]) + "\n", encoding="utf-8")
    with contextlib.ExitStack() as stack:
        switch, _ = started("unshare", "--net", "sh", "-c", "echo is there; exec cat > /dev/null")
        processes = [switch]
        stack.callback(end, processes)
        cluster = Machines(folder, switch, remote_shell)
        for index in range(count):
            name = LETTERS[index]
            inside = ["nsenter", "--target", str(cluster[0].first), "--pid", "--"] if index else []
            apart = ["unshare", *OWN_NAMESPACES, "--fork", "--kill-child"]
            holder, ids = started(*inside, *apart, "sh", str(first), name, str(hosts))
            processes.append(holder)
            seen = ids.split()
            (folder / f"files-{name}").mkdir()
            cluster.members.append(Machine(name, f"10.77.0.{index + 1}", holder, int(seen[0])))
            for known_as in (name, cluster[index].address):
                (folder / known_as).write_text(f"{seen[1] if index else 1} {name}\n", encoding="utf-8")
            cluster[index].ip("link", "set", "lo", "up")
            if first_interface:
                cluster[index].ip("link", "add", "docker0", "type", "bridge")
                cluster[index].ip("addr", "add", f"{first_interface}/16", "dev", "docker0")
                cluster[index].ip("link", "set", "docker0", "up")
            cluster.cable(index)
        yield cluster


@functools.cache
def why_not_shaped() -> str:
    """Returns why the machines' networks cannot be given a speed; empty: they can."""
    if why := why_not():
        return why
    try:
        with tempfile.TemporaryDirectory() as folder, machines(Path(folder), 1) as one:
            one.shape(0, 100)
            return ""
    except (subprocess.CalledProcessError, OSError) as trouble:
        return f"networks cannot be shaped here: {getattr(trouble, 'stderr', '') or trouble}"


@functools.cache
def why_not() -> str:
    """Returns why machines cannot be imitated here; empty: they can."""
    if os.geteuid() != 0:
        return "machines are imitated by root only"
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"machines cannot be imitated without {', '.join(missing)}"
    try:
        with tempfile.TemporaryDirectory() as folder, machines(Path(folder), 2):
            return ""
    except (subprocess.CalledProcessError, OSError) as trouble:
        return f"machines cannot be imitated here: {getattr(trouble, 'stderr', '') or trouble}"
