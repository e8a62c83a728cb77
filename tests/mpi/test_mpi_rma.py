"""`spinloom run --rma`: windows on memory that all ranks have mapped, or on the NIC's. No time is tested."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, programs_of, run

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def atomics():
    return programs_of(HERE / "window_atomics.c")


@pytest.fixture(scope="module")
def accesses():
    return programs_of(HERE / "random_windows.c")


@pytest.fixture(scope="module")
def arguments():
    return programs_of(HERE / "window_arguments.c")


@pytest.fixture(scope="module")
def bounds():
    return programs_of(HERE / "window_bounds.c")


def job(mpi: Mpi, ranks: int, program: Path, *words: object) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), *map(str, words)]


def on_nic(words: list[str], folder: Path, *options: str, **settings: str) -> tuple[str, dict]:
    """What the program prints, and what the report says of windows."""
    report = folder / "report.json"
    ran = run(["spinloom", "run", "--rma", *options, f"--report={report}", "--", *words], settings)
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    told = json.loads(report.read_text(encoding="utf-8"))["rma"]
    assert f"{told['windows'] - told['mapped']:,} windows of ranks were on the NIC" in ran.stderr
    if settings.get("SPINLOOM_MPI_RMA") == "nic":
        assert told["mapped"] == 0
    return ran.stdout, told


# on: by mapped memory where that is possible.
every_way = pytest.mark.parametrize("way", ["on", "nic"])


@every_mpi
@every_way
@pytest.mark.parametrize(("ranks", "parts"), [(2, 1), (3, 1), (4, 2)])
def test_accesses_of_random_types(mpi, accesses, ranks, parts, way, tmp_path):
    """In windows of every flavour, of all ranks and of some; gaps stay as they are."""
    words = job(mpi, ranks, accesses(mpi), 10 + ranks, 25, 1, parts)
    said, told = on_nic(words, tmp_path, SPINLOOM_MPI_RMA=way)
    assert said.rstrip().endswith("wrong 0"), said[-1000:]
    assert (told["on"], told["left"]) == (ranks, 0)
    assert told["puts"] > 100
    assert told["gets"] > 50


@every_mpi
@every_way
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("mode", [[], ["threads"]], ids=["one thread", "threads"])
def test_atomics_locks_and_errors(mpi, atomics, ranks, mode, way, tmp_path):
    """Elements that all ranks change at once; pairs by the origin; waiting ranks let the MPI go on."""
    settings = {"WITH_ERRORS": "1", "SPINLOOM_MPI_RMA": way}
    said, told = on_nic(job(mpi, ranks, atomics(mpi), ranks, 3, *mode), tmp_path, **settings)
    assert said.rstrip().endswith("wrong 0"), said[-1000:]
    assert told["windows"] == 2 * ranks
    # In three rounds, of two windows: pairs of two types, to each rank from each.
    if told["mapped"] == 0:
        assert told["updates"] == 2 * 3 * 2 * ranks * ranks
    assert told["fetches"] > told["updates"]


RIGHT = {"Debian's Open MPI": {"OMPI_MCA_osc": "ucx"}, "MPICH 5": {}, "the standard interface of MPI 5": {}}


@every_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_program_of_atomics_is_right_by_itself(mpi, atomics, ranks):
    """So that what it finds wrong is ours."""
    if mpi.name not in RIGHT:
        pytest.skip(f"{mpi.name} misses windows that begin at no multiple of 16 (see window_atomics.c)")
    ran = run(job(mpi, ranks, atomics(mpi), ranks, 3), RIGHT[mpi.name])
    if "requested component was not found" in ran.stderr:
        pytest.skip(f"{mpi.name} has no osc/ucx here")
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.rstrip().endswith("wrong 0"), ran.stdout[-1000:]


@every_mpi
@every_way
@pytest.mark.parametrize(("which", "count"), [((), 4**3), (("wrong",), 20)], ids=["no bytes", "wrong"])
def test_types_and_operations_are_taken_and_refused_as_by_the_mpi(
    mpi, arguments, which, count, way, tmp_path
):
    """Where there are no bytes, and basic types that differ; and where arguments are wrong."""
    if which and "Open MPI" in mpi.name:
        pytest.skip(f"{mpi.name} itself ends by a signal in some of these calls")
    if mpi.name == "Debian's Open MPI":
        pytest.skip(f"{mpi.name} has no windows of one process, so that it is not asked")
    words = job(mpi, 2, arguments(mpi), *which)
    without = run(words, {})
    assert without.returncode == 0, without.stderr[-2000:]
    rows = without.stdout.splitlines()
    assert len(rows) == count
    said, told = on_nic(words, tmp_path, SPINLOOM_MPI_RMA=way)
    assert said.splitlines() == rows
    assert told["windows"] == 2


@every_mpi
@every_way
def test_types_of_which_the_mpi_says_other_bounds_are_put_as_by_the_mpi(mpi, bounds, way, tmp_path):
    words = job(mpi, 2, bounds(mpi))
    without = run(words, {})
    assert without.returncode == 0, without.stderr[-2000:]
    assert " puts, 0 refused, " in without.stdout
    said, told = on_nic(words, tmp_path, SPINLOOM_MPI_RMA=way)
    assert said == without.stdout
    assert told["puts"] > 2 * 1_000


BLOCK_PAIRS = 6 * 6  # of shapes, in window_blocks.c


@every_mpi
@every_way
def test_accesses_in_long_blocks(mpi, way, tmp_path):
    program = programs_of(HERE / "window_blocks.c")(mpi)
    said, told = on_nic(job(mpi, 2, program), tmp_path, SPINLOOM_MPI_RMA=way)
    assert said.rstrip().endswith(f"accesses {5 * BLOCK_PAIRS * 12} wrong 0"), said[-1000:]
    assert told["accumulates"] == 5 * BLOCK_PAIRS * 4
    assert told["mapped"] == (told["windows"] if way == "on" else 0)


@every_mpi
@pytest.mark.parametrize("length", ["short", "long"])
def test_accesses_in_long_blocks_without_a_report(mpi, length):
    """Accesses that a report counts go another way."""
    program = programs_of(HERE / "window_blocks.c")(mpi)
    ran = run(["spinloom", "run", "--", *job(mpi, 2, program, length)], {})
    assert ran.returncode == 0, ran.stderr[-2000:]
    kinds = 1 if length == "long" else 5
    assert ran.stdout.rstrip().endswith(f"accesses {kinds * BLOCK_PAIRS * 12} wrong 0"), ran.stdout[-1000:]


@every_mpi
@every_way
def test_beside_collective_calls(mpi, atomics, way, tmp_path):
    said, told = on_nic(job(mpi, 2, atomics(mpi), 9, 2), tmp_path, "--collectives", SPINLOOM_MPI_RMA=way)
    assert said.rstrip().endswith("wrong 0"), said[-1000:]
    assert told["on"] == 2


@every_mpi
def test_windows_on_mapped_memory_need_no_option(mpi, tmp_path):
    """The report says why a window of static memory is the MPI's."""
    program = programs_of(HERE / "window_ways.c")(mpi)
    report = tmp_path / "report.json"
    ran = run(["spinloom", "run", f"--report={report}", "--", *job(mpi, 2, program)], {})
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "wrong 0" in ran.stdout
    told = json.loads(report.read_text(encoding="utf-8"))["rma"]
    assert (told["windows"], told["mapped"], told["left"]) == (2, 2, 2)
    assert sum(told["why_left"].values()) == 2
    assert "2 were left to the MPI (" in ran.stderr
    assert "the memory of a rank cannot be mapped" in ran.stderr


