"""Ranks in namespaces of their own, as containers have them: the grid is right, and what can be shared is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from layer_programs import BIN, COLLECTIVES, MPIS, Mpi, compile_for, preloads, run
from test_mpi_examples import EXAMPLES, grid_of

GRID = ["64", "5", "1", "1", "2"]
every_pair = pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
# In namespaces that hide processes, the MPIs' own shared memory fails without us, too.
BY_TCP = {
    "Debian's Open MPI": ["env", "OMPI_MCA_btl=tcp,self"],
    "Debian's MPICH": [],  # over TCP it hangs in MPI_Finalize in 1 of 10 jobs, without us, too
    "MPICH 5": ["env", "UCX_TLS=tcp,self"],
}


@pytest.fixture
def halo(mpi: Mpi, tmp_path: Path) -> list[str]:
    compile_for(mpi, [EXAMPLES / "halo.c"], tmp_path / "halo", "-std=c11")
    return [str(tmp_path / "halo"), *GRID]


def apart(*options: str) -> list[str]:
    """The command that runs another in namespaces of its own; skips where that is not allowed."""
    words = ["unshare", *options]
    if shutil.which("unshare") is None or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip(f"'unshare {' '.join(options)}' does not work here: it wants root")
    return words


def ranks_that(mpi: Mpi, first: list[str], second: list[str], report: Path) -> list[dict]:
    """What two ranks report, each by a command of its own; the grid is the right one, and nothing is said."""
    launcher = [*BY_TCP[mpi.name], mpi.launcher, *mpi.options]
    ran = run([*launcher, "-n", "1", *first, ":", "-n", "1", *second], preloads(report))
    grid_of(ran)
    assert "spinloom" not in ran.stderr
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]


@every_pair
@pytest.mark.parametrize("proc", [[], ["--mount-proc"]], ids=["the machine's proc", "a proc of its own"])
@pytest.mark.parametrize("both", [True, False], ids=["both", "one"])
def test_ranks_that_do_not_see_each_other_leave_all_to_the_mpi(mpi, halo, tmp_path, proc, both):
    if mpi.name == "Debian's MPICH":
        pytest.skip(f"{mpi.name} itself needs TCP there, by which it hangs in MPI_Finalize in 1 of 10 jobs")
    inside = [*apart("--pid", "--fork", *proc), *halo]
    lines = ranks_that(mpi, inside, inside if both else halo, tmp_path / "report")
    assert len(lines) == 2
    assert sum(line["sent"] for line in lines) == 0


@every_pair
def test_files_of_their_own_do_not_part_ranks(mpi, halo, tmp_path):
    inside = [*apart("--mount"), *halo]
    lines = ranks_that(mpi, inside, inside, tmp_path / "report")
    assert sum(line["sent"] for line in lines) >= 8


@every_pair
def test_without_a_common_dev_shm_all_is_left_to_the_mpi(mpi, halo, tmp_path):
    if mpi.name != MPIS[0].name:
        pytest.skip(f"{mpi.name} itself does not start without a common /dev/shm")
    own = ["sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
    inside = [*apart("--mount"), *own, *halo]
    lines = ranks_that(mpi, inside, inside, tmp_path / "report")
    assert sum(line["sent"] for line in lines) == 0


@every_pair
def test_pairs_with_a_dev_shm_of_their_own_are_machines_of_their_own(mpi, tmp_path):
    """Open MPI 4.1 has no windows over TCP; test_mpi_windows.py has those of several machines."""
    if mpi.name != MPIS[0].name:
        pytest.skip(f"{mpi.name} itself does not start without a common /dev/shm")
    program, report = tmp_path / "calls", tmp_path / "report"
    compile_for(mpi, COLLECTIVES, program)
    words = [*BY_TCP[mpi.name], mpi.launcher]
    with TemporaryDirectory(dir="/dev/shm") as one, TemporaryDirectory(dir="/dev/shm") as other:
        for own in (one, other, one, other):
            inside = [*apart("--mount"), "sh", "-c", f'mount --bind {own} /dev/shm && exec "$@"', "sh"]
            words += [*mpi.options, "-n", "1", *inside, str(program), "4", "100", "0", "2", ":"]
        ran = run(words[:-1], preloads(report) | {"SPINLOOM_MPI_MIN_BYTES": "100"})
        assert list(Path(one).iterdir()) == list(Path(other).iterdir()) == []
    assert re.search(r"messages \d+ wrong 0", ran.stdout), ran.stdout[-500:] + ran.stderr[-2000:]
    carried = [called(json.loads(line)) for line in report.read_text(encoding="utf-8").splitlines()]
    assert len(carried) == 4
    assert min(carried) > 0


def called(line: dict) -> int:
    """How many messages of collective calls a rank has sent through shared memory."""
    sent = (entry for kind in line["types"] for entry in kind["sent"])
    return sum(
        messages for *_, way, _why, messages, _bytes, _withdrawn, call in sent if call and way != "pass"
    )


@every_pair
def test_spinloom_run_may_be_the_rank(mpi, halo, tmp_path):
    report = tmp_path / "report"
    words = [mpi.launcher, *mpi.options, "-n", "2", str(BIN / "spinloom"), "run"]
    grid_of(run([*words, "--", *halo], {"SPINLOOM_MPI_REPORT": str(report)}))
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert sum(line["sent"] for line in lines) >= 8
    refused = run([*words, "--report", "--", *halo], {})
    assert "'spinloom run' must start the launcher" in refused.stderr
