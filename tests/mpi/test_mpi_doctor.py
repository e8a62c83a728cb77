"""`spinloom doctor --mpi`: each MPI of this machine with a pair of ranks; what it says when that fails."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from layer_programs import BIN, MPIS, TIME_LIMIT_S, every_mpi
from spinloom.accelerate import mpi_doctor
from spinloom.accelerate.mpi_doctor import Machine, Mpi


def doctor(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "spinloom"), "doctor", "--mpi", *options],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=TIME_LIMIT_S,
        check=False,
    )


@pytest.fixture(scope="module")
def rows():
    if not any(mpi.present for mpi in MPIS):
        pytest.skip("no MPI is here")
    ran = doctor("--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


ABI = {
    "Debian's Open MPI": "openmpi",
    "Debian's MPICH": "mpich",
    "MPICH 5": "mpich",
    "the standard interface of MPI 5": "standard",
}


@every_mpi
def test_each_mpi_is_found_and_carries_the_right_bytes(mpi, rows):
    if not mpi.present:
        pytest.skip(f"{mpi.name} is not here")
    launcher = Path(mpi.launcher)
    names = {str(launcher)} if launcher.is_absolute() else {f"/usr/bin/{mpi.launcher}"}
    mine = [row for row in rows if names & {row["launcher"], *row["also"]} and row["abi"] == ABI[mpi.name]]
    assert len(mine) == 1, rows
    (row,) = mine
    assert row["layer"] == "here"
    assert row["without"].endswith(mpi_doctor.RIGHT)
    assert row["with"].endswith(mpi_doctor.RIGHT)
    assert (row["bytes_compared"], row["bytes_wrong"]) == (4 * 786432, 0)
    assert row["mapped"] + row["staged"] > row["pass"]
    assert {row["mapping"], row["system_call"]} <= {"works"} or "cure" in row["mapping"] + row["system_call"]
    assert "faster datatypes work" in mpi_doctor.verdict(row)


def test_the_text_names_each_mpi_with_a_verdict(rows):
    ran = doctor()
    assert ran.returncode == 0
    for row in rows:
        assert mpi_doctor.verdict(row) in ran.stdout
    assert "one copy: process_vm_readv: " in ran.stdout


def test_without_an_mpi_it_says_what_brings_one(tmp_path, monkeypatch, spinloom):
    monkeypatch.setattr(mpi_doctor, "launchers", list)
    ran = spinloom("doctor", "--mpi", "--json")
    assert (ran.code, ran.out.strip()) == (3, "[]")
    assert "no MPI found" in ran.err


# ---- MPIs that do not work ----


def an_mpi(folder: Path, script: str) -> Mpi:
    """A launcher that does what `script` says."""
    for name in ("bin", "lib"):
        (folder / name).mkdir()
    launcher = folder / "bin" / "mpiexec"
    launcher.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo HYDRA && exit\n{script}\n", encoding="utf-8")
    launcher.chmod(0o755)
    library = folder / "lib" / "libmpi.so.12"
    library.touch()
    return Mpi(mpi_doctor.MPICH, (launcher,), library)


def test_a_launcher_that_hangs_is_ended(tmp_path):
    pid = tmp_path / "pid"
    mpi = an_mpi(tmp_path, f"echo $$ > {pid}; sleep 1000")
    row = mpi_doctor.look_at(mpi, Machine(), limit_s=1)
    assert row["without"] == "it did not end within 1 s"
    assert row["with"] == "not tried"
    assert "cannot be started" in mpi_doctor.verdict(row)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)


def test_a_launcher_that_fails_is_quoted(tmp_path):
    row = mpi_doctor.look_at(an_mpi(tmp_path, "echo there is no room >&2; exit 7"), Machine())
    assert row["without"] == "it ended with 7: there is no room"


def test_a_launcher_without_its_library(tmp_path, monkeypatch):
    mpi = an_mpi(tmp_path, "exit 1")
    mpi.library.unlink()
    monkeypatch.setattr(mpi_doctor, "launchers", lambda: [mpi.launchers[0]])
    (found,) = mpi_doctor.mpis()
    row = mpi_doctor.look_at(found, Machine())
    assert row["without"] == f"no library of MPICH under {tmp_path}"


def test_launchers_are_found_in_the_path_and_told_apart(tmp_path, monkeypatch):
    mpi = an_mpi(tmp_path, "exit 1")
    (tmp_path / "bin" / "mpirun").symlink_to("mpiexec")
    (tmp_path / "bin" / "mpiexec.slurm").write_text("not executable", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    mine = [one for one in mpi_doctor.mpis() if one.home == tmp_path]
    assert mine == [Mpi(mpi_doctor.MPICH, (mpi.launchers[0], tmp_path / "bin" / "mpirun"), mpi.library)]


def forbidden(call, folder):
    """`call` of os, which root may as little as others below this folder."""

    def refused(path=".", *arguments, **options):
        if Path(str(path)).is_relative_to(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return call(path, *arguments, **options)

    return refused


def test_folders_of_the_path_that_this_user_may_not_read(tmp_path, monkeypatch):
    """Of another user's, and one whose programs may be run but not listed."""
    mpi = an_mpi(tmp_path, "exit 1")
    (tmp_path / "bin").chmod(0o311)
    hidden = tmp_path / "hidden"
    (hidden / "bin").mkdir(parents=True)
    hidden.chmod(0)
    for call in ("stat", "listdir", "scandir"):
        monkeypatch.setattr(os, call, forbidden(getattr(os, call), hidden))
    monkeypatch.setenv("PATH", f"{hidden / 'bin'}:{hidden}:{tmp_path / 'none'}:{mpi.launchers[0].parent}")
    try:
        mine = [one for one in mpi_doctor.mpis() if one.home == tmp_path]
    finally:
        hidden.chmod(0o700)
        (tmp_path / "bin").chmod(0o700)
    assert mine == [mpi]