@every_mpi
def test_off_leaves_all_windows_to_the_mpi(mpi, accesses, tmp_path):
    report = tmp_path / "report.json"
    rounds = 8  # Open MPI 4.1 by itself has wrong numbers in the ninth
    words = ["spinloom", "run", f"--report={report}", "--", *job(mpi, 2, accesses(mpi), 5, rounds, 1, 1)]
    ran = run(words, {"SPINLOOM_MPI_RMA": "off"})
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.rstrip().endswith("wrong 0")
    assert "rma" not in json.loads(report.read_text(encoding="utf-8"))


@every_mpi
def test_a_rank_without_the_option_keeps_all_windows_with_the_mpi(mpi, accesses):
    """Such ranks never found one board, and each says why."""
    words = [mpi.launcher, *mpi.options, "-n", "1", "spinloom", "run", "--rma", "--"]
    program = [str(accesses(mpi)), "4", "8"]
    ran = run([*words, *program, ":", "-n", "1", "spinloom", "run", "--", *program], {})
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-2000:]
    assert ran.stdout.rstrip().endswith("wrong 0")
    assert "windows stay with the MPI: " in ran.stderr


def test_help_names_the_option():
    said = subprocess.run(["spinloom", "run", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--rma" in said
    assert "all accesses, locks and" in " ".join(said.split())
