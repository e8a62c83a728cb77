"""A receive that is too short: the program learns what the MPI alone tells it, by each call that may tell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, preloads, programs_of, run

SOURCE = Path(__file__).with_name("too_long.c")
INTS = 4096
LINE = re.compile(
    r"(\w+) (\w+) from (-?\d+) tag (-?\d+) count (-?\d+) by (\w+), handler (\d) (\d), 0 behind the buffer"
)
FATAL = ["recv", "sendrecv", "mrecv", "wait", "waitall", "testany", "persistent"]


@pytest.fixture(scope="module")
def programs():
    return programs_of(SOURCE)


def job(mpi: Mpi, program: Path, *words: str) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", "2", str(program), *words]


def told(ran) -> dict[str, tuple[str, ...]]:
    """By way: class, source, tag, count, call, how often a handler was called and for which communicator."""
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    *lines, last = ran.stdout.splitlines()
    assert last == "0 wrong at the end"
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), ran.stdout
    return {match[1]: match.groups()[1:] for match in found}


@every_mpi
@pytest.mark.parametrize("errors", ["returns", "handler"])
def test_the_program_learns_what_the_mpi_alone_says(mpi, programs, tmp_path, errors):
    words = job(mpi, programs(mpi), errors)
    plain = told(run(words, {}))
    layered = told(run(words, preloads(tmp_path / "report")))
    assert list(layered) == list(plain)
    lines = [json.loads(line) for line in (tmp_path / "report").read_text(encoding="utf-8").splitlines()]
    assert sum(line["sent"] for line in lines) >= len(plain)  # they went through shared memory
    for way, (kind, source, tag, count, call, *handled) in layered.items():
        assert (source, tag, count) == ("0", "7", str(INTS)), way
        assert (kind, call, handled) == (plain[way][0], plain[way][4], list(plain[way][5:])), way
        assert kind == "truncated" or errors == "handler", way  # MPICH 5 returns MPI_SUCCESS then


def named(text: str) -> set[str]:
    """The calls that messages of fatal errors name."""
    return set(re.findall(r"(?:error occurred in|Fatal error in) (?:internal_|PMPI_|MPI_)*(\w+)", text))


def calls_named(words: list[str], settings: dict[str, str]) -> set[str]:
    """By a job that ends by an error; Open MPI's launcher may lose what its ranks said at their end."""
    found: set[str] = set()
    for _ in range(5):
        ran = run(words, settings)
        assert ran.returncode != 0
        found = found or named(ran.stdout + ran.stderr)
        if found:
            break
    return found


@every_mpi
@pytest.mark.parametrize("way", FATAL)
def test_a_fatal_error_names_the_call(mpi, programs, tmp_path, way):
    words = job(mpi, programs(mpi), "fatal", way)
    plain, layered = calls_named(words, {}), calls_named(words, preloads(tmp_path / "report"))
    assert plain == layered != set()
