"""`spinloom run`: random messages under every MPI that is here, with and without the layer."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from layer_programs import BIN, MPIS, TIME_LIMIT_S, every_mpi, messages, programs_of
from patience import until

ROUNDS = 600
THREADED_ROUNDS = 40


@pytest.fixture(scope="module")
def programs():
    return programs_of()


def sent(report: Path) -> int:
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert all(line["on"] for line in lines), lines
    sent, landed = (sum(line[name] for line in lines) for name in ("sent", "landed"))
    assert sent * 9 // 10 < landed <= sent  # some are cancelled, or too long for their receivers
    return sent


@every_mpi
def test_random_messages_are_what_they_are_without_the_layer(mpi, programs, tmp_path):
    program = programs(mpi)
    messages(mpi, program, 2, 1, 100, None)
    messages(mpi, program, 2, 2, ROUNDS, tmp_path / "report")
    assert sent(tmp_path / "report") > ROUNDS // 4


@every_mpi
def test_rounds_are_the_same_when_run_by_themselves(mpi, programs, tmp_path):
    more = ("--first", "7", "--last", "7")
    one = messages(mpi, programs(mpi), 2, 2, ROUNDS, tmp_path / "report", options=more)
    first = messages(mpi, programs(mpi), 2, 2, 7, None)
    assert one + first == messages(mpi, programs(mpi), 2, 2, 8, None)


@every_mpi
def test_more_ranks_short_messages_and_little_room(mpi, programs, tmp_path):
    settings = {
        "SPINLOOM_MPI_MIN_BYTES": "100",
        "SPINLOOM_MPI_CHUNK_BYTES": "1K",
        "SPINLOOM_MPI_STAGING_BYTES": "256K",
    }
    messages(mpi, programs(mpi), 3, 3, ROUNDS // 4, tmp_path / "report", **settings)
    assert sent(tmp_path / "report") > ROUNDS


@every_mpi
@pytest.mark.parametrize(
    ("path", "layout"),
    [
        ("mapped", "memoised"),
        ("mapped", "naive"),
        ("joint", "memoised"),
        ("joint", "naive"),
        ("cma", "memoised"),
    ],
)
def test_messages_that_their_receivers_take_from_the_senders_memory(mpi, programs, tmp_path, path, layout):
    settings = {
        "SPINLOOM_MPI_MIN_BYTES": "100",
        "SPINLOOM_MPI_PATH": path,
        "SPINLOOM_MPI_LAYOUT": layout,
    }
    report = tmp_path / "report"
    messages(mpi, programs(mpi), 2, 6, ROUNDS // 5, report, **settings)
    assert sent(report) > ROUNDS // 5
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert sum(line["offered"] for line in lines) > 0


@every_mpi
def test_threads(mpi, programs, tmp_path):
    messages(mpi, programs(mpi), 2, 7, THREADED_ROUNDS, tmp_path / "report", ("--threads", "3"))
    assert sent(tmp_path / "report") > THREADED_ROUNDS


@every_mpi
def test_threads_may_offer_what_they_send(mpi, programs, tmp_path):
    report = tmp_path / "report"
    settings = {"SPINLOOM_MPI_MIN_BYTES": "100", "SPINLOOM_MPI_PATH": "mapped"}
    messages(mpi, programs(mpi), 2, 8, THREADED_ROUNDS // 2, report, ("--threads", "3"), **settings)
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert sum(line["offered"] for line in lines) > 0


WAYS = [
    {},
    {"SPINLOOM_MPI_MIN_BYTES": "100", "SPINLOOM_MPI_CHUNK_BYTES": "1K", "SPINLOOM_MPI_STAGING_BYTES": "256K"},
    {"SPINLOOM_MPI_MIN_BYTES": "100", "SPINLOOM_MPI_PATH": "mapped"},
    {"SPINLOOM_MPI_MIN_BYTES": "100", "SPINLOOM_MPI_PATH": "joint"},
    {"SPINLOOM_MPI_MIN_BYTES": "100", "SPINLOOM_MPI_PATH": "cma"},
    {"SPINLOOM_MPI_MIN_BYTES": "100", "SPINLOOM_MPI_PATH": "pass"},
]


@pytest.mark.slow
@every_mpi
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_many_random_messages(mpi, programs, tmp_path, way):
    """10^7 messages in all: SPINLOOM_TEST_MESSAGES says another number."""
    total = int(os.environ.get("SPINLOOM_TEST_MESSAGES", "10000000"))
    wanted = total // len(MPIS) // len(WAYS)
    arrived = 0
    seed = 1000 * (way + 1)
    while arrived < wanted:
        arrived += messages(mpi, programs(mpi), 2, seed, 3000, tmp_path / "report", **WAYS[way])
        seed += 1


@every_mpi
def test_nothing_is_left_in_shared_memory(mpi, programs, tmp_path):
    program = programs(mpi)
    before = set(Path("/dev/shm").glob("spinloom-mpi-*"))
    messages(mpi, program, 2, 4, 20, tmp_path / "report")
    assert until(lambda: set(Path("/dev/shm").glob("spinloom-mpi-*")) <= before)


def test_the_verb_runs_a_job_and_reports(programs):
    mpi = next((mpi for mpi in MPIS if mpi.present), None)
    if mpi is None:
        pytest.skip("no MPI is here")
    job = [mpi.launcher, *mpi.options, "-n", "2", str(programs(mpi)), "5", "50"]
    ran = subprocess.run(
        [str(BIN / "spinloom"), "run", "--report", "--", *job],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert " wrong 0" in ran.stdout
    assert "went through shared memory between 2 of 2 ranks" in ran.stderr


def test_the_verb_hands_on_exit_codes_and_names_a_missing_program():
    failing = subprocess.run([str(BIN / "spinloom"), "run", "--", "sh", "-c", "exit 7"], check=False)
    assert failing.returncode == 7
    missing = subprocess.run(
        [str(BIN / "spinloom"), "run", "--", "no-such-launcher", "-n", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 3
    assert "there is no program 'no-such-launcher'" in missing.stderr
