"""Calls on communicators made of communicators become the layer's, which sends nothing to make them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, preloads, programs_of, run

SOURCE = Path(__file__).with_name("communicators.c")
ROUNDS = 150


@pytest.fixture(scope="module")
def programs():
    return programs_of(SOURCE)


def job(mpi: Mpi, program: Path, ranks: int, seed: int, *more: str) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), str(seed), str(ROUNDS), *more]


def carried(report: Path) -> tuple[int, int]:
    """The messages of MPI_Alltoallw to other ranks that went through shared memory, and all of them."""
    sent = [
        (way, messages)
        for line in map(json.loads, report.read_text(encoding="utf-8").splitlines())
        for kind in line["types"]
        for _count, receiver, way, _why, messages, _bytes, _withdrawn, call in kind["sent"]
        if call == "MPI_Alltoallw" and receiver != line["rank"]
    ]
    return sum(messages for way, messages in sent if way != "pass"), sum(messages for _, messages in sent)


@every_mpi
@pytest.mark.parametrize(("ranks", "seed"), [(2, 1), (3, 2), (4, 3)])
def test_calls_on_communicators_of_every_descent(mpi, programs, ranks, seed, tmp_path):
    report = tmp_path / "report"
    words = job(mpi, programs(mpi), ranks, seed)
    ran = run(words, preloads(report) | {"SPINLOOM_MPI_MIN_BYTES": "100"})
    shown = f"{' '.join(words)}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    assert ran.returncode == 0, shown
    found = re.search(r"calls (\d+) wrong 0$", ran.stdout, re.MULTILINE)
    assert found, shown
    assert int(found[1]) > 2 * ROUNDS, shown
    ours, all_of_them = carried(report)
    assert ours > all_of_them / 3, (ours, all_of_them)


@every_mpi
def test_a_rank_that_is_killed_before_its_first_call_holds_nobody(mpi, programs, tmp_path):
    """The launcher ends the others, as it does without the layer."""
    words = job(mpi, programs(mpi), 3, 4, "dies")
    for settings in ({}, preloads(tmp_path / "report") | {"SPINLOOM_MPI_MIN_BYTES": "100"}):
        assert run(words, settings).returncode != 0
