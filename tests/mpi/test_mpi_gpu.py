"""MPI programs with buffers in a GPU's memory, on the driver of tests/gpu/driver.

The host cannot touch the memory of that driver: a program in which it does dies.

Programs draw calls from a seed and compare every byte with what they work out themselves.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from layer_programs import COLLECTIVES, SOURCES, Mpi, every_mpi, messages, preloads, programs_in, run
from spinloom import mpi_report

HERE = Path(__file__).parent
ROUNDS = 60


def on_devices(percent: int) -> dict[str, str]:
    """The settings of a job in which so many of 100 buffers are a device's."""
    found = sorted(HERE.parents[1].glob("build/*/gpu_driver/libcuda.so.1"))
    if not found:
        pytest.skip("the driver for tests is built with -DSPINLOOM_TESTS=ON")
    return {
        "LAYER_DEVICE": str(percent),
        "SPINLOOM_MPI_GPU": "on",
        "LD_LIBRARY_PATH": str(found[0].parent),
    }


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu"))


@pytest.fixture(scope="module")
def collectives(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu_collectives"), *COLLECTIVES)


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    sources = (HERE / "device_calls.c", SOURCES / "device.c", SOURCES / "form.c")
    return programs_in(tmp_path_factory.mktemp("gpu_calls"), *sources)


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu_looks"), HERE / "device_looks.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu_local"), HERE / "device_local.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return programs_in(tmp_path_factory.mktemp("gpu_pairs"), HERE / "device_pairs.c", SOURCES / "device.c")


def merged(report: Path) -> dict[str, Any]:
    return mpi_report.merge(mpi_report.read(report))


def moves(report: Path) -> list[int]:
    return [json.loads(line)["gpu_moves"] for line in report.read_text(encoding="utf-8").splitlines()]


def said(mpi: Mpi, ranks: int, words: list[str], settings: dict[str, str]) -> tuple[str, str]:
    """What the program prints, and what comes on stderr."""
    ran = run([mpi.launcher, *mpi.options, "-n", str(ranks), *words], settings)
    assert ran.returncode == 0, f"{settings} {words}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    return ran.stdout, ran.stderr


@every_mpi
@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (3, 60)])
def test_random_messages_of_devices_are_what_they_are_on_the_host(mpi, programs, tmp_path, ranks, percent):
    report, log = tmp_path / "report", tmp_path / "log"
    program = programs(mpi)
    on_host = messages(mpi, program, ranks, 13, ROUNDS, None)
    settings = on_devices(percent) | {"FAKE_GPU_LOG": str(log)}
    assert messages(mpi, program, ranks, 13, ROUNDS, report, **settings) == on_host
    assert min(moves(report)) > ROUNDS
    # One kernel a buffer, and never a copy a block; plans are copied to the device, too.
    done = [[int(number) for number in line.split()[1::2]] for line in log.read_text("utf-8").splitlines()]
    all_moves = sum(moves(report)) + merged(report)["totals"]["gpu_taken"]
    assert 0 < sum(launches for launches, _, _ in done) <= all_moves
    assert sum(copies for _, copies, _ in done) <= 2 * all_moves


@every_mpi
def test_threads_may_have_buffers_in_one_device(mpi, programs, tmp_path):
    report = tmp_path / "report"
    messages(mpi, programs(mpi), 2, 7, ROUNDS // 3, report, ("--threads", "3"), **on_devices(80))
    assert min(moves(report)) > ROUNDS // 3


@every_mpi
@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (3, 60), (4, 80)])
def test_random_collective_calls_of_devices(mpi, collectives, tmp_path, ranks, percent):
    report = tmp_path / "report"
    words = [str(collectives(mpi)), str(ranks), str(ROUNDS), "0", "1"]
    on_host = said(mpi, ranks, words, {})[0]
    told = said(mpi, ranks, words, preloads(report) | on_devices(percent))[0]
    assert re.search(r"messages \d+ wrong 0 hash", on_host)
    assert told == on_host
    assert min(moves(report)) > ROUNDS // 2


# ---- from one rank's device to another's ----


def went(mpi: Mpi, program: Path, report: Path, what: str, **more: str) -> tuple[int, str, dict[str, Any]]:
    """How many messages of device_pairs.c came, what else it said, and the report."""
    out, err = said(mpi, 2, [str(program), what], preloads(report) | on_devices(100) | more)
    found = re.search(r"messages (\d+) wrong 0$", out, re.MULTILINE)
    assert found, out + err
    return int(found[1]), out, merged(report)


@every_mpi
@pytest.mark.parametrize("what", ["calls", "host"])
def test_a_receiver_takes_what_lies_in_the_memory_of_a_device(mpi, pairs, tmp_path, what):
    log = tmp_path / "log"
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", what, FAKE_GPU_LOG=str(log))
    totals = told["totals"]
    # On a busy machine some receivers are late: then the sender packs after all, and offers nothing for some messages.
    assert messages // 4 < totals["gpu_taken"] <= messages
    # One kernel or copy a message, and one of each at the ends of those that the host has carried.
    done = [[int(number) for number in line.split()[1::2]] for line in log.read_text("utf-8").splitlines()]
    assert sum(launches for launches, _, _ in done) <= totals["gpu_taken"] + totals["gpu_moves"]
    assert f"{totals['gpu_taken']:,} messages with " in " ".join(mpi_report.facts(told))


