"""Portals calls between two processes of this machine against UCX and libfabric: a table of host time.

    python tools/live_bench.py --program build/release/bin/spinloom_portals_bench [--repeat 5] [--csv FILE]

Every number is a median of runs that take turns with the peers: what else the machine does meets all alike.
lat is half a round trip, rate counts puts, bw streams messages, idle is what a rank takes of its processors
while it waits. In look, get, fetch and swap the target looks at its memory only: look is half a round trip of
puts, the others last from the call until the reply is there. Transports: shm, udp, bridge (udp through a
gateway, a third process of the machine), and libfabric's providers tcp and shm, below us and below
fi_pingpong. That program waits for an answer to each message, so compare its lat; in bw only UCX streams,
too. Ratios are ours over the best of the peers' for that row: of times, below 1 is faster; of rates, above 1
is. The heap's are of buffers that the peer maps. The file has the numbers of all peers.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

SECONDS_MAX = 60
LOOPBACK = {"SPINLOOM_UDP_ADDRESS": "127.0.0.1"}  # the peers are measured there, too
SETTINGS = {
    "shm": {"SPINLOOM_TRANSPORT": "shm"},
    "udp": {"SPINLOOM_TRANSPORT": "udp"},
    "bridge": {"SPINLOOM_TRANSPORT": "udp"},
    "fabric tcp": {"SPINLOOM_TRANSPORT": "fabric", "SPINLOOM_FABRIC": "tcp"},
    "fabric shm": {"SPINLOOM_TRANSPORT": "fabric", "SPINLOOM_FABRIC": "shm"},
}
# Two networks of the loopback, which differ in their length only: no rank of one sees a way to the other.
APART = ("127.0.0.1/31", "127.0.0.1/30")


@dataclass(frozen=True)
class Row:
    """A line of the table: one kind of transfer of one size over one transport."""

    transport: str
    kind: str  # lat, look, get, fetch, swap, rate, bw, idle
    size_bytes: int
    rounds: int

    @property
    def unit(self) -> str:
        return {"rate": "M/s", "bw": "GB/s", "idle": "us/s"}.get(self.kind, "us")

    @property
    def name(self) -> str:
        if self.kind == "idle":
            return f"{self.transport} {self.kind}"
        size = next(f"{self.size_bytes >> by} {unit}" for by, unit in UNITS if self.size_bytes >> by)
        return f"{self.transport} {self.kind} {size}"

    @property
    def lower_is_better(self) -> bool:
        return self.unit == "us"


UNITS = ((20, "MiB"), (10, "KiB"), (0, "B"))
ALONE = ("look", "get", "fetch", "swap")  # the target calls nothing
ROWS = [
    Row("shm", "lat", 8, 50_000),
    *(Row("shm", kind, 8, 20_000) for kind in ALONE),
    Row("shm", "rate", 8, 1_000_000),
    Row("shm", "bw", 64 << 10, 5_000),
    Row("shm", "bw", 1 << 20, 2_000),
    Row("shm", "bw", 64 << 20, 20),
    Row("shm", "idle", 8, 1_000),
    Row("udp", "lat", 8, 5_000),
    Row("udp", "lat", 64 << 10, 500),
    Row("udp", "lat", 1 << 20, 50),
    Row("udp", "bw", 64 << 10, 500),
    Row("udp", "bw", 1 << 20, 50),
    Row("bridge", "lat", 8, 5_000),
    Row("bridge", "lat", 64 << 10, 500),
    Row("bridge", "lat", 1 << 20, 50),
    Row("bridge", "bw", 64 << 10, 500),
    Row("bridge", "bw", 1 << 20, 50),
    Row("fabric tcp", "lat", 8, 5_000),
    Row("fabric tcp", "lat", 64 << 10, 500),
    Row("fabric tcp", "lat", 1 << 20, 50),
    Row("fabric tcp", "bw", 64 << 10, 1_000),
    Row("fabric tcp", "bw", 1 << 20, 200),
    Row("fabric shm", "lat", 8, 20_000),
    Row("fabric shm", "lat", 1 << 20, 200),
]


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    return done.stdout if done.returncode == 0 else ""


def with_server(server: list[str], client: list[str], **environment: str) -> str:
    """The client's output, of two programs that find each other on this machine."""
    behind = subprocess.Popen(
        server,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.4)
        return run(client, **environment)
    except subprocess.TimeoutExpired:
        return ""
    finally:
        behind.kill()
        behind.wait()


