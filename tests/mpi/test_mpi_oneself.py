"""Messages of a rank to itself (to_oneself.c): the MPI matches them, and one copy moves them.

No time is tested.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, preloads, programs_of, run
from patience import until

SOURCE = Path(__file__).parent / "to_oneself.c"
# Where it is known which slot the part of a neighbour that is met twice goes to.
KNOWN_ORDERS = ("MPICH 5", "the standard interface of MPI 5")
ROUNDS, MESSAGES = 6, 17  # a round's, between the calls of one rank, of types with gaps


@pytest.fixture(scope="module")
def program():
    return programs_of(SOURCE)


def job(mpi: Mpi, program: Path, ranks: int) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), str(program)]


@every_mpi
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("path", ["auto", "staged", "mapped", "pass"])
def test_what_comes_does_not_depend_on_the_layer(mpi, program, ranks, path, tmp_path):
    """Order, wildcards, probes, cancels, modes, truncation, statuses, and every byte."""
    words = job(mpi, program(mpi), ranks)
    without = run(words, {})
    assert without.returncode == 0, without.stderr[-2000:]
    assert len(without.stdout.splitlines()) == ranks
    report = tmp_path / "report"
    layered = run(words, {**preloads(report), "SPINLOOM_MPI_PATH": path})
    assert layered.returncode == 0, layered.stderr[-2000:]
    assert layered.stdout == without.stdout
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["on"] for line in lines] == [True] * ranks
    for line in lines:
        went = sum(sent[4] for told in line["types"] for sent in told["sent"] if sent[2] != "pass")
        assert went == line["within"] == line["sent"]
        assert line["within"] == 0 if path == "pass" else line["within"] >= ROUNDS * MESSAGES


@every_mpi
def test_the_report_says_which_way_they_went(mpi, program, tmp_path):
    file = tmp_path / "report.json"
    ran = run(["spinloom", "run", f"--report={file}", "--", *job(mpi, program(mpi), 1)], {})
    assert ran.returncode == 0, ran.stderr[-2000:]
    document = json.loads(file.read_text(encoding="utf-8"))
    rows = [row for row in document["types"] if row["way"] == "within"]
    assert sum(row["messages"] for row in rows if row["call"] is None) >= ROUNDS * (MESSAGES - 1)
    assert {row["peers"] for row in rows} == {"itself"}
    assert "of ranks to themselves were copied from layout to layout" in ran.stderr
    if (
        "MPICH 5" in mpi.name or "standard" in mpi.name
    ):  # it is known there which slot a neighbour's part goes to
        assert {row["call"] for row in rows} >= {
            "MPI_Alltoallw",
            "MPI_Gatherv",
            "MPI_Neighbor_alltoallw",
            None,
        }


@every_mpi
def test_without_a_launcher(mpi, program, tmp_path):
    without = run([str(program(mpi))], {})
    if without.returncode != 0:
        pytest.skip(f"{mpi.name} needs a launcher: {without.stderr[-300:]}")
    before = set(Path("/dev/shm").glob("spinloom-*"))
    report = tmp_path / "report"
    layered = run([str(program(mpi))], preloads(report))
    assert until(lambda: set(Path("/dev/shm").glob("spinloom-*")) <= before)
    assert layered.stdout == without.stdout
    (line,) = map(json.loads, report.read_text(encoding="utf-8").splitlines())
    assert (line["on"], line["why_off"]) == (True, "")
