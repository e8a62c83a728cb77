"""Eight workers as threads of one rank, as ranks on threads, as processes: a table of rates, taken in turns.

python tools/threads_bench.py [--build build/release] [--workers 8] [--repeat 3] [--factor 1]
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
from pathlib import Path

CASES = {"8 B": (8, 20_000), "1 MiB": (1 << 20, 60)}  # bytes, rounds of each sender


def rate(command: list[str]) -> float:
    """Messages a second of all workers, from the first one's start to the last one's end."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    spans = re.findall(r"sent (\d+) from ([\d.]+) to ([\d.]+)", done.stdout)
    start, end = min(float(span[1]) for span in spans), max(float(span[2]) for span in spans)
    return sum(int(span[0]) for span in spans) / (end - start)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", type=Path, default=Path("build/release"))
    options.add_argument("--workers", type=int, default=8)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--factor", type=float, default=1, help="of the numbers of rounds")
    arguments = options.parse_args()
    program = str(arguments.build / "bin/threads_bench")
    workers = str(arguments.workers)
    ways = {
        "threads of one rank": [program, workers],
        "ranks on threads": [str(arguments.build / "bin/spinloom-threads"), "-n", workers, program, "1"],
    }
    if launcher := shutil.which("mpiexec.hydra"):
        ways["ranks as processes"] = [launcher, "-n", workers, program, "1"]
    for name, (size, rounds) in CASES.items():
        rates_by_way: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(arguments.repeat):
            for way, command in ways.items():
                rates_by_way[way].append(
                    rate([*command, str(size), str(max(1, int(rounds * arguments.factor)))])
                )
        for way, rates in rates_by_way.items():
            median = statistics.median(rates)
            shown = f"{median / 1e6:.3f} M messages/s" if size < 4096 else f"{median * size / 1e9:.2f} GB/s"
            print(f"{name:6} {way:22} {shown}  (from {min(rates):.0f} to {max(rates):.0f} messages/s)")


if __name__ == "__main__":
    main()
