"""Windows whose puts and gets the layer copies, under every MPI that is here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, preloads, programs_in, run

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


def copied(report: Path) -> list[int]:
    """By each rank with the layer."""
    return [json.loads(line)["window_copies"] for line in report.read_text(encoding="utf-8").splitlines()]


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
def test_a_job_in_which_one_rank_has_no_layer_leaves_windows_to_the_mpi(mpi, programs, tmp_path):
    report = tmp_path / "report"
    program = [str(programs(mpi)), "5", str(ROUNDS)]
    layered = ["env", *(f"{name}={value}" for name, value in (preloads(report) | SHORT).items()), *program]
    words = [mpi.launcher, *mpi.options, "-n", "2", *layered, ":", *mpi.options, "-n", "1", *program]
    assert accessed(words, {}) > ROUNDS
    assert copied(report) == [0, 0]