@every_mpi
def test_a_sender_does_not_depend_on_its_receiver(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "late")
    assert (messages, told["totals"]["withdrawn"], told["totals"]["gpu_taken"]) == (1, 1, 0)


@every_mpi
def test_fewer_bytes_than_there_is_room_for_and_more(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "short")
    assert messages == 11
    assert told["totals"]["gpu_taken"] > 0


@every_mpi
def test_where_no_process_maps_anothers_device_the_host_carries(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "calls", FAKE_GPU_NO_IPC="1")
    assert told["totals"]["gpu_taken"] == told["totals"]["offered"] == 0
    assert told["totals"]["gpu_moves"] >= 2 * messages
    assert "not supported" in " ".join(mpi_report.facts(told))


@every_mpi
def test_a_gpu_that_is_lost_under_an_offer_is_an_error_at_both_ends(mpi, pairs, tmp_path):
    messages, out, _ = went(mpi, pairs(mpi), tmp_path / "report", "lost", FAKE_GPU_LOST_AFTER="0")
    assert messages == 0
    assert re.search(r"^rank 0: spinloom: .*a kernel failed", out, re.MULTILINE)
    assert "rank 1: spinloom: rank 0 cannot read its GPU's memory any more" in out


@every_mpi
@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (4, 50)])
def test_random_messages_from_device_to_device(mpi, programs, tmp_path, ranks, percent):
    report = tmp_path / "report"
    program = programs(mpi)
    on_host = messages(mpi, program, ranks, 17, ROUNDS, None)
    settings = on_devices(percent) | {"SPINLOOM_MPI_MIN_BYTES": "100"}
    assert messages(mpi, program, ranks, 17, ROUNDS, report, **settings) == on_host
    assert merged(report)["totals"]["gpu_taken"] > ROUNDS // 2


# ---- other calls ----


@every_mpi
@pytest.mark.parametrize("what", ["reduce", "pack"])
@pytest.mark.parametrize("percent", [60, 100])
def test_reductions_and_packing_of_devices(mpi, calls, tmp_path, what, percent):
    report = tmp_path / "report"
    words = [str(calls(mpi)), what, "5", "100"]
    on_host = said(mpi, 3, words, {})[0]
    assert re.search(r"calls [12]00 wrong 0", on_host)
    assert said(mpi, 3, words, preloads(report) | on_devices(percent))[0] == on_host
    assert min(moves(report)) > 50
    assert f"{sum(moves(report)):,} buffers with " in " ".join(mpi_report.facts(merged(report)))


@every_mpi
def test_what_a_look_at_a_request_tells_of_is_in_place(mpi, looks, tmp_path):
    report = tmp_path / "report"
    out, _ = said(mpi, 2, [str(looks(mpi))], preloads(report) | on_devices(100))
    found = re.search(r"looks (\d+) wrong 0", out)
    assert found, out
    assert int(found[1]) >= 3
    assert min(moves(report)) >= 3


@every_mpi
def test_calls_of_one_rank_and_sends_with_large_counts(mpi, local, tmp_path):
    report = tmp_path / "report"
    words = [str(local(mpi))]
    assert said(mpi, 2, words, {})[0] == "checks 21 wrong 0\n"
    assert said(mpi, 2, words, preloads(report) | on_devices(100))[0] == "checks 21 wrong 0\n"
    assert moves(report) == [11, 11]


ERRORS = {
    "send": "pinned host memory: out of memory",
    "freed": "was freed while a call had it as a buffer",
    "mixed": "lies partly in memory of a device and partly in memory of the host",
}


@every_mpi
@pytest.mark.parametrize("what", list(ERRORS))
def test_what_cannot_be_done_is_an_error_of_the_communicator(mpi, calls, tmp_path, what):
    settings = preloads(tmp_path / "report") | on_devices(100) | {"FAKE_GPU_PINNED_MOST": "500000"}
    if what != "send":
        del settings["FAKE_GPU_PINNED_MOST"]
    out, err = said(mpi, 2, [str(calls(mpi)), "errors", what], settings)
    assert re.search(rf"code 1 heard 1: spinloom: .*{ERRORS[what]}", out)
    assert len(re.findall(rf"^spinloom: .*{ERRORS[what]}", err, re.MULTILINE)) == 1


@every_mpi
def test_a_program_without_a_gpu_moves_nothing_by_one(mpi, programs, tmp_path):
    report = tmp_path / "report"
    messages(mpi, programs(mpi), 2, 3, ROUNDS // 4, report, SPINLOOM_MPI_GPU="on")
    assert moves(report) == [0, 0]
