"""Bandwidth of live rails over networks of a given speed, between two imitated machines.

Each rail is UDP over a network of its own, whose machines send through the kernel's token bucket (tc, tbf).
So the networks are the bottleneck, not this machine. bench/rails_bandwidth.c compares every byte.

    python tests/live/shaped_rails.py build/release/live

prints the table of docs/rails.md. It needs root, an mpiexec of MPICH, and a quiet machine for half a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench/rails_bandwidth.c"


def seconds_of_a_round(program: Path, rates: Sequence[int], window: int, rounds: int, size: int) -> float:
    """The median; `rates` are Mbit/s, one for each rail."""
    from machines import machines

    with tempfile.TemporaryDirectory() as folder, machines(Path(folder), 2) as two:
        for network, rate in enumerate(rates):
            for index in range(2 if network else 0):
                two.cable(index, network)
            two.shape(network, rate)
        done = subprocess.run(
            ["mpiexec", "-n", "2", two.rank_shell(1), program, str(len(rates)), "tag"]
            + [str(number) for number in (window, rounds, size)],
            env={
                **os.environ,
                "SPINLOOM_RAILS": ",".join(f"udp=10.77.{n}.0/24" for n in range(len(rates))),
            },
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return float(done.stdout.split(",")[4]) / 1e6


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests"))
    library = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "rails_bandwidth"
        linked = [f"-L{library}", "-lportals", f"-Wl,-rpath,{library}"]
        subprocess.run(["cc", "-O2", f"-I{ROOT}/include", BENCH, "-o", program, *linked], check=True)
        print("| rails, Mbit/s each | one of 16 MiB | ratio | 16 of 1 MiB | ratio |\n|---|---|---|---|---|")
        first = []
        for rates in ([200], [200] * 2, [200] * 4, [200, 100], [200, 100, 200, 100]):
            took = [
                seconds_of_a_round(program, rates, *shape) for shape in ((1, 3, 16 << 20), (16, 3, 1 << 20))
            ]
            first = first or took
            cells = [
                f"{(16 << 20) / t / 1e6:.1f} MB/s | {f / t:.2f}" for t, f in zip(took, first, strict=True)
            ]
            print(f"| {', '.join(map(str, rates))} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
