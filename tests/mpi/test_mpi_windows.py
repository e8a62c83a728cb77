"""Windows whose puts and gets the layer copies, under every MPI that is here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, machines_of, preloads, programs_in, run

SOURCE = Path(__file__).parent / "random_windows.c"
ROUNDS = 100
SHORT = {"SPINLOOM_MPI_MIN_BYTES": "100"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("windows"), SOURCE)


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
    program = [str(programs(mpi)), "5", str(ROUNDS)]
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
