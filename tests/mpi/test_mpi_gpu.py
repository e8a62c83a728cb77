"""MPI programs with buffers in a GPU's memory, on the driver of tests/gpu/driver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layer_programs import MPIS, messages, programs_in

OPEN_MPI = MPIS[0]
ROUNDS = 60


def driver() -> Path:
    """Its folder; it is built with the C++ tests."""
    found = sorted(Path(__file__).parents[2].glob("build/*/gpu_driver/libcuda.so.1"))
    if not found:
        pytest.skip("the driver for tests is built with -DSPINLOOM_TESTS=ON")
    return found[0].parent


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu"))(OPEN_MPI)


@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (3, 60)])
def test_random_messages_of_devices_are_what_they_are_on_the_host(program, tmp_path, ranks, percent):
    report = tmp_path / "report"
    settings = {
        "LAYER_DEVICE": str(percent),
        "SPINLOOM_MPI_GPU": "on",
        "LD_LIBRARY_PATH": str(driver()),
    }
    on_host = messages(OPEN_MPI, program, ranks, 3, ROUNDS, None)
    assert messages(OPEN_MPI, program, ranks, 3, ROUNDS, report, **settings) == on_host
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert min(line["gpu_moves"] for line in lines) > ROUNDS


def test_a_program_without_a_gpu_moves_nothing_by_one(program, tmp_path):
    report = tmp_path / "report"
    messages(OPEN_MPI, program, 2, 3, ROUNDS // 4, report, SPINLOOM_MPI_GPU="on")
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["gpu_moves"] for line in lines] == [0, 0]
