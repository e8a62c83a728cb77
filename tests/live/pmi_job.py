"""A launcher that leaves ranks alone: PMI-1 over a socket each, so that one may die and the others go on.

The launchers of MPI libraries end a whole job when one of its processes is killed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

JOBS = itertools.count()


@dataclass
class Rank:
    process: subprocess.Popen
    link: socket.socket
    output: Path
    heard: bytes = b""

    @property
    def text(self) -> str:
        return self.output.read_text()


@dataclass
class Job:
    """Started ranks and what they publish to each other; use it in a `with`, at whose end none is left."""

    command: list[str]
    size: int
    env: dict[str, str] = field(default_factory=dict)
    ranks: list[Rank] = field(default_factory=list)
    published: dict[str, str] = field(default_factory=dict)
    arrived: set[int] = field(default_factory=set)
    aborts: list[str] = field(default_factory=list)  # what ranks that abort the job give as exit code
    nodes: int = 1  # the launcher's number of them: 0 says nothing

    def __enter__(self) -> Job:
        self.name = f"tests_{os.getpid()}_{next(JOBS)}_{time.monotonic_ns()}"
        if self.nodes:
            self.published["PMI_process_mapping"] = f"(vector,(0,{self.nodes},{self.size // self.nodes}))"
        self.folder = tempfile.TemporaryDirectory()
        self.ready = selectors.DefaultSelector()
        for rank in range(self.size):
            ours, theirs = socket.socketpair()
            settings = {"PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank), "PMI_SIZE": str(self.size)}
            output = Path(self.folder.name) / str(rank)
            with output.open("w") as out:
                process = subprocess.Popen(
                    self.command,
                    env={**os.environ, **self.env, **settings},
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                )
            theirs.close()
            self.ranks.append(Rank(process, ours, output))
            self.ready.register(ours, selectors.EVENT_READ, rank)
        return self

    def __exit__(self, *_) -> None:
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.kill()
            rank.process.wait()
            rank.link.close()
        self.ready.close()
        self.folder.cleanup()

    def wait(self, limit_s: float, until=None) -> list[int | None]:
        """Serves the ranks until all have ended, or until(job) holds; their exit codes, or None."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            for key, _ in self.ready.select(timeout=0.05):
                self._hear(key.data)
            codes = [rank.process.poll() for rank in self.ranks]
            for key, _ in self.ready.select(timeout=0):  # the last words of ranks that have ended meanwhile
                self._hear(key.data)
            if None not in codes or (until is not None and until(self)):
                return codes
        return [rank.process.poll() for rank in self.ranks]

    def said(self) -> str:
        return "".join(f"[{number}] {rank.text}" for number, rank in enumerate(self.ranks))

    def _hear(self, number: int) -> None:
        rank = self.ranks[number]
        with contextlib.suppress(ConnectionError):
            more = rank.link.recv(4096)
            rank.heard += more
            if more:
                *lines, rank.heard = rank.heard.split(b"\n")
                for line in lines:
                    self._answer(number, dict(word.split("=", 1) for word in line.decode().split()))
                return
        self.ready.unregister(rank.link)

    def _answer(self, number: int, asked: dict[str, str]) -> None:
        match asked["cmd"]:
            case "init":
                self._say(number, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
            case "get_my_kvsname":
                self._say(number, f"cmd=my_kvsname kvsname={self.name}")
            case "put":
                self.published[asked["key"]] = asked["value"]
                self._say(number, "cmd=put_result rc=0")
            case "get":
                found = self.published.get(asked["key"])
                self._say(number, f"cmd=get_result rc=0 value={found}" if found else "cmd=get_result rc=-1")
            case "barrier_in":
                self.arrived.add(number)
                if len(self.arrived) == self.size:
                    self.arrived.clear()
                    for other in range(self.size):
                        self._say(other, "cmd=barrier_out rc=0")
            case "abort":
                self.aborts.append(asked["exitcode"])
            case "finalize":
                self._say(number, "cmd=finalize_ack rc=0")

    def _say(self, number: int, line: str) -> None:
        self.ranks[number].link.sendall(line.encode() + b"\n")
