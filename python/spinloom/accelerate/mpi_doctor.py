"""The MPIs of this machine, and what the layer does under each: what `spinloom doctor --mpi` says.

Contract: mpis() finds launchers in the PATH and beside Python, and the libraries that belong to them.
look_at() runs a pair of ranks under one, without the layer and with it, each for limit_s at most; every
received byte is compared. cause_of() is pure: why a process cannot read another's memory, and the cure.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinloom.accelerate import mpi_layer, mpi_report
from spinloom.common import data, files
from spinloom.common.errors import Trouble

LIMIT_S = 30.0
PROBE = Path(__file__).with_name("mpi_pair_probe.py")
NAMES = ("mpiexec", "mpirun")
OPENMPI, MPICH, INTEL = "Open MPI", "MPICH", "Intel MPI"
LIBRARIES = {
    OPENMPI: ("libmpi.so.40",),
    MPICH: ("libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0"),
    INTEL: ("libmpi.so.12", "libmpi_abi.so.1"),
}
ABIS = {"openmpi": "Open MPI 4 and 5", "mpich": "MPICH", "standard": "standard (MPI 5)"}
CAP_SYS_PTRACE = 19
RIGHT = " compared, all right"


@dataclass(frozen=True)
class Mpi:
    """One library of one installation; `launchers`: the names that it has in the PATH."""

    family: str
    launchers: tuple[Path, ...]
    library: Path | None

    @property
    def home(self) -> Path:
        return self.launchers[0].resolve().parent.parent

    def environment(self) -> dict[str, str]:
        """Returns what programs of this MPI need; a wheel's Open MPI must be told where it lies."""
        if self.library is None or self.home == Path("/usr"):
            return {}
        others = os.environ.get("LD_LIBRARY_PATH", "")
        libraries = f"{self.library.parent}:{others}" if others else str(self.library.parent)
        more = {"OPAL_PREFIX": str(self.home)} if os.path.isdir(self.home / "share" / "openmpi") else {}
        return {"LD_LIBRARY_PATH": libraries, **more}

    def command(self, words: list[str]) -> list[str]:
        options = ["--oversubscribe"] if self.family == OPENMPI else []
        if self.family == OPENMPI and os.geteuid() == 0:
            options.append("--allow-run-as-root")
        return [str(self.launchers[0]), *options, "-n", "2", *words]


# ---- which there are ----


def launchers() -> list[Path]:
    """mpiexec, mpirun and their variants (mpiexec.hydra), in the order of the PATH, then beside Python."""
    folders = [*filter(None, os.environ.get("PATH", "").split(os.pathsep)), str(Path(sys.executable).parent)]
    programs = []
    for folder in dict.fromkeys(folders):
        names = files.names_if_readable(
            folder
        )  # none where it may not be read: its programs may still be run
        for name in NAMES:
            variants = [each for each in names if each.startswith(f"{name}.") and not each.endswith(".py")]
            programs += [path for each in (name, *variants) if os.access(path := Path(folder, each), os.X_OK)]
    return programs


