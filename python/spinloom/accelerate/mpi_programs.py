"""The programs of an MPI job as its command names them, before they start.

Contract: programs_in() finds them. libraries_of() says what the loader would load with one. with_runtimes()
makes a command whose programs get the runtime of their sanitizer before our libraries. mpi_mismatch() says
what is wrong where a job's launcher is that of another MPI than its program's. Nothing is started but the
loader, which lists libraries, and launchers, which say their version.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHERS = re.compile(r"mpi(exec|run)(\..*)?|orterun|prterun|prun|hydra")
# Programs that start the next program of their command.
WRAPPERS = ("env", "nice", "nohup", "numactl", "setsid", "stdbuf", "taskset", "time", "timeout", "srun")
# Runtimes that intercept malloc must be first among the libraries; UBSan's intercepts nothing.
RUNTIMES = re.compile(r"(?:lib(?:clang_rt\.)?)(asan|hwasan|lsan|tsan)\b")
SANITIZERS = {
    "asan": "AddressSanitizer",
    "hwasan": "HWAddressSanitizer",
    "lsan": "LeakSanitizer",
    "tsan": "ThreadSanitizer",
}
ELF_64 = b"\x7fELF\x02\x01"
HEADER_BYTES, TABLE_AT, ENTRY_AT = 64, 32, 54
PT_INTERP = 3
PATH_BYTES = 4096
LIST_LIMIT_S = 30.0
LISTED = re.compile(r"^\s*(\S+) => (/.*) \(0x[0-9a-f]+\)$", re.MULTILINE)
OPENMPI, MPICH = "Open MPI", "MPICH"
FAMILIES = {"libmpi.so.40": OPENMPI, "libmpi.so.12": MPICH, "libmpich.so.12": MPICH}


def programs_in(command: Sequence[str]) -> Iterator[tuple[int, Path]]:
    """Place and file of the first program of each part of a job (':' between parts).

    Launchers and wrappers are passed over.
    An option's value may have a program's name: a word without '/' behind an option is none.
    """
    is_found = False
    for at, word in enumerate(command):
        if word == ":":
            is_found = False
        if is_found or word.startswith("-") or "=" in word:
            continue
        if "/" not in word and at > 0 and command[at - 1].startswith("-"):
            continue
        file = shutil.which(word)
        if file is None or LAUNCHERS.fullmatch(Path(file).name) or Path(file).name in WRAPPERS:
            continue
        is_found = True
        yield at, Path(file)


def loader_of(program: Path) -> str | None:
    """The loader that a program of 64 bits names; None for scripts and static programs."""
    try:
        with program.open("rb") as file:
            head = file.read(HEADER_BYTES)
            if not head.startswith(ELF_64):
                return None
            (table,) = struct.unpack_from("<Q", head, TABLE_AT)
            length, count = struct.unpack_from("<HH", head, ENTRY_AT)
            file.seek(table)
            parts = file.read(length * count)
            for at in range(0, length * count, length):
                kind, _, place = struct.unpack_from("<IIQ", parts, at)
                if kind == PT_INTERP:
                    file.seek(place)
                    return file.read(PATH_BYTES).split(b"\0")[0].decode()
    except (OSError, ValueError, struct.error):
        return None
    return None


def libraries_of(program: Path) -> dict[str, Path]:
    """Returns what the loader would load with a program, by name; nothing where it cannot say."""
    loader = loader_of(program)
    if loader is None or not Path(loader).name.startswith("ld"):
        return {}
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        listing = subprocess.run(
            [loader, "--list", str(program)],
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=LIST_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return {name: Path(path) for name, path in LISTED.findall(listing.stdout)}


# ---- sanitizers ----


def sanitizer_of(library: str) -> str | None:
    """The name of the sanitizer whose runtime a library is."""
    match = RUNTIMES.match(Path(library).name)
    return SANITIZERS[match[1]] if match else None


def preloads(ours: str, others: str) -> str:
    """The value of LD_PRELOAD: libraries of others stay behind ours, but for runtimes of sanitizers."""
    theirs = [name for name in re.split("[: ]", others) if name]
    first = [name for name in theirs if sanitizer_of(name)]
    return ":".join([*first, ours, *(name for name in theirs if name not in first)])


def with_runtimes(command: Sequence[str], preload: str) -> tuple[list[str], list[str]]:
    """The command with its programs' sanitizers before what is preloaded, and what to say of it.

    Only the programs get them, not their launcher: a sanitizer would look at it as well.
    """
    words = list(command)
    remarks = []
    for at, program in reversed(list(programs_in(command))):
        runtime = next((path for name, path in libraries_of(program).items() if sanitizer_of(name)), None)
        if runtime is None:
            continue
        words[at:at] = ["env", f"LD_PRELOAD={runtime}:{preload}"]
        remarks.append(
            f"{command[at]} is built with {sanitizer_of(runtime.name)}: its runtime {runtime} is preloaded "
            "before the layer and keeps malloc, so that no message is mapped"
        )
    return words, remarks[::-1]


# ---- launchers ----


@dataclass(frozen=True)
class MpiMismatch:
    """A launcher that may not fit. If not certain, the program's MPI may be built for such launchers, too."""

    sentence: str
    is_certain: bool


def mpi_mismatch(command: Sequence[str]) -> MpiMismatch | None:
    """Returns what is wrong if a launcher is of another MPI than its program; None if not, or if not known.

    A launcher of Open MPI tells ranks their numbers by PMIx, one of MPICH and its relatives by PMI.
    """
    launcher = shutil.which(command[0])
    if launcher is None or not LAUNCHERS.fullmatch(Path(launcher).name):
        return None
    for at, program in programs_in(command):
        libraries = libraries_of(program)
        family = next((FAMILIES[name] for name in libraries if name in FAMILIES), None)
        if family is None:
            continue
        from spinloom.accelerate import mpi_doctor

        launcher_family = mpi_doctor.family_of(Path(launcher))
        if launcher_family is None or (launcher_family == OPENMPI) == (family == OPENMPI):
            continue
        if family == MPICH and any(name.startswith("libpmix.so") for name in libraries):
            continue
        library = next(path for name, path in libraries.items() if name in FAMILIES)
        is_certain = family == MPICH
        unless = "" if is_certain else f", unless this {family} was built for PMI"
        return MpiMismatch(
            f"{command[at]} is linked with {family} ({library}), "
            f"but {command[0]} is a launcher of {launcher_family}: "
            f"its ranks do not find each other{unless}. Start it by the mpiexec of its own MPI",
            is_certain,
        )
    return None
