"""MPI programs with buffers in a GPU's memory, on the driver of tests/gpu/driver.

The host cannot touch the memory of that driver: a program in which it does dies. Where an MPI says that it
knows of GPUs (knows_gpus.c says it in its place) everybody can but the layer.

Programs draw calls from a seed and compare every byte with what they work out themselves.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from layer_programs import COLLECTIVES, MPIS, SOURCES, Mpi, every_mpi, messages, preloads, programs_of, run
from spinloom.accelerate import mpi_report

HERE = Path(__file__).parent
ROUNDS = 60


WAYS = ("by the host", "by an MPI that knows of GPUs", "by the host though the MPI knows of GPUs")
every_way = pytest.mark.parametrize("way", WAYS)
# The driver lets instructions through, not system calls. Those that copy a byte at a time take too long.
BY_INSTRUCTIONS = {
    "FAKE_GPU_OPEN": "libspinloom_mpi.so",
    "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000",
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "UCX_TLS": "posix,self",
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
}


def unless_three(ranks: int) -> dict[str, str]:
    """Everybody may touch the device at once: to let single instructions through takes ten times as long."""
    return {} if ranks == 3 else {"FAKE_GPU_OPEN": "1"}


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
def programs():
    return programs_of()


@pytest.fixture(scope="module")
def collectives():
    return programs_of(*COLLECTIVES)


@pytest.fixture(scope="module")
def calls():
    sources = (HERE / "device_calls.c", SOURCES / "device.c", SOURCES / "form.c")
    return programs_of(*sources)


@pytest.fixture(scope="module")
def looks():
    return programs_of(HERE / "device_looks.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def local():
    return programs_of(HERE / "device_local.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def files():
    return programs_of(HERE / "device_files.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def parts():
    return programs_of(HERE / "device_parts.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def windows():
    return programs_of(HERE / "device_windows.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def pairs():
    return programs_of(HERE / "device_pairs.c", SOURCES / "device.c")


def merged(report: Path) -> dict[str, Any]:
    return mpi_report.merge(mpi_report.read(report))


@pytest.fixture(scope="module")
def ways():
    return programs_of(HERE / "device_ways.c", SOURCES / "device.c")


@pytest.fixture(scope="module")
def on_way(tmp_path_factory):
    """on_way(way, percent, report): the settings of a job with the layer whose buffers go that way."""
    knows = tmp_path_factory.mktemp("knows") / "knows.so"
    words = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(knows), str(HERE / "knows_gpus.c")]
    subprocess.run(words, check=True)

    def settings(way: str, percent: int, report: Path) -> dict[str, str]:
        made = on_devices(percent) | preloads(report)
        if way == WAYS[0]:
            return made
        made |= BY_INSTRUCTIONS | {"LD_PRELOAD": f"{made['LD_PRELOAD']}:{knows}"}
        return made if way == WAYS[1] else made | {"SPINLOOM_MPI_GPU": "host"}

    return settings


def told(report: Path, name: str) -> list[int]:
    return [json.loads(line)[name] for line in report.read_text(encoding="utf-8").splitlines()]


def moves(report: Path) -> list[int]:
    return told(report, "gpu_moves")


def on_driver(log: Path) -> list[tuple[int, int]]:
    """The launches and the copies of each rank."""
    done = [line.split() for line in log.read_text("utf-8").splitlines()]
    return [(int(words[1]), int(words[3])) for words in done]


def said(mpi: Mpi, ranks: int, words: list[str], settings: dict[str, str]) -> tuple[str, str]:
    """What the program prints, and what comes on stderr."""
    ran = run([mpi.launcher, *mpi.options, "-n", str(ranks), *words], settings)
    assert ran.returncode == 0, f"{settings} {words}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    return ran.stdout, ran.stderr


@every_mpi
@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (3, 60)])
def test_random_messages_by_an_mpi_that_knows_of_gpus(mpi, programs, on_way, tmp_path, ranks, percent):
    report = tmp_path / "report"
    program = programs(mpi)
    on_host = messages(mpi, program, ranks, 17, ROUNDS, None)
    settings = on_way(WAYS[1], percent, report) | unless_three(ranks)
    assert messages(mpi, program, ranks, 17, ROUNDS, None, **settings) == on_host
    assert min(told(report, "gpu_as_they_are")) > ROUNDS
    assert min(told(report, "gpu_within")) > ROUNDS


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
@pytest.mark.parametrize("way", WAYS[:2])
def test_threads_may_have_buffers_in_one_device(mpi, programs, on_way, way, tmp_path):
    report = tmp_path / "report"
    settings = on_way(way, 80, report)
    if way == WAYS[1]:
        settings["FAKE_GPU_OPEN"] = "1"  # memory that is let through for one thread would be shut by another
    messages(mpi, programs(mpi), 2, 7, ROUNDS // 3, None, ("--threads", "3"), **settings)
    assert min(moves(report)) > ROUNDS // 3


@every_mpi
@pytest.mark.parametrize(("ranks", "percent"), [(2, 100), (3, 60), (4, 80)])
@pytest.mark.parametrize("way", WAYS[:2])
def test_random_collective_calls_of_devices(mpi, collectives, on_way, way, tmp_path, ranks, percent):
    report = tmp_path / "report"
    words = [str(collectives(mpi)), str(ranks), str(ROUNDS), "0", "1"]
    on_host = said(mpi, ranks, words, {})[0]
    opened = unless_three(ranks) if way == WAYS[1] else {}
    out = said(mpi, ranks, words, on_way(way, percent, report) | opened)[0]
    assert re.search(r"messages \d+ wrong 0 hash", on_host)
    assert out == on_host
    assert min(moves(report)) > ROUNDS // 2
    if way == WAYS[1]:
        assert min(told(report, "gpu_as_they_are")) > 0
        assert min(told(report, "gpu_within")) > 0


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
    # On a busy machine receivers are late: the sender packs after all, and offers nothing for a while.
    assert 5 < totals["gpu_taken"] <= messages
    # One kernel or copy a message, and one of each at the ends of those that the host has carried.
    done = [[int(number) for number in line.split()[1::2]] for line in log.read_text("utf-8").splitlines()]
    assert sum(launches for launches, _, _ in done) <= totals["gpu_taken"] + totals["gpu_moves"]
    assert f"{totals['gpu_taken']:,} messages with " in " ".join(mpi_report.facts(told))


@every_mpi
def test_a_sender_does_not_depend_on_its_receiver(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "late")
    assert (messages, told["totals"]["withdrawn"], told["totals"]["gpu_taken"]) == (1, 1, 0)


@every_mpi
def test_a_receiver_without_memory_of_its_device_needs_no_sender(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "full")
    assert (messages, told["totals"]["offered"]) == (4, 4)
    assert told["totals"]["gpu_taken"] == told["totals"]["withdrawn"] == 0


@every_mpi
def test_what_was_ready_for_a_call_that_failed_is_not_sent_by_another(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "start")
    assert messages == 3
    assert told["totals"]["offered"] > 1


@every_mpi
def test_fewer_bytes_than_there_is_room_for_and_more(mpi, pairs, tmp_path):
    messages, _, told = went(mpi, pairs(mpi), tmp_path / "report", "short")
    assert messages == 11
    assert told["totals"]["offered"] > 0


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
    assert merged(report)["totals"]["gpu_taken"] > 5


# ---- other calls ----


@every_mpi
@pytest.mark.parametrize("what", ["reduce", "pack"])
@pytest.mark.parametrize("percent", [60, 100])
@pytest.mark.parametrize("way", WAYS[:2])
def test_reductions_and_packing_of_devices(mpi, calls, on_way, way, tmp_path, what, percent):
    report = tmp_path / "report"
    words = [str(calls(mpi)), what, "5", "100"]
    on_host = said(mpi, 3, words, {})[0]
    assert re.search(r"calls [12]00 wrong 0", on_host)
    assert said(mpi, 3, words, on_way(way, percent, report))[0] == on_host
    assert min(moves(report)) > 50
    # Operands without gaps in calls that wait are the MPI's own matter; to pack is the layer's.
    assert (min(told(report, "gpu_as_they_are")) > 0) == (way == WAYS[1] and what == "reduce")
    facts = mpi_report.facts(merged(report))
    assert f"{sum(moves(report)):,} buffers with " in " ".join(facts)


@every_mpi
@every_way
def test_what_a_look_at_a_request_tells_of_is_in_place(mpi, looks, on_way, way, tmp_path):
    report = tmp_path / "report"
    out, _ = said(mpi, 2, [str(looks(mpi))], on_way(way, 100, report))
    found = re.search(r"looks (\d+) wrong 0", out)
    assert found, out
    assert int(found[1]) >= 3
    assert min(told(report, "gpu_as_they_are" if way == WAYS[1] else "gpu_moves")) >= 3


@every_mpi
@every_way
def test_calls_of_one_rank_and_sends_with_large_counts(mpi, local, on_way, way, tmp_path):
    report = tmp_path / "report"
    words = [str(local(mpi))]
    assert said(mpi, 2, words, {})[0] == "checks 21 wrong 0\n"
    assert said(mpi, 2, words, on_way(way, 100, report))[0] == "checks 21 wrong 0\n"
    assert moves(report) == [11, 11]
    # Of the calls only a send and three receives are for the MPI to do in the device.
    assert sorted(told(report, "gpu_within")) == ([1, 3] if way == WAYS[1] else [0, 0])


@every_mpi
@every_way
@pytest.mark.parametrize("items", [4000, 20, 3])
@pytest.mark.parametrize("kind", ["plain", "gaps", "mixed"])
def test_which_way_buffers_go(mpi, ways, on_way, way, items, kind, tmp_path):
    if kind == "mixed" and (items % 2 == 1 or mpi.name == "Debian's MPICH"):
        pytest.skip("its numbers are pairs" if items % 2 == 1 else "MPICH 4 cuts such messages anywhere")
    report, log = tmp_path / "report", tmp_path / "log"
    words = [str(ways(mpi)), str(items), kind]
    alone = {"FAKE_GPU_LOG": str(log), "FAKE_GPU_NO_IPC": "1"}  # no rank takes another's buffers itself
    out, _ = said(mpi, 2, words, on_way(way, 100, report) | alone)
    found = re.fullmatch(r"buffers (\d+) reduced (\d+) wrong 0\n", out)
    assert found, out
    buffers, reduced = map(int, found.groups())
    as_they_are, within = told(report, "gpu_as_they_are"), told(report, "gpu_within")
    if way != WAYS[1]:
        assert as_they_are == within == [0, 0]
        # Each is one kernel, or one copy where there are no gaps; messages to oneself are not there.
        assert moves(report) == [buffers + reduced] * 2
        return
    has_gaps = kind != "plain"
    assert as_they_are == [reduced if has_gaps else buffers + reduced] * 2
    assert within == [buffers if has_gaps else 0] * 2
    done = on_driver(log)
    assert [launches for launches, _ in done] == [buffers if has_gaps else 0] * 2
    if items != 20:  # 20 items are as long as messages of the layer's own, which are looked at
        sign, plans = 1, 2  # a sign that other ranks try to map; a plan that packs and one that unpacks
        assert [copies for _, copies in done] == [sign + (plans if has_gaps else 0)] * 2
    facts = " ".join(mpi_report.facts(merged(report)))
    assert f"{2 * as_they_are[0]} buffers without gaps in the memory of GPUs were given as they are" in facts
    assert (f"; {2 * buffers} of them stayed in that memory" in facts) == has_gaps


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the driver's guard is written for x86-64")
@pytest.mark.parametrize("library", ["libopen-pal.so.40", "libmpich.so.12", "libmpi.so.12"])
def test_the_driver_tells_who_touches_its_memory(library, ways, on_way, tmp_path):
    mpi = MPIS[["libopen-pal.so.40", "libmpich.so.12", "libmpi.so.12"].index(library)]
    settings = on_way(WAYS[1], 100, tmp_path / "report") | {"FAKE_GPU_OPEN": library}
    ran = run([mpi.launcher, *mpi.options, "-n", "2", str(ways(mpi)), "4000", "plain"], settings)
    assert ran.returncode != 0
    assert f"{library} touches memory of the device" in ran.stderr


@every_mpi
def test_a_device_without_room_leaves_it_to_the_host(mpi, ways, on_way, tmp_path):
    report = tmp_path / "report"
    buffers, plans = 2 * 12 * 4096, 2 * 4096  # less than 16,000 B lie beside them
    room = {"FAKE_GPU_BYTES": str(buffers + plans + 4096), "FAKE_GPU_NO_IPC": "1"}
    settings = on_way(WAYS[1], 100, report) | room
    out, _ = said(mpi, 2, [str(ways(mpi)), "4000", "gaps"], settings)
    assert out.startswith("buffers 33 ")
    assert moves(report) == [33, 33]
    assert told(report, "gpu_within") == [0, 0]


ERRORS = {
    "send": "pinned host memory: out of memory",
    "freed": "was freed while a call had it as a buffer",
    "mixed": "lies partly in memory of a device and partly in memory of the host",
}


@every_mpi
@pytest.mark.parametrize("what", list(ERRORS))
def test_what_cannot_be_done_is_an_error_of_the_communicator(mpi, calls, tmp_path, what):
    settings = preloads(tmp_path / "report") | on_devices(100) | {"FAKE_GPU_PINNED_MAX": "500000"}
    if what != "send":
        del settings["FAKE_GPU_PINNED_MAX"]
    out, err = said(mpi, 2, [str(calls(mpi)), "errors", what], settings)
    assert re.search(rf"code 1 heard 1: spinloom: .*{ERRORS[what]}", out)
    assert len(re.findall(rf"^spinloom: .*{ERRORS[what]}", err, re.MULTILINE)) == 1


@every_mpi
@every_way
def test_files_are_written_from_devices_and_read_into_them(mpi, files, on_way, way, tmp_path):
    report = tmp_path / "report"
    settings = on_way(way, 100, report)
    out, _ = said(mpi, 2, [str(files(mpi)), str(tmp_path / "file")], settings)
    assert out == "calls 124 wrong 0\n"
    assert min(moves(report)) >= 124


@every_mpi
def test_what_cannot_be_done_is_an_error_of_the_file(mpi, files, tmp_path):
    settings = preloads(tmp_path / "report") | on_devices(100) | {"FAKE_GPU_PINNED_MAX": "5000"}
    out, _ = said(mpi, 2, [str(files(mpi)), str(tmp_path / "file"), "errors"], settings)
    assert re.search(rf"codes 1 1 heard 1: spinloom: .*{ERRORS['send']}", out)


@every_mpi
@pytest.mark.parametrize("rma", ["off", "on"])
@pytest.mark.parametrize(
    ("way", "ranks", "percent"), [(WAYS[0], 2, 100), (WAYS[0], 3, 60), (WAYS[1], 2, 100)]
)
def test_accesses_to_windows_have_buffers_in_devices(
    mpi, windows, on_way, way, ranks, percent, rma, tmp_path
):
    report = tmp_path / "report"
    settings = on_way(way, percent, report) | {"SPINLOOM_MPI_RMA": rma}
    out, _ = said(mpi, ranks, [str(windows(mpi))], settings)
    assert out == "accesses 62 wrong 0\n"
    assert (merged(report).get("rma", {}).get("windows", 0) > 0) == (rma == "on")
    assert min(moves(report)) >= 62 or percent < 100


@every_mpi
def test_threads_access_one_window(mpi, windows, tmp_path):
    settings = preloads(tmp_path / "report") | on_devices(100)
    out, _ = said(mpi, 2, [str(windows(mpi)), "threads"], settings)
    assert out == "accesses 400 wrong 0\n"


@every_mpi
@pytest.mark.parametrize("way", WAYS[:2])
def test_parts_of_messages_in_devices(mpi, parts, on_way, way, tmp_path):
    report = tmp_path / "report"
    out, _ = said(mpi, 2, [str(parts(mpi))], on_way(way, 100, report))
    if out == "parts 0 wrong 0\n":
        pytest.skip(f"{mpi.name} has no partitioned messages")
    assert out == "parts 48 wrong 0\n"
    assert moves(report) == [48, 48]


REFUSED = {"create": "MPI_Win_create", "attach": "MPI_Win_attach"}


@every_mpi
@pytest.mark.parametrize(
    ("way", "rma", "why"),
    [
        (WAYS[0], "off", "which this MPI knows nothing of"),
        (WAYS[1], "on", "which windows on the NIC (--rma) cannot have"),
    ],
)
def test_windows_do_not_lie_in_devices(mpi, windows, on_way, way, rma, why, tmp_path):
    settings = on_way(way, 100, tmp_path / "report") | {"SPINLOOM_MPI_RMA": rma}
    out, _ = said(mpi, 2, [str(windows(mpi)), "refused"], settings)
    lines = out.splitlines()
    assert len(lines) == len(REFUSED) or ("Open MPI" in mpi.name and way == WAYS[1] and len(lines) == 1)
    for line in lines:
        call, code, text = line.split(maxsplit=2)
        assert code == "1:"
        assert text.startswith(f"spinloom: {REFUSED[call]} got memory of a GPU, {why}")


@every_mpi
def test_a_program_without_a_gpu_moves_nothing_by_one(mpi, programs, tmp_path):
    report = tmp_path / "report"
    messages(mpi, programs(mpi), 2, 3, ROUNDS // 4, report, SPINLOOM_MPI_GPU="on")
    assert moves(report) == [0, 0]
