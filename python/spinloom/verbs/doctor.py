"""`spinloom doctor`: the parts that this machine has, and the use of each missing part.

Optional parts are normal to miss. Exit code 3 when a part is missing that `spinloom simulate` needs, or with
--mpi every MPI; 1 when bytes were wrong under an MPI.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import click
from rich.table import Table

from spinloom import gpu
from spinloom.accelerate import mpi_doctor
from spinloom.common import core, data, output, pictures
from spinloom.common.errors import EXIT_ENVIRONMENT, EXIT_OF_CODE, Trouble
from spinloom.handlers import toolchain
from spinloom.nics import jobs
from spinloom.traces import otf2_export
from spinloom.verbs.options import form_options


@dataclass(frozen=True)
class Part:
    name: str
    needed: bool
    brings: str
    found: Callable[[], str]  # "" if the part is missing


def program(*names: str) -> Callable[[], str]:
    """A function that finds the first of these programs on the PATH."""
    return lambda: next((path for name in names if (path := shutil.which(name))), "")


def package(*names: str) -> Callable[[], str]:
    """A function that says 'present' if all these Python packages are there."""
    return lambda: "present" if all(importlib.util.find_spec(name) for name in names) else ""


def library(name: str) -> Callable[[], str]:
    def find() -> str:
        try:
            ctypes.CDLL(name)
        except OSError:
            return ""
        return name

    return find


def gpus() -> str:
    """The GPUs that are here, and where their kernels come from; "" without one."""
    if not core.available():
        return ""
    devices = core.load().gpu_devices()
    return "; ".join(
        f"{device['name']} (CUDA {device['driver']}, kernels: {device['kernels']})" for device in devices
    )


def gpu_pair() -> str:
    """Returns how two processes reach each other's memory on the GPU here, tried by two; "" without one."""
    return f"{pair.way}: {pair.reason}" if gpus() and (pair := gpu.with_itself()) is not None else ""


def array_libraries() -> str:
    """The array libraries of GPUs here: looked for, not imported, which takes seconds."""
    return ", ".join(name for name in ("cupy", "torch") if importlib.util.find_spec(name) is not None)


def handler_images() -> str:
    images = list(data.handler_images())
    return ", ".join(images if len(images) < 4 else [*images[:3], f"and {len(images) - 3} more"])


def handler_compiler() -> str:
    version = toolchain.compiler_version()
    return f"ziglang {version}" if version == toolchain.COMPILER_VERSION else ""


def live_library() -> str:
    path = data.PACKAGE / "lib/libportals.so.4"
    return str(path) if path.is_file() else ""


def live_rows() -> list[tuple[str, str]]:
    """spinloom-info's rows about this machine: ways between ranks, and cures for missing ones."""
    try:
        program = jobs.installed_file("bin", "spinloom-info")
        done = subprocess.run(
            [program, "--machine"], capture_output=True, text=True, errors="backslashreplace", timeout=30
        )
    except (Trouble, OSError, subprocess.TimeoutExpired) as trouble:
        return [("live NIC", str(trouble))]
    lines = [line.partition("  ") for line in done.stdout.splitlines()]
    return [(name, value.strip()) for name, _, value in lines]


PARTS = (
    Part(
        "engine",
        True,
        "spinloom simulate: the simulator itself",
        lambda: "spinloom._core" if core.available() else "",
    ),
    Part("handler images", True, "spinloom simulate: the handlers that the NIC runs", handler_images),
    Part("handler compiler", False, "spinloom handler: handlers of your own", handler_compiler),
    Part("matplotlib", False, "speedup.svg in --out", lambda: "present" if pictures.available() else ""),
    Part("NumPy", False, "layouts of arrays; FILE.py:OBJECT", package("numpy")),
    Part("Dask and Polars", False, "spinloom sweep", package("distributed", "cryptography", "polars")),
    Part("mpi4py", False, "datatypes of MPI programs in Python", package("mpi4py")),
    Part(
        "C++ compiler",
        False,
        "building Spinloom from source",
        program(os.environ.get("CXX", "c++"), "g++", "clang++"),
    ),
    Part(
        "OTF2",
        False,
        "spinloom trace DIR --otf2: archives for other trace tools",
        lambda: "present" if otf2_export.available() else "",
    ),
    Part("MPI", False, "spinloom run and record; comparison with its MPI_Pack", program("mpicc")),
    Part("C compiler", False, "spinloom sim of C sources", program(os.environ.get("CC", "cc"), "gcc")),
    Part("live library", False, "Portals 4 between real processes", live_library),
    Part(
        "launcher",
        False,
        "jobs of several processes on the live NIC",
        program("mpiexec.hydra", "mpiexec", "mpirun", "mpirun.openmpi", "srun"),
    ),
    Part(
        "RISC-V gcc",
        False,
        "a second compiler to cross-check handler images",
        program("riscv64-unknown-elf-gcc"),
    ),
    Part(
        "RISC-V emulator",
        False,
        "a second opinion on RV32 execution",
        program("qemu-riscv32", "qemu-riscv32-static"),
    ),
    Part("GPU driver", False, "datatypes in GPU memory", library("libcuda.so.1")),
    Part("GPU", False, "layouts of CuPy and PyTorch arrays in one launch; spinloom bench gpu", gpus),
    Part("GPU of two processes", False, "messages between two processes' GPUs: gpu.Pair", gpu_pair),
    Part("GPU arrays", False, "arrays of a GPU in Python: CuPy or PyTorch", array_libraries),
)