def family_of(launcher: Path) -> str | None:
    """The family of MPI to which a launcher says that it belongs; None if it is not one known here."""
    try:
        ran = subprocess.run(
            [launcher, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = ran.stdout + ran.stderr
    if "Open MPI" in version or "OpenRTE" in version or "open-mpi" in version:
        return OPENMPI
    if "Intel(R) MPI" in version:
        return INTEL
    return MPICH if "HYDRA" in version or "MPICH" in version or "MVAPICH" in version else None


def libraries_of(family: str, home: Path) -> list[Path]:
    folders = [home / "lib", home / "lib64", home / "lib" / "release"]
    if home == Path("/usr"):
        folders += [
            Path("/usr/lib", name) for name in files.names_if_readable("/usr/lib") if "-linux-gnu" in name
        ]
    libraries = [
        folder / name for name in LIBRARIES[family] for folder in folders if os.path.exists(folder / name)
    ]
    return list({path.resolve(): path for path in reversed(libraries)}.values())[::-1]


def mpis() -> list[Mpi]:
    grouped: dict[tuple[str, Path], list[Path]] = {}
    families: dict[Path, str | None] = {}
    for launcher in launchers():
        real = launcher.resolve()
        home = real.parent.parent
        installation = real if home == Path("/usr") else home  # elsewhere a folder is one MPI's
        if installation not in families:
            families[installation] = family_of(launcher)
        if family := families[installation]:
            grouped.setdefault((family, home), []).append(launcher)
    return [
        Mpi(family, tuple(names), library)
        for (family, home), names in grouped.items()
        for library in libraries_of(family, home) or [None]
    ]


# ---- the pair ----


@dataclass(frozen=True)
class Pair:
    """The findings of the two ranks; `trouble` says how they ended, if not well."""

    ranks: list[dict[str, Any]]
    report: dict[str, Any]
    trouble: str

    @property
    def compared(self) -> int:
        return sum(rank["compared"] for rank in self.ranks)

    @property
    def wrong(self) -> int:
        return sum(rank["wrong"] for rank in self.ranks)


def run_pair(mpi: Mpi, with_layer: bool, limit_s: float) -> Pair:
    job = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="spinloom-doctor-") as folder:
        report = Path(folder, "report")
        environment = {**os.environ, "SPINLOOM_MPI": "off"}
        if with_layer:
            environment = mpi_layer.environment(data.mpi_preloads(), job, "auto", report) | {
                "SPINLOOM_MPI": "on"
            }
        words = mpi.command([sys.executable, str(PROBE), str(mpi.library), folder])
        trouble = launch(words, environment | mpi.environment(), Path(folder, "log"), limit_s)
        rank_files = [Path(folder, f"{rank}.json") for rank in range(2)]
        ranks = [json.loads(file.read_text(encoding="utf-8")) for file in rank_files if file.exists()]
        if not trouble and len(ranks) < len(rank_files):
            trouble = "its ranks said nothing"
        merged = mpi_report.merge(mpi_report.read(report))
    mpi_layer.forget_boards(job)
    return Pair(ranks, merged, trouble)


def launch(words: list[str], environment: dict[str, str], log: Path, limit_s: float) -> str:
    """'' if the job ended well and in time, else a sentence. None of its processes goes on."""
    with log.open("w+", encoding="utf-8", errors="replace") as out:
        try:
            process = subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        except OSError as error:
            return f"{words[0]}: {error.strerror}"
        try:
            code = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            return f"it did not end within {limit_s:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        out.seek(0)
        lines = [line.strip() for line in out if line.strip(" -=\n")]
    return "" if code == 0 else f"it ended with {code}: {' '.join(lines)[:200] or 'without a word'}"


# ---- why not ----


@dataclass(frozen=True)
class Machine:
    """The settings of Linux that decide which process may read another's memory."""

    ptrace_scope: int = 0  # kernel.yama.ptrace_scope; 0 where there is none
    may_trace: bool = False
    filtered: bool = False  # a seccomp filter sees our system calls

    @staticmethod
    def here() -> Machine:
        status = dict(line.split(":", 1) for line in text_or_empty(Path("/proc/self/status")).splitlines())
        return Machine(
            int(text_or_empty(Path("/proc/sys/kernel/yama/ptrace_scope")) or 0),
            bool(int(status.get("CapEff", "0"), 16) >> CAP_SYS_PTRACE & 1),
            status.get("Seccomp", "0").strip() not in ("", "0"),
        )


def text_or_empty(system: Path) -> str:
    """'' where the system has no such file, or does not let this user read it."""
    try:
        return system.read_text(encoding="utf-8")
    except OSError:
        return ""


def cause_of(way: str, error: int, rank: dict[str, Any], machine: Machine) -> str:
    """Cause and cure of an error that a rank met; way: "mapping" or "system_call"."""
    own, peer = rank["own"], rank["peer"]
    error_text = f"'{os.strerror(error)}'"
    explanation = ""
    if own["machine"] != peer["machine"]:
        explanation = (
            f"the ranks ran on {own['machine']} and {peer['machine']}; cure: both on one (a host file)"
        )
    elif own["processes"] != peer["processes"]:
        explanation = (
            "the ranks are in different process namespaces; cure: one container, or docker run --pid=host"
        )
    elif own["user"] != peer["user"]:
        explanation = (
            f"the ranks belong to users {own['user']} and {peer['user']}; cure: start both as one user"
        )
    elif error == errno.ENOSYS:
        explanation = "this kernel has no such call (CONFIG_CROSS_MEMORY_ATTACH)"
    elif error == errno.ENOMEM:
        explanation = "cure: more address space (ulimit -v)"
    elif error in (errno.EPERM, errno.EACCES):
        explanation = why_forbidden(way, machine)
    return f"{error_text}; {explanation}" if explanation else error_text


def why_forbidden(way: str, machine: Machine) -> str:
    if way == "system_call" and machine.ptrace_scope > 0 and not machine.may_trace:
        if machine.ptrace_scope >= 3:
            return "kernel.yama.ptrace_scope is 3 until the next boot; cure: boot with another value"
        return (
            f"kernel.yama.ptrace_scope is {machine.ptrace_scope}, which lets a process read its children "
            "only; cure: sysctl -w kernel.yama.ptrace_scope=0, or CAP_SYS_PTRACE"
        )
    if way == "system_call" and machine.filtered:
        return "a seccomp filter, such as a container's, forbids it; cure: docker run --cap-add=SYS_PTRACE"
    return "one of the programs cannot be dumped (a set-user-ID program, prctl); cure: an ordinary program"


CARRIED = ("mapped", "joint", "staged", "cma")  # the ways of the layer
WAYS = {
    "mapping": "a receiver maps its sender's heap",
    "system_call": "process_vm_readv",
}


def copies(pair: Pair, machine: Machine) -> dict[str, str]:
    """For each way to copy once: that it works, or cause and cure."""
    outcomes = {}
    for way in WAYS:
        failed = next((rank for rank in pair.ranks if rank[way] != 0), None)
        if not pair.ranks:
            outcomes[way] = "not tried"
        elif failed is None:
            outcomes[way] = "works"
        else:
            outcomes[way] = f"does not work: {cause_of(way, failed[way], failed, machine)}"
    return outcomes


# ---- all of it ----


def version_of(text: str) -> str:
    """'Open MPI v4.1.4' of a library's long sentence; 'MPICH 5.0.2'."""
    lines = text.splitlines() or [""]
    for line in lines:
        name, colon, number = line.partition("Version:")
        if colon:
            return f"{name.strip()} {number.strip()}"
    return lines[0].split(",")[0].removesuffix("for Linux* OS").strip()


def layer_for(abi: str) -> str:
    """'' if the layer is installed and has this interface, else a sentence."""
    try:
        data.mpi_layer()
    except Trouble as trouble:
        return trouble.message
    return "" if abi in ABIS else f"the layer has no interface {abi!r}"


def look_at(mpi: Mpi, machine: Machine, limit_s: float = LIMIT_S) -> dict[str, Any]:
    row: dict[str, Any] = {
        "mpi": mpi.family,
        "launcher": str(mpi.launchers[0]),
        "also": [str(name) for name in mpi.launchers[1:]],
        "library": str(mpi.library) if mpi.library else "",
        "abi": "",
        "layer": "",
        "without": "not tried",
        "with": "not tried",
        **dict.fromkeys((*CARRIED, "pass", "bytes_compared", "bytes_wrong"), 0),
        "why": [],
        **dict.fromkeys(WAYS, "not tried"),
    }
    if mpi.library is None:
        row["without"] = f"no library of {mpi.family} under {mpi.home}"
        return row
    plain = run_pair(mpi, False, limit_s)
    row["without"] = outcome(plain)
    if not plain.ranks:
        return row
    first = plain.ranks[0]
    row |= {"mpi": version_of(first["version"]), "abi": first["abi"], **copies(plain, machine)}
    missing = layer_for(first["abi"])
    row["layer"] = missing or "here"
    row |= {"bytes_compared": plain.compared, "bytes_wrong": plain.wrong}
    if missing:
        return row
    layered = run_pair(mpi, True, limit_s)
    row["with"] = outcome(layered)
    row["bytes_compared"] += layered.compared
    row["bytes_wrong"] += layered.wrong
    for way in (*CARRIED, "pass"):
        row[way] = sum(
            entry["messages"]
            for entry in layered.report["types"]
            if entry["way"] == way and entry["kind"] != "contiguous"
        )
    off = [why for job in layered.report["jobs"] for why in job["why_off"]]
    passed = [entry["why"] for entry in layered.report["types"] if entry["way"] == "pass"]
    row["why"] = sorted({*off, *(why for why in passed if why != "contiguous")})
    return row


def outcome(pair: Pair) -> str:
    if pair.trouble:
        return pair.trouble
    if pair.wrong:
        return f"WRONG: {pair.wrong:,} of {pair.compared:,} B"
    return f"{pair.compared:,} B{RIGHT}"


def carried(row: dict[str, Any]) -> str:
    """Returns which way the layer's messages went."""
    if row["with"] == "not tried" or not sum(row[way] for way in (*CARRIED, "pass")):
        return "-"
    return ", ".join(f"{row[way]} {way}" for way in (*CARRIED, "pass") if row[way])


def verdict(row: dict[str, Any]) -> str:
    """One sentence: what 'spinloom run' does under this MPI here."""
    name = f"{row['mpi']} ({row['launcher']})"
    if row["bytes_wrong"]:
        return f"{name}: bytes are wrong; set SPINLOOM_MPI=off, and report this"
    if not row["abi"]:
        return f"{name}: a pair of ranks cannot be started: {row['without']}"
    if row["layer"] != "here":
        return f"{name}: runs without us: {row['layer']}"
    if not row["with"].endswith(RIGHT):
        return f"{name}: with the layer {row['with']}"
    reasons = "; ".join(row["why"])
    if not any(row[way] for way in CARRIED):
        return f"{name}: the layer did nothing: {reasons or 'its ranks said nothing'}"
    if row["mapped"] + row["joint"] + row["cma"]:
        return f"{name}: faster datatypes work, with one copy where the buffer can be mapped"
    cure = row["mapping"] if row["mapping"] != "works" else reasons or "see SPINLOOM_MPI_REPORT"
    return f"{name}: faster datatypes work, but always with two copies: {cure}"
