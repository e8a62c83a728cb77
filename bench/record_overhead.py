"""The cost of recording: LAMMPS (lmp) with and without, in turns; and ns for a call (bench/record_calls.c).

    .venv/bin/python bench/record_overhead.py [PAIRS] [RANKS]

Host time. LAMMPS says how long its loop took; nothing else of the job is counted.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from spinloom.traces import recorded

BIN = Path(sys.executable).parent
SOURCE = Path(__file__).with_name("record_calls.c")
MELT = """
units lj
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
run 50
"""
OPENMPI = ("mpiexec.openmpi", "--oversubscribe", "--allow-run-as-root")
MPIS = {
    "Open MPI": ("mpicc.openmpi", OPENMPI),
    "MPICH": ("mpicc.mpich", ("mpiexec.mpich",)),
}


def run(words: list[str], trace: Path | None, folder: Path) -> str:
    before = [str(BIN / "spinloom"), "record", "--force", "-o", str(trace), "--"] if trace else []
    return subprocess.run([*before, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def melt(pairs: int, ranks: int, folder: Path) -> None:
    (folder / "in.melt").write_text(MELT, encoding="utf-8")
    words = [*OPENMPI, "-n", str(ranks), "lmp", "-in", "in.melt", "-log", "none"]
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(pairs):
        for records in (False, True):
            output = run(words, folder / "trace" if records else None, folder)
            times[records].append(float(re.search(r"Loop time of (\S+)", output)[1]))
    without, with_trace = median(times[False]), median(times[True])
    traces = recorded.read(folder / "trace")
    calls = sum(trace.events for trace in traces)
    size = sum(file.stat().st_size for file in (folder / "trace").glob("rank-*.trace"))
    print(f"LAMMPS melt, {ranks} ranks, {pairs} pairs: {without:.4f} s without, {with_trace:.4f} s recorded,")
    print(f"{100 * (with_trace / without - 1):+.2f} %; {calls} calls, {size / calls:.2f} bytes a call")


def calls(folder: Path) -> None:
    for name, (compiler, launcher) in MPIS.items():
        if shutil.which(compiler) is None or shutil.which(launcher[0]) is None:
            continue
        program = folder / "calls"
        subprocess.run([compiler, "-O2", "-w", "-o", str(program), str(SOURCE)], check=True)
        words = [*launcher, "-n", "1", str(program)]
        times: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(3):
            for records in (False, True):
                times[records].append(float(run(words, folder / "trace" if records else None, folder)))
        without, with_trace = min(times[False]), min(times[True])
        print(f"{name}: {without:.1f} ns a call without, {with_trace:.1f} ns recorded")


def main() -> None:
    pairs, ranks = (int(word) for word in [*sys.argv[1:], *("9", "2")[len(sys.argv) - 1 :]])
    with tempfile.TemporaryDirectory() as folder:
        calls(Path(folder))
        if shutil.which("lmp"):
            melt(pairs, ranks, Path(folder))


if __name__ == "__main__":
    main()
