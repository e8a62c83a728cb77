"""Receives that are too short: every call reports the same error with the layer as without it."""

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


def command_of(mpi: Mpi, program: Path, *arguments: str) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", "2", str(program), *arguments]


def reports_by_way(completed) -> dict[str, tuple[str, ...]]:
    """Returns for each way: error class, source, tag, count, call, how often a handler was called, and how
    often of these for MPI_COMM_WORLD."""
    assert completed.returncode == 0, f"{completed.stdout[-1000:]}{completed.stderr[-3000:]}"
    *lines, last = completed.stdout.splitlines()
    assert last == "0 wrong at the end"
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), completed.stdout
    return {match[1]: match.groups()[1:] for match in matches}


@every_mpi
@pytest.mark.parametrize("errors", ["returns", "handler"])
def test_the_program_learns_what_the_mpi_alone_says(mpi, programs, tmp_path, errors):
    command = command_of(mpi, programs(mpi), errors)
    plain = reports_by_way(run(command, {}))
    layered = reports_by_way(run(command, preloads(tmp_path / "report")))
    assert list(layered) == list(plain)
    lines = [json.loads(line) for line in (tmp_path / "report").read_text(encoding="utf-8").splitlines()]
    assert sum(line["sent"] for line in lines) >= len(plain)  # all messages went through shared memory
    for way, (error_class, source, tag, count, call, *handled) in layered.items():
        assert (source, tag, count) == ("0", "7", str(INTS)), way
        assert (error_class, call, handled) == (plain[way][0], plain[way][4], list(plain[way][5:])), way
        # If there is a handler, MPICH 5 returns MPI_SUCCESS.
        assert error_class == "truncated" or errors == "handler", way


def calls_in(text: str) -> set[str]:
    """Returns the calls that the messages of fatal errors in a text name."""
    return set(re.findall(r"(?:error occurred in|Fatal error in) (?:internal_|PMPI_|MPI_)*(\w+)", text))


def fatal_calls(command: list[str], settings: dict[str, str]) -> set[str]:
    """Returns the calls that a job names when an error ends it. The job is run up to five times, because
    Open MPI's launcher may lose what ranks print at their end."""
    found: set[str] = set()
    for _ in range(5):
        completed = run(command, settings)
        assert completed.returncode != 0
        found = found or calls_in(completed.stdout + completed.stderr)
        if found:
            break
    return found


@every_mpi
@pytest.mark.parametrize("way", FATAL)
def test_a_fatal_error_names_the_call(mpi, programs, tmp_path, way):
    command = command_of(mpi, programs(mpi), "fatal", way)
    plain, layered = fatal_calls(command, {}), fatal_calls(command, preloads(tmp_path / "report"))
    assert plain == layered != set()