@click.command(epilog="Examples: spinloom doctor --json; spinloom doctor --mpi")
@click.option(
    "--mpi", is_flag=True, help="Run a pair of ranks under each MPI found, without the layer and with it."
)
@form_options
@click.pass_context
def doctor(ctx: click.Context, mpi: bool, form: str) -> None:
    """Say what this machine has, and what a missing part brings.

    With --mpi: each MPI in the PATH and beside Python, its binary interface, what the layer of
    `spinloom run` does under it, and cause and cure where a message cannot be copied once. A minute at most
    for each MPI.
    """
    if mpi:
        ctx.exit(look_at_mpis(form))
    rows = [
        {"part": part.name, "needed": part.needed, "found": part.found(), "brings": part.brings}
        for part in PARTS
    ]
    live = live_rows()
    machine = [{"part": f"live: {name}", "needed": False, "found": said, "brings": ""} for name, said in live]
    output.emit(rows + machine, form, lambda: parts_table(rows))
    if form == "table":
        output.show(output.table(["live NIC", "on this machine"], [list(row) for row in live]))
    missing = [row["part"] for row in rows if row["needed"] and not row["found"]]
    if missing:
        output.say(
            f"missing: {', '.join(missing)}; 'make setup' in the checkout, or 'pip install .', builds them"
        )
        ctx.exit(EXIT_ENVIRONMENT)


def look_at_mpis(form: str) -> int:
    """Runs ranks under every MPI found, and says what came of it; the exit code."""
    mpis = mpi_doctor.mpis()
    machine = mpi_doctor.Machine.here()
    rows = [mpi_doctor.look_at(mpi, machine) for mpi in mpis]
    output.emit(rows, form, lambda: mpis_table(rows))
    if form == "table":
        for row in rows:
            output.echo(mpi_doctor.verdict(row))
        for way, words in mpi_doctor.WAYS.items():
            tried = [row for row in rows if row[way] != "not tried"]
            for outcome in dict.fromkeys(row[way] for row in tried):
                who = dict.fromkeys(row["mpi"] for row in tried if row[way] == outcome)
                whose = f" ({', '.join(who)})" if any(row[way] != outcome for row in tried) else ""
                output.echo(f"one copy: {words}: {outcome}{whose}")
    if not rows:
        output.say(
            "no MPI found: there is no mpiexec or mpirun in the PATH, nor beside Python; 'pip install mpich'"
        )
        return EXIT_ENVIRONMENT
    return EXIT_OF_CODE["mismatch"] if any(row["bytes_wrong"] for row in rows) else 0


def mpis_table(rows: list[dict[str, object]]) -> Table:
    return output.table(
        ["MPI", "launcher", "interface", "layer", "without it", "with it", "messages with it"],
        [
            [
                row["mpi"],
                row["launcher"],
                mpi_doctor.ABIS.get(row["abi"], row["abi"] or "-"),
                row["layer"] or "-",
                row["without"],
                row["with"],
                mpi_doctor.carried(row),
            ]
            for row in rows
        ],
        foldable={"without it", "with it", "layer"},
    )


def parts_table(rows: list[dict[str, object]]) -> Table:
    absent = [(row["found"] or ("MISSING" if row["needed"] else "-")) for row in rows]
    return output.table(
        ["part", "found", "brings"],
        [[row["part"], found, row["brings"]] for row, found in zip(rows, absent, strict=True)],
        foldable={"brings"},
    )
