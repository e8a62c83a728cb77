"""`spinloom run`: random messages under every MPI that is here, with and without the layer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from patience import seconds
from spinloom import data

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
ROUNDS = 2500
TIME_LIMIT_S = seconds(420)


@dataclass(frozen=True)
class Mpi:
    name: str
    compiler: str
    launcher: str
    options: tuple[str, ...] = ()

    @property
    def present(self) -> bool:
        return shutil.which(self.compiler) is not None and shutil.which(self.launcher) is not None


def beside(name: str) -> str:
    return str(BIN / name)


OPENMPI = ("--oversubscribe", "--allow-run-as-root")
MPIS = [
    Mpi("Debian's Open MPI", "mpicc.openmpi", "mpiexec.openmpi", OPENMPI),
    Mpi("Debian's MPICH", "mpicc.mpich", "mpiexec.mpich"),
    Mpi("MPICH 5", beside("mpicc"), beside("mpiexec.hydra")),
    Mpi("the standard interface of MPI 5", beside("mpicc_abi"), beside("mpiexec.hydra")),
]
every_mpi = pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """programs(mpi) is the program of layer_messages.c for an MPI; skips where that is missing."""
    folder = tmp_path_factory.mktemp("layer")
    built: dict[Mpi, Path] = {}

    def program(mpi: Mpi) -> Path:
        if not mpi.present:
            pytest.skip(f"{mpi.name} is not here")
        if mpi not in built:
            path = folder / f"messages{len(built)}"
            lib = Path(mpi.compiler).parent.parent / "lib"
            words = [
                mpi.compiler,
                "-O2",
                str(HERE / "layer_messages.c"),
                "-o",
                str(path),
                f"-Wl,-rpath,{lib}",
            ]
            made = subprocess.run(words, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                pytest.skip(f"{mpi.name} does not compile here: {made.stderr[-300:]}")
            built[mpi] = path
        return built[mpi]

    return program


def messages(
    mpi: Mpi, program: Path, ranks: int, seed: int, rounds: int, report: Path | None, **more: str
) -> None:
    """Runs the program, with the layer where there is a report; fails with the command that does it again."""
    settings = dict(more)
    if report:
        settings |= {"LD_PRELOAD": data.mpi_preloads(), "SPINLOOM_MPI_REPORT": str(report)}
    words = [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), str(seed), str(rounds)]
    ran = subprocess.run(
        words,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    again = " ".join([*(f"{name}={value}" for name, value in settings.items()), *words])
    assert ran.returncode == 0, f"{again}\n{ran.stdout}{ran.stderr}"
    assert f"messages {rounds * ranks} wrong 0" in ran.stdout, again


def sent(report: Path) -> int:
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert all(line["on"] for line in lines), lines
    assert sum(line["sent"] for line in lines) == sum(line["landed"] for line in lines)
    return sum(line["sent"] for line in lines)


@every_mpi
def test_random_messages_are_what_they_are_without_the_layer(mpi, programs, tmp_path):
    program = programs(mpi)
    messages(mpi, program, 2, 1, 200, None)
    messages(mpi, program, 2, 2, ROUNDS, tmp_path / "report")
    assert sent(tmp_path / "report") > ROUNDS // 4


@every_mpi
def test_more_ranks_short_messages_and_little_room(mpi, programs, tmp_path):
    settings = {
        "SPINLOOM_MPI_MIN_BYTES": "100",
        "SPINLOOM_MPI_CHUNK_BYTES": "1K",
        "SPINLOOM_MPI_STAGING_BYTES": "256K",
    }
    messages(mpi, programs(mpi), 3, 3, ROUNDS // 5, tmp_path / "report", **settings)
    assert sent(tmp_path / "report") > ROUNDS // 5


@every_mpi
@pytest.mark.parametrize("layout", ["memoised", "naive"])
def test_messages_that_their_receivers_take_from_the_senders_memory(mpi, programs, tmp_path, layout):
    settings = {
        "SPINLOOM_MPI_MIN_BYTES": "100",
        "SPINLOOM_MPI_PATH": "mapped",
        "SPINLOOM_MPI_LAYOUT": layout,
    }
    report = tmp_path / "report"
    messages(mpi, programs(mpi), 2, 6, ROUNDS // 5, report, **settings)
    assert sent(report) > ROUNDS // 5
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert sum(line["offered"] for line in lines) > 20


@every_mpi
def test_nothing_is_left_in_shared_memory(mpi, programs, tmp_path):
    program = programs(mpi)
    before = set(Path("/dev/shm").glob("spinloom-mpi-*"))
    messages(mpi, program, 2, 4, 20, tmp_path / "report")
    assert set(Path("/dev/shm").glob("spinloom-mpi-*")) <= before


def test_the_verb_runs_a_job_and_reports(programs):
    mpi = next((mpi for mpi in MPIS if mpi.present), None)
    if mpi is None:
        pytest.skip("no MPI is here")
    job = [mpi.launcher, *mpi.options, "-n", "2", str(programs(mpi)), "5", "50"]
    ran = subprocess.run(
        [str(BIN / "spinloom"), "run", "--report", "--", *job],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "messages 100 wrong 0" in ran.stdout
    assert "went through shared memory between 2 of 2 ranks" in ran.stderr


def test_the_verb_hands_on_exit_codes_and_names_a_missing_program():
    failing = subprocess.run([str(BIN / "spinloom"), "run", "--", "sh", "-c", "exit 7"], check=False)
    assert failing.returncode == 7
    missing = subprocess.run(
        [str(BIN / "spinloom"), "run", "--", "no-such-launcher", "-n", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 3
    assert "there is no program 'no-such-launcher'" in missing.stderr