def test_a_system_that_says_nothing_of_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(mpi_doctor, "Path", lambda name: tmp_path / "none")
    assert Machine.here() == Machine()


# ---- cause and cure ----


def rank(**other: object) -> dict:
    own = {"machine": "m", "processes": "pid:[1]", "user": 7}
    return {"own": own, "peer": {**own, **other}}


@pytest.mark.parametrize(
    ("way", "error", "other", "machine", "said"),
    [
        ("system_call", errno.EPERM, {}, Machine(ptrace_scope=1), "sysctl -w kernel.yama.ptrace_scope=0"),
        ("system_call", errno.EPERM, {}, Machine(ptrace_scope=3), "boot with another value"),
        ("system_call", errno.EPERM, {}, Machine(1, True, True), "--cap-add=SYS_PTRACE"),
        ("system_call", errno.ESRCH, {"processes": "pid:[2]"}, Machine(), "docker run --pid=host"),
        ("mapping", errno.ENOENT, {"processes": "pid:[2]"}, Machine(), "docker run --pid=host"),
        ("mapping", errno.EACCES, {"user": 8}, Machine(1), "users 7 and 8; cure: start both as one user"),
        ("mapping", errno.ENOENT, {"machine": "n"}, Machine(), "both on one"),
        ("mapping", errno.ENOMEM, {}, Machine(), "ulimit -v"),
        ("mapping", errno.EACCES, {}, Machine(1), "cannot be dumped"),
        ("system_call", errno.ENOSYS, {}, Machine(), "CONFIG_CROSS_MEMORY_ATTACH"),
        ("mapping", errno.EIO, {}, Machine(), os.strerror(errno.EIO)),
    ],
)
def test_cause_and_cure(way, error, other, machine, said):
    assert said in mpi_doctor.cause_of(way, error, rank(**other), machine)


def test_wrong_bytes_are_no_small_matter():
    row = {"mpi": "M", "launcher": "l", "bytes_wrong": 3, "abi": "mpich"}
    assert "SPINLOOM_MPI=off" in mpi_doctor.verdict(row)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI v4.1.4"),
        ("MPICH Version:\t4.0.2\nMPICH Release date:\tThu", "MPICH 4.0.2"),
        ("Intel(R) MPI Library 2021.18.1 for Linux* OS\n", "Intel(R) MPI Library 2021.18.1"),
        ("", ""),
    ],
)
def test_versions_are_short(text, name):
    assert mpi_doctor.version_of(text) == name