def ours(program: Path, mpiexec: str, *arguments: str, **environment: str) -> Callable[[Row], float | None]:
    """`heap`: of buffers that the peer maps."""
    kinds = {"bw", *ALONE} if arguments else {"bw"} if environment else None

    def measure(row: Row) -> float | None:
        if kinds and (row.transport != "shm" or row.kind not in kinds):
            return None
        words = [str(program), row.kind, str(row.size_bytes), str(row.rounds), *arguments]
        if row.transport == "bridge":
            output = run([mpiexec, *bridged(program, words)], **SETTINGS[row.transport]).strip()
        else:
            settings = {**SETTINGS[row.transport], **LOOPBACK, **environment}
            output = run([mpiexec, "-n", "2", *words], **settings).strip()
        if not output:
            return None
        return float(output) / {"rate": 1e6, "bw": 1e9}.get(row.kind, 1)

    return measure


def bridged(program: Path, words: list[str]) -> list[str]:
    """mpiexec's words: two ranks on networks of their own, and a gateway on both."""
    near = (folder / "bin/spinloom-gateway" for folder in program.resolve().parents)
    gateway = next((path for path in near if path.exists()), Path("spinloom-gateway"))
    launch_words: list[str] = []
    for networks, command in ((APART[0], words), (APART[1], words), (",".join(APART), [str(gateway)])):
        launch_words += [":"] if launch_words else []
        launch_words += ["-n", "1", "-env", "SPINLOOM_UDP_ADDRESS", networks, *command]
    return launch_words


UCX_TESTS = {
    "lat": "tag_lat",
    "look": "ucp_put_lat",
    "get": "ucp_get",
    "fetch": "ucp_fadd",
    "swap": "ucp_swap",
}


def ucx(transports: str) -> Callable[[Row], float | None]:
    def measure(row: Row) -> float | None:
        if row.transport != "shm" or row.kind == "idle":
            return None
        test = UCX_TESTS.get(row.kind, "tag_bw")
        port = free_port()
        options = ["-p", str(port), "-t", test, "-s", str(row.size_bytes), "-n", str(row.rounds)]
        if row.kind in ALONE:
            options += ["-O", "1"]  # one after the other
        output = with_server(
            ["ucx_perftest", "-p", str(port)],
            ["ucx_perftest", "localhost", *options],
            UCX_TLS=transports,
        )
        final = [line.split() for line in output.splitlines() if line.startswith("Final:")]
        if not final:
            return None
        average_us, overall_rate = float(final[-1][4]), float(final[-1][-1])
        if row.lower_is_better:
            return average_us
        return overall_rate / 1e6 if row.kind == "rate" else overall_rate * row.size_bytes / 1e9

    return measure


