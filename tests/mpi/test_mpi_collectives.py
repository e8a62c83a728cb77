"""Collective calls that the layer does by messages of its own, under every MPI that is here.

A program draws calls and messages from a seed and checks every byte. Its hash is of the order in which
several edges between two ranks were taken, where MPIs are free: it is that of the MPI without the layer.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

from layer_programs import MPIS, Mpi, every_mpi, preloads, programs_in, run

SOURCES = sorted((Path(__file__).parent / "collectives").glob("*.c"))
ROUNDS = 150
SHORT = {"SPINLOOM_MPI_MIN_BYTES": "100"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("collectives"), *SOURCES)


def exchanged(words: list[str], settings: dict[str, str]) -> tuple[int, str]:
    """How many messages came, all of them right, and the hash."""
    ran = run(words, settings)
    assert ran.returncode == 0, f"{settings}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    found = re.search(r"messages (\d+) wrong 0 hash (\w+)$", ran.stdout, re.MULTILINE)
    assert found, ran.stdout[-1000:] + ran.stderr[-1000:]
    return int(found[1]), found[2]


def job(mpi: Mpi, program: Path, ranks: int) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), str(ranks), str(ROUNDS)]


@pytest.fixture(scope="module")
def without_layer(programs):
    """without_layer(mpi, ranks): the same job by the MPI alone, which runs once."""
    return cache(lambda mpi, ranks: exchanged(job(mpi, programs(mpi), ranks), {}))


def taken_over(report: Path) -> dict[str, int]:
    """The messages of each collective call that the layer saw."""
    calls: dict[str, int] = {}
    for line in report.read_text(encoding="utf-8").splitlines():
        for kind in json.loads(line)["types"]:
            for *_, messages, _bytes, _withdrawn, call in kind["sent"]:
                if call:
                    calls[call] = calls.get(call, 0) + messages
    return calls


@every_mpi
@pytest.mark.parametrize(
    ("ranks", "path"),
    [(2, "auto"), (2, "mapped"), (3, "auto"), (3, "joint"), (4, "staged"), (4, "cma")],
)
def test_random_calls_of_random_types(mpi, programs, without_layer, ranks, path, tmp_path):
    report = tmp_path / "report"
    settings = preloads(report) | SHORT | {"SPINLOOM_MPI_PATH": path}
    assert exchanged(job(mpi, programs(mpi), ranks), settings) == without_layer(mpi, ranks)
    calls = taken_over(report)
    assert len(calls) > 7, calls
    assert sum(calls.values()) > ROUNDS / 2


@every_mpi
def test_a_job_in_which_one_rank_has_no_layer_leaves_collectives_to_the_mpi(
    mpi, programs, without_layer, tmp_path
):
    report = tmp_path / "report"
    program = [str(programs(mpi)), "3", str(ROUNDS)]
    layered = ["env", *(f"{name}={value}" for name, value in (preloads(report) | SHORT).items()), *program]
    words = [mpi.launcher, *mpi.options, "-n", "2", *layered, ":", *mpi.options, "-n", "1", *program]
    assert exchanged(words, {}) == without_layer(mpi, 3)
    assert taken_over(report) == {}


@pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
def test_a_round_by_itself_is_the_round_of_the_whole_job(mpi, programs, without_layer):
    """What a wrong round says to run again is the round."""
    words = job(mpi, programs(mpi), 2)[:-1]
    parts = [exchanged([*words, str(last), str(first)], {}) for first, last in ((0, 40), (40, ROUNDS))]
    assert sum(messages for messages, _ in parts) == without_layer(mpi, 2)[0]
