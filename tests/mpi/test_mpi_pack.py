"""MPI_Pack and MPI_Unpack of random datatypes (layer_pack.c): the layer changes nothing that they return."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from layer_programs import Mpi, compile_for, every_mpi, preloads, run
from patience import until

SOURCE = Path(__file__).parent / "layer_pack.c"
ROUNDS = 200


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack")
    built: dict[tuple[Mpi, int], Path] = {}

    def program(mpi: Mpi, large: int) -> Path:
        if (mpi, large) not in built:
            path = folder / f"pack{len(built)}"
            compile_for(mpi, [SOURCE], path, f"-DLARGE={large}")
            built[mpi, large] = path
        return built[mpi, large]

    return program


def told(printed: str) -> list[str]:
    """The lines of the program: launchers print others when it ends by a signal."""
    return [line for line in printed.splitlines() if re.match(r"\d+: pack|errors|wrong|done", line)]


@every_mpi
@pytest.mark.parametrize("large", [0, 1], ids=["int", "MPI_Count"])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_pack_and_unpack_return_does_not_depend_on_the_layer(mpi, programs, large, seed, tmp_path):
    words = [mpi.launcher, *mpi.options, "-n", "2", str(programs(mpi, large)), str(seed), str(ROUNDS)]
    without = run(words, {})
    report = tmp_path / "report"
    layered = run(words, preloads(report))
    again = " ".join(words)
    expected = told(without.stdout)
    assert told(layered.stdout) == expected, again
    # Which rank a launcher names when both have ended by a signal is chance.
    assert (layered.returncode == 0) == (without.returncode == 0), f"{again}\n{layered.stderr[-2000:]}"
    assert expected
    if without.returncode != 0:
        pytest.skip(f"{mpi.name} ends itself after {len(expected)} rounds, equal up to there")
    assert len(expected) >= ROUNDS
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert sum(line["packs"] for line in lines) > ROUNDS / 2, lines


@every_mpi
@pytest.mark.parametrize("launched", [True, False], ids=["one rank", "no launcher"])
def test_a_rank_that_is_alone_packs_by_our_kernels_and_leaves_nothing_in_shared_memory(
    mpi, programs, launched, tmp_path
):
    words = [str(programs(mpi, 0)), "3", str(ROUNDS)]
    if launched:
        words = [mpi.launcher, *mpi.options, "-n", "1", *words]
    without = run(words, {})
    if not told(without.stdout):
        pytest.skip(f"{mpi.name} needs a launcher: {without.stderr[-300:]}")
    before = set(Path("/dev/shm").glob("spinloom-*"))
    report = tmp_path / "report"
    layered = run(words, preloads(report))
    assert until(lambda: set(Path("/dev/shm").glob("spinloom-*")) <= before)
    assert told(layered.stdout) == told(without.stdout), " ".join(words)
    assert (layered.returncode == 0) == (without.returncode == 0), layered.stderr[-2000:]
    if without.returncode != 0:
        pytest.skip(f"{mpi.name} ends itself after {len(told(without.stdout))} rounds, equal up to there")
    (line,) = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    assert line["packs"] > ROUNDS / 2
    assert (line["on"], line["why_off"], line["sent"]) == (True, "", 0)