def libfabric(provider: str, endpoint: str, *transports: str) -> Callable[[Row], float | None]:
    def measure(row: Row) -> float | None:
        if row.transport not in transports or row.kind not in ("lat", "bw"):
            return None
        if row.transport.startswith("fabric") and row.kind == "bw":
            return None
        port = str(free_port())
        options = [
            "-p",
            provider,
            "-e",
            endpoint,
            "-S",
            str(row.size_bytes),
            "-I",
            str(max(row.rounds // 10, 20)),
        ]
        output = with_server(
            ["fi_pingpong", *options, "-B", port],
            ["fi_pingpong", *options, "-P", port, "127.0.0.1"],
        )
        lines = [line.split() for line in output.splitlines() if re.match(r"^\d", line)]
        if not lines:
            return None
        megabytes_s, us = float(lines[-1][5]), float(lines[-1][6])
        return us if row.kind == "lat" else megabytes_s / 1e3

    return measure


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


OURS = ("spinloom", "spinloom heap", "spinloom two-copy")


def contenders(program: Path, mpiexec: str) -> dict[str, Callable[[Row], float | None]]:
    by_name: dict[str, Callable[[Row], float | None]] = {
        OURS[0]: ours(program, mpiexec),
        OURS[1]: ours(program, mpiexec, "heap"),
        OURS[2]: ours(program, mpiexec, SPINLOOM_COPY="two-copy"),
    }
    if shutil.which("ucx_perftest"):
        by_name["ucx posix"] = ucx("posix,self")
        by_name["ucx posix+cma"] = ucx("posix,cma,self")
    if shutil.which("fi_pingpong"):
        by_name["libfabric shm"] = libfabric("shm", "rdm", "shm", "fabric shm")
        by_name["libfabric udp"] = libfabric("udp", "dgram", "udp")
        by_name["libfabric tcp"] = libfabric("tcp", "rdm", "udp", "fabric tcp")
    return by_name


def measure_all(
    rows: list[Row], measures_by_name: dict[str, Callable[[Row], float | None]], repeat: int, console: Console
):
    """Medians by row and contender; what cannot be measured is missing."""
    samples: dict[tuple[Row, str], list[float]] = {}
    with console.status("") as status:
        for turn in range(repeat):
            for row in rows:
                for name, measure in measures_by_name.items():
                    status.update(
                        f"run {turn + 1} of {repeat}: {row.transport} {row.kind} {row.size_bytes} B, {name}"
                    )
                    value = measure(row)
                    if value is not None:
                        samples.setdefault((row, name), []).append(value)
    return {key: statistics.median(values) for key, values in samples.items()}


def best_peer(row: Row, medians: dict) -> tuple[float, str] | None:
    peers = [(v, n) for (r, n), v in medians.items() if r == row and not n.startswith(OURS[0])]
    if not peers:
        return None
    return min(peers) if row.lower_is_better else max(peers)


def cells_of(row: Row, medians: dict) -> list[str]:
    best = best_peer(row, medians)
    own_medians = [medians.get((row, way)) for way in OURS]
    ratios = [value / best[0] if value is not None and best else None for value in own_medians[:2]]
    return [
        row.name,
        row.unit,
        *("" if value is None else f"{value:.3g}" for value in own_medians),
        f"{best[0]:.3g} {best[1]}" if best else "",
        *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--mpiexec", default=shutil.which("mpiexec.hydra") or shutil.which("mpiexec"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", choices=SETTINGS, help="one transport")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 100)
    if not arguments.mpiexec:
        console.print("no mpiexec: install an MPI (the Python package mpich has one)")
        return 3
    rows = [row for row in ROWS if arguments.only in (None, row.transport)]
    measures_by_name = contenders(arguments.program, arguments.mpiexec)
    for tool, package in (("ucx_perftest", "ucx-utils"), ("fi_pingpong", "libfabric-bin")):
        if not shutil.which(tool):
            console.print(f"skipped: {tool} is not installed (Debian: {package})")
    medians = measure_all(rows, measures_by_name, arguments.repeat, console)
    table = Table(
        title=f"two processes of this machine, host time, medians of {arguments.repeat} runs that take turns",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in ("what", "unit", "ours", "heap", "two-copy", "best peer", "ratio", "heap's"):
        table.add_column(column, justify="left" if column in ("what", "best peer") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*cells_of(row, medians))
    console.print(table)
    if arguments.csv:
        with arguments.csv.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(["transport", "kind", "size_bytes", "unit", "contender", "median"])
            for (row, name), value in medians.items():
                out.writerow([row.transport, row.kind, row.size_bytes, row.unit, name, f"{value:.6g}"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
