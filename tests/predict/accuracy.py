"""How good `spinloom predict` is on this machine: recorded programs beside their predictions by its own MPI.

    python tests/predict/accuracy.py --mpi mpicc.openmpi [--mpi mpicc.mpich] [--realtime] [--docs PAGE]

Each program is recorded several times, each time after the MPI's parameters were measured; the row is that of
the median error of its communication time. --realtime gives the ranks a real-time priority (root), for
machines on which others work. All times are host times of the recording but the predicted ones.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.bench import mpi_parameters
from spinloom.nics import machines
from spinloom.nics.layout_prices import ResultStore
from spinloom.predict import predict
from spinloom.predict.predict_ways import MEASURED, RECORDED_HOST

FOLDER = Path(__file__).resolve().parent / "programs"
SPINLOOM = Path(sys.executable).parent / "spinloom"
MS = 1e9  # ps
BEGIN, END = "<!-- accuracy -->", "<!-- /accuracy -->"
REALTIME_PRIORITY = 20
LAMMPS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
run 250
"""


# Of Debian's quantum-espresso-data; its example of silicon carbide has the potential.
POTENTIAL = Path("/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz")
SILICON = """&control
calculation='scf', prefix='si', pseudo_dir='{folder}', outdir='{folder}/silicon'
/
&system
ibrav=2, celldm(1)=10.20, nat=2, ntyp=1, ecutwfc=40.0
/
&electrons
/
ATOMIC_SPECIES
Si 28.086 Si.UPF
ATOMIC_POSITIONS alat
Si 0.00 0.00 0.00
Si 0.25 0.25 0.25
K_POINTS automatic
4 4 4 1 1 1
"""


@dataclass(frozen=True)
class Program:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """ms: time until the last rank ends, and the ranks' mean time in communication."""

    total: tuple[float, float]  # measured, predicted
    communication: tuple[float, float]

    @staticmethod
    def error(pair: tuple[float, float]) -> float:
        return pair[1] / pair[0] - 1


def programs(about: dict[str, Any], folder: Path) -> list[Program]:
    """Those that this machine has: LAMMPS and Quantum ESPRESSO only for the MPI that they were built with."""
    for name in ("jacobi", "fft2d"):
        subprocess.run(
            [about["compiler"], "-O2", "-w", FOLDER / f"{name}.c", "-o", folder / name, "-lm"],
            check=True,
            timeout=300,
        )
    runnable = [
        Program("halo exchange, 512 x 512 a rank, 500 steps", (str(folder / "jacobi"), "512", "500")),
        Program("FFT2D, 512 x 512, 80 times", (str(folder / "fft2d"), "512", "80")),
        Program("FFT2D, 1024 x 1024, 20 times", (str(folder / "fft2d"), "1024", "20")),
    ]
    if "Open MPI" not in about["mpi"]:
        return runnable
    if lammps := shutil.which("lmp"):
        (folder / "in.melt").write_text(LAMMPS)
        runnable.append(
            Program(
                "LAMMPS melt, 4,000 atoms, 250 steps",
                (lammps, "-in", str(folder / "in.melt"), "-log", "none"),
            )
        )
    espresso = shutil.which("pw.x")
    if espresso and POTENTIAL.exists():
        (folder / "Si.UPF").write_bytes(gzip.decompress(POTENTIAL.read_bytes()))
        (folder / "si.in").write_text(SILICON.format(folder=folder))
        runnable.append(
            Program("Quantum ESPRESSO, silicon, 10 k-points", (espresso, "-in", str(folder / "si.in")))
        )
    return runnable


def ran(command: list[Any], folder: Path) -> None:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    settings = {**root, "OMP_NUM_THREADS": "1"}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()[-400:]}")


def calibrate(compiler: str, folder: Path) -> mpi_parameters.MpiParameters:
    path = folder / "mpi.json"
    ran([SPINLOOM, "calibrate", "mpi", compiler, "--passes", "3", "--out", path, "-q"], folder)
    return mpi_parameters.read(path)


def compare(program: Program, compiler: str, folder: Path) -> Comparison:
    parameters = calibrate(compiler, folder)
    trace = folder / "trace"
    shutil.rmtree(trace, ignore_errors=True)
    launched = [parameters.about["launcher"], "-n", "2", *program.command]
    ran([SPINLOOM, "record", "-o", trace, "--", *launched], folder)
    request = predict.Request(trace, [], parameters=parameters)
    table = predict.predict(request, machines.machine(), ResultStore(None))
    rows = {row["way"]: row for row in table.rows}
    pairs = [
        (rows[MEASURED][name] / MS, rows[RECORDED_HOST][name] / MS)
        for name in ("time_ps", "communication_ps")
    ]
    return Comparison(*pairs)


def table_of(mpi: str, comparisons_by_name: dict[str, list[Comparison]]) -> str:
    lines = [
        f"{mpi}, 2 ranks:",
        "",
        "| program | communication: measured | predicted | error | errors of all runs "
        "| total: measured | predicted | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in comparisons_by_name.items():
        by_error = sorted(runs, key=lambda run: Comparison.error(run.communication))
        run = by_error[len(by_error) // 2]
        communication, total = (
            f"{pair[0]:.1f} ms | {pair[1]:.1f} ms | {Comparison.error(pair):+.1%}"
            for pair in (run.communication, run.total)
        )
        least, most = (Comparison.error(by_error[place].communication) for place in (0, -1))
        lines.append(f"| {name} | {communication} | {least:+.0%} to {most:+.0%} | {total} |")
    return "\n".join(lines) + "\n"


def table_for(compiler: str, runs: int) -> str:
    with tempfile.TemporaryDirectory(prefix="spinloom-accuracy-") as name:
        folder = Path(name)
        about = calibrate(compiler, folder).about
        comparisons_by_name = {
            program.name: [compare(program, compiler, folder) for _ in range(runs)]
            for program in programs(about, folder)
        }
    return table_of(about["mpi"], comparisons_by_name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", required=True, action="append", help="a compiler, such as mpicc.openmpi")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--docs", type=Path, help="a page whose table is renewed")
    arguments = parser.parse_args()
    if arguments.realtime:  # programs that it starts as well
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REALTIME_PRIORITY))
    text = "\n".join(table_for(compiler, arguments.runs) for compiler in arguments.mpi)
    print(text)
    if arguments.docs is not None:
        page = arguments.docs.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        arguments.docs.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
