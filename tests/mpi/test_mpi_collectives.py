"""Collective calls that the layer does by messages of its own, under every MPI that is here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, preloads, programs_in, run

SOURCES = sorted((Path(__file__).parent / "collectives").glob("*.c"))
ROUNDS = 60
SHORT = {"SPINLOOM_MPI_MIN_BYTES": "100"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("collectives"), *SOURCES)


def exchanged(words: list[str], settings: dict[str, str]) -> tuple[int, str]:
    """How many messages came, all of them right, and in which order edges of topologies were taken."""
    ran = run(words, settings)
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    found = re.search(r"messages (\d+) wrong 0 hash (\w+)$", ran.stdout, re.MULTILINE)
    assert found, ran.stdout[-1000:] + ran.stderr[-1000:]
    return int(found[1]), found[2]


def job(mpi: Mpi, program: Path, ranks: int, seed: int) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), str(seed), str(ROUNDS)]


def sent(report: Path) -> int:
    return sum(json.loads(line)["sent"] for line in report.read_text(encoding="utf-8").splitlines())


@every_mpi
@pytest.mark.parametrize(("ranks", "path"), [(2, "auto"), (2, "mapped"), (3, "auto"), (3, "staged")])
def test_random_calls_of_random_types(mpi, programs, ranks, path, tmp_path):
    if ranks > 2 and mpi.name == "Debian's MPICH":
        pytest.skip(
            "one of some forty runs of three ranks did not end; not found whether without the layer, too"
        )
    words = job(mpi, programs(mpi), ranks, 1)
    report = tmp_path / "report"
    messages = exchanged(words, preloads(report) | SHORT | {"SPINLOOM_MPI_PATH": path})
    assert messages == exchanged(words, {})
    assert sent(report) > 5


@every_mpi
def test_a_job_in_which_one_rank_has_no_layer_leaves_collectives_to_the_mpi(mpi, programs, tmp_path):
    report = tmp_path / "report"
    program = [str(programs(mpi)), "1", str(ROUNDS)]
    layered = ["env", *(f"{name}={value}" for name, value in (preloads(report) | SHORT).items()), *program]
    words = [mpi.launcher, *mpi.options, "-n", "2", *layered, ":", *mpi.options, "-n", "1", *program]
    assert exchanged(words, {}) == exchanged(job(mpi, programs(mpi), 3, 1), {})
