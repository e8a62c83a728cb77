"""MPI programs with buffers in a GPU's memory, on the driver of tests/gpu/driver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layer_programs import every_mpi, messages, programs_in

ROUNDS = 60


def driver() -> Path:
    """Its folder; it is built with the C++ tests."""
    found = sorted(Path(__file__).parents[2].glob("build/*/gpu_driver/libcuda.so.1"))
    if not found:
        pytest.skip("the driver for tests is built with -DSPINLOOM_TESTS=ON")
    return found[0].parent


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu"))


def moves(report: Path) -> list[int]:
    return [json.loads(line)["gpu_moves"] for line in report.read_text(encoding="utf-8").splitlines()]


@every_mpi
@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (3, 60)])
def test_random_messages_of_devices_are_what_they_are_on_the_host(mpi, programs, tmp_path, ranks, percent):
    report = tmp_path / "report"
    settings = {
        "LAYER_DEVICE": str(percent),
        "SPINLOOM_MPI_GPU": "on",
        "LD_LIBRARY_PATH": str(driver()),
    }
    program = programs(mpi)
    on_host = messages(mpi, program, ranks, 13, ROUNDS, None)
    assert messages(mpi, program, ranks, 13, ROUNDS, report, **settings) == on_host
    assert min(moves(report)) > ROUNDS


@every_mpi
def test_a_program_without_a_gpu_moves_nothing_by_one(mpi, programs, tmp_path):
    report = tmp_path / "report"
    messages(mpi, programs(mpi), 2, 3, ROUNDS // 4, report, SPINLOOM_MPI_GPU="on")
    assert moves(report) == [0, 0]
