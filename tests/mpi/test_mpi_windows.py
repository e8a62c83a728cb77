"""Windows whose puts and gets the layer copies, under every MPI that is here."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, machines_of, preloads, programs_of, run
from patience import until
from spinloom.accelerate import mpi_report

HERE = Path(__file__).parent
SOURCE = HERE / "random_windows.c"
ROUNDS = 50
SHORT = {"SPINLOOM_MPI_MIN_BYTES": "100"}


@pytest.fixture(scope="module")
def programs():
    return programs_of(SOURCE)


@pytest.fixture(scope="module")
def ways_programs():
    return programs_of(HERE / "window_ways.c")


def accessed(words: list[str], settings: dict[str, str]) -> int:
    """How many puts, gets and accumulates there were, all of them right."""
    ran = run(words, settings)
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    found = re.search(r"accesses (\d+) wrong 0$", ran.stdout, re.MULTILINE)
    assert found, ran.stdout[-1000:] + ran.stderr[-1000:]
    return int(found[1])


def job(mpi: Mpi, program: Path, ranks: int, seed: int) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), str(seed), str(ROUNDS)]


def lines_of(report: Path) -> list[dict]:
    """Of each rank with the layer."""
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]


def copied(report: Path) -> list[int]:
    return [line["window_copies"] for line in lines_of(report)]


@every_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_accesses_of_random_types(mpi, programs, ranks, tmp_path):
    words = job(mpi, programs(mpi), ranks, ranks)
    report = tmp_path / "report"
    accesses = accessed(words, preloads(report) | SHORT)
    assert accesses == accessed(words, {})
    assert min(copied(report)) > ROUNDS


@every_mpi
def test_accesses_of_random_types_by_system_calls(mpi, programs, tmp_path):
    """To memory that cannot be mapped, however short, and to all other memory that can be reached so."""
    words = job(mpi, programs(mpi), 3, 3)
    report = tmp_path / "report"
    assert accessed(words, preloads(report) | SHORT | {"SPINLOOM_MPI_PATH": "cma"}) > ROUNDS
    rows = mpi_report.merge(lines_of(report))["types"]
    assert sum(row["messages"] for row in rows if row["way"] == "cma" and row["call"] == "MPI_Put") > ROUNDS
    assert sum(row["messages"] for row in rows if row["way"] == "cma" and row["call"] == "MPI_Get") > ROUNDS


COLUMN = "vector(2000, 1, 2, int64_t)"
SLABS = "vector(2, 8192, 16384, int64_t)"
EACH = 2 * 20  # the accesses of two ranks


def ways(mpi: Mpi, program: Path, report: Path, *mode: str) -> dict[tuple[str, str | None, str], int]:
    """How many puts and gets of a type went a way; all numbers were right."""
    words = [mpi.launcher, *mpi.options, "-n", "2", str(program), *mode]
    ran = run(words, preloads(report))
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "wrong 0" in ran.stdout
    found: Counter[tuple[str, str | None, str]] = Counter()
    for row in mpi_report.merge(lines_of(report))["types"]:
        if row["call"] in ("MPI_Put", "MPI_Get"):
            found[row["call"], row["text"], row["way"]] += row["messages"]
    return dict(found)


@every_mpi
def test_the_report_tells_the_way_of_each_access(mpi, ways_programs, tmp_path):
    report = tmp_path / "report"
    by_calls = mpi.compiler in ("mpicc.openmpi", "mpicc.mpich")  # others are as quick as system calls
    expected = {}
    for call in ("MPI_Put", "MPI_Get"):
        expected |= {(call, COLUMN, "mapped"): EACH, (call, None, "mapped"): EACH}
        expected |= {(call, SLABS, "cma" if by_calls else "pass"): EACH}
        expected |= {(call, COLUMN, "pass"): 2 * EACH}  # these are in static memory, and in a dynamic window
    assert ways(mpi, ways_programs(mpi), report) == expected
    copies = 4 * EACH if by_calls else 2 * EACH
    assert sum(copied(report)) == copies
    document = mpi_report.merge(lines_of(report))
    assert [f"1 x {COLUMN}, MPI_Put", "+1 -1", "40", "640,000", "mapped", "one copy by its origin"] in (
        mpi_report.cells(document)
    )
    assert f"{copies} puts and gets were one copy by their origins" in mpi_report.sentences(document)


@every_mpi
def test_what_system_calls_cannot_copy_any_more_is_the_mpis(mpi, ways_programs, tmp_path):
    if mpi.compiler == "mpicc.openmpi":
        pytest.skip("windows of Open MPI itself need these calls")
    report = tmp_path / "report"
    found = ways(mpi, ways_programs(mpi), report, "forbid")
    assert found["MPI_Put", SLABS, "pass"] == found["MPI_Get", SLABS, "pass"] == EACH
    assert ("MPI_Put", SLABS, "cma") not in found
    assert found["MPI_Put", COLUMN, "mapped"] == EACH


@every_mpi
def test_a_rank_that_is_killed_between_start_and_complete_leaves_nothing_behind(mpi, ways_programs, tmp_path):
    before = set(Path("/dev/shm").glob("spinloom-*"))
    ran = run(
        [mpi.launcher, *mpi.options, "-n", "2", str(ways_programs(mpi)), "die"], preloads(tmp_path / "report")
    )
    assert ran.returncode != 0
    assert "wrong" not in ran.stdout
    assert until(lambda: set(Path("/dev/shm").glob("spinloom-*")) <= before)


@every_mpi
@pytest.mark.parametrize("kind", ["exclusive", "shared", "all"])
def test_the_lock_of_a_rank_that_has_died_is_free(mpi, kind, tmp_path):
    if mpi.compiler == "mpicc.openmpi":
        pytest.skip("its launcher ends a job of which a rank has died")
    program = programs_of(HERE / "dead_holder.c")(mpi)
    # Hydra tells of a death by SIGUSR1, and ends a job one of whose processes closes its connection.
    shell = ["sh", "-c", 'trap "" USR1; "$0" "$@"; true']
    job_words = [mpi.launcher, "-disable-auto-cleanup", "-n", "3", *shell, str(program), kind]
    run([*job_words, str(tmp_path / "lock")], preloads(tmp_path / "report"))
    assert (tmp_path / "lock.has").read_text(encoding="utf-8") == "7"


@every_mpi
def test_nothing_is_copied_where_every_message_is_left_to_the_mpi(mpi, programs, tmp_path):
    report = tmp_path / "report"
    words = job(mpi, programs(mpi), 2, 1)
    assert accessed(words, preloads(report) | SHORT | {"SPINLOOM_MPI_PATH": "pass"}) > ROUNDS
    assert copied(report) == [0, 0]


@every_mpi
@pytest.mark.parametrize("machines", ["aa-", "aao", "aab"])
def test_windows_of_the_whole_job_are_the_mpis_where_some_ranks_are_elsewhere(
    mpi, programs, machines, tmp_path
):
    report = tmp_path / "report"
    program = [str(programs(mpi)), "13", str(ROUNDS)]
    assert accessed(machines_of(mpi, program, machines, preloads(report) | SHORT), {}) > ROUNDS
    assert sum(copied(report)) == 0


@every_mpi
@pytest.mark.parametrize(("machines", "rounds"), [("abab", 40), ("a-a", ROUNDS), ("aoa", ROUNDS)])
def test_windows_of_those_on_one_machine_are_copied(mpi, programs, machines, rounds, tmp_path):
    report = tmp_path / "report"
    program = [str(programs(mpi)), "4", str(rounds), "0", "2"]
    assert accessed(machines_of(mpi, program, machines, preloads(report) | SHORT), {}) > rounds
    copies = {line["rank"]: line["window_copies"] for line in lines_of(report) if line["on"]}
    assert sorted(copies) == [rank for rank, machine in enumerate(machines) if machine in "ab"]
    assert min(copies.values()) > rounds
