"""The rules of docs/mpi.md, one program each (layer_rules.c), under every MPI that is here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, preloads, programs_of, run
from patience import until

SOURCE = Path(__file__).parent / "layer_rules.c"


@pytest.fixture(scope="module")
def programs():
    return programs_of(SOURCE)


def job(mpi: Mpi, program: Path, rule: str, ranks: int = 2) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), rule]


def kept(words: list[str], report: Path, **settings: str) -> list[dict]:
    """The rule was kept; the lines of the report."""
    ran = run(words, settings | preloads(report))
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    assert "kept" in ran.stdout
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]


def left_behind() -> set[Path]:
    return set(Path("/dev/shm").glob("spinloom-*"))


RULES = [
    "isendrecv_after_probe",
    "watcher",
    "cancelled_sends",
    "cancelled_after_their_end",
    "cancel_after_probe",
    "truncated",
    "truncated_records",
    "threaded_truncated",
    "wrong_counts",
    "null_types",
    "forks",
    "unmapped",
    "finalizes",
    "status_errors",
]


@every_mpi
@pytest.mark.parametrize("rule", RULES)
def test_rule(mpi, programs, rule, tmp_path):
    if rule == "isendrecv_after_probe" and mpi.compiler == "mpicc.mpich":
        pytest.skip("Debian's MPICH 4.0 has no working MPI_Isendrecv")
    before = left_behind()
    lines = kept(job(mpi, programs(mpi), rule, 2), tmp_path / "report")
    assert all(line["on"] for line in lines)
    if not (rule == "isendrecv_after_probe" and "open" in mpi.compiler):
        assert sum(line["sent"] for line in lines) > 0
    assert until(lambda: left_behind() <= before)


@every_mpi
def test_threads_get_errors_of_messages_that_the_mpi_carries(mpi, programs, tmp_path):
    """MPICH 4 would raise them on MPI_COMM_WORLD, whose handler ends the job."""
    kept(
        job(mpi, programs(mpi), "threaded_truncated"), tmp_path / "report", SPINLOOM_MPI_MIN_BYTES="100000000"
    )


@every_mpi
def test_mpich_5_by_itself_dies_of_a_cancelled_send(mpi, programs):
    """If this fails, MPICH has mended it: layer/odd.c may then cancel any send, and docs/mpi.md forget it."""
    ran = run(job(mpi, programs(mpi), "cancelled_send_of_the_mpi"), {})
    assert (ran.returncode == 0) == (mpi.launcher in ("mpiexec.openmpi", "mpiexec.mpich")), ran.stderr


@every_mpi
@pytest.mark.parametrize("path", ["mapped", "staged"])
def test_memory_mapped_over_blocks_of_malloc(mpi, programs, path, tmp_path):
    lines = kept(job(mpi, programs(mpi), "replaced"), tmp_path / "report", SPINLOOM_MPI_PATH=path)
    assert sum(line["sent"] for line in lines) > 0


@every_mpi
def test_among_threads_two_ranks_that_wait_take_what_the_other_offers(mpi, programs, tmp_path):
    words = job(mpi, programs(mpi), "threaded_exchange")
    fewest = 0
    for attempt in range(10):  # a busy machine may keep a rank from its messages for too long
        lines = kept(words, tmp_path / f"report{attempt}", SPINLOOM_MPI_PATH="mapped")
        fewest = max(fewest, min(line["offered"] for line in lines))
        if fewest > 10:
            break
    assert fewest > 10, "a rank whose offers are not taken offers little any more"


@every_mpi
def test_both_ends_copy(mpi, programs, tmp_path):
    """A sender helps only where it runs while its receiver copies, which other work may keep it from."""
    words = job(mpi, programs(mpi), "joint")
    for attempt in range(5):
        lines = kept(words, tmp_path / f"report{attempt}", SPINLOOM_MPI_PATH="joint")
        helped = sum(line["helped"] for line in lines)
        if helped > 0:
            break
    assert helped > 0
    ways = {(of["kind"], row[2]) for line in lines for of in line["types"] for row in of["sent"]}
    assert {("derived", "joint"), ("contiguous", "joint")} <= ways


@every_mpi
def test_jobs_in_which_one_rank_has_no_layer(mpi, programs, tmp_path):
    report = tmp_path / "report"
    program = str(programs(mpi))
    bare = [*mpi.options, "-n", "1", program, "plain"]
    layered = ["env", *(f"{name}={value}" for name, value in preloads(report).items()), program, "plain"]
    words = [mpi.launcher, *mpi.options, "-n", "2", *layered, ":", *bare[len(mpi.options) :]]
    ran = run(words, {})
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    assert "kept" in ran.stdout
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 2
    assert sum(line["sent"] for line in lines) > 0


@every_mpi
@pytest.mark.parametrize("rule", ["dies", "aborts"])
def test_jobs_that_end_by_force_leave_nothing_behind(mpi, programs, rule, tmp_path):
    """A rank is killed, or calls MPI_Abort: the launcher ends the others, as it does without the layer."""
    before = left_behind()
    words = job(mpi, programs(mpi), rule, 3)
    for settings in ({}, preloads(tmp_path / "report")):
        ran = run(words, settings)
        assert ran.returncode != 0
    assert until(lambda: left_behind() <= before)


@pytest.mark.slow
@every_mpi
@pytest.mark.parametrize("room", ["64M", "8G"])
def test_messages_that_an_int_does_not_count(mpi, programs, room, tmp_path):
    """With little room the MPI carries them; with much, shared memory."""
    words = job(mpi, programs(mpi), "huge")
    if mpi.compiler == "mpicc.openmpi":
        pytest.skip("Debian's Open MPI has no large counts")
    lines = kept(words, tmp_path / "report", SPINLOOM_MPI_STAGING_BYTES=room)
    assert all(line["on"] for line in lines)


@every_mpi
def test_ranks_that_may_not_read_each_other_any_more(mpi, programs, tmp_path):
    lines = kept(job(mpi, programs(mpi), "forbidden"), tmp_path / "report", SPINLOOM_MPI_PATH="cma")
    assert sum(line["offered"] for line in lines) > 0
    assert sum(line["withdrawn"] for line in lines) > 0


def test_every_rule_is_in_the_manual():
    page = (Path(__file__).parents[2] / "docs" / "mpi.md").read_text(encoding="utf-8")
    for rule in [*RULES, "dies", "aborts", "huge", "forbidden"]:
        assert f"`{rule}`" in page, rule
