"""Collective calls that the layer does by messages of its own, under every MPI that is here.

A program draws calls and messages from a seed and checks every byte. Its hash is of the order in which
several edges between two ranks were taken, where MPIs are free: it is that of the MPI without the layer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from layer_programs import (
    COLLECTIVES,
    MPIS,
    Mpi,
    compile_for,
    every_mpi,
    machines_of,
    preloads,
    programs_of,
    run,
)

ROUNDS = 150
SHORT = {"SPINLOOM_MPI_MIN_BYTES": "100"}


@pytest.fixture(scope="module")
def programs():
    return programs_of(*COLLECTIVES)


def exchanged(words: list[str], settings: dict[str, str]) -> tuple[int, str]:
    """How many messages came, all of them right, and the hash."""
    ran = run(words, settings)
    assert ran.returncode == 0, f"{settings}\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}"
    found = re.search(r"messages (\d+) wrong 0 hash (\w+)$", ran.stdout, re.MULTILINE)
    assert found, ran.stdout[-1000:] + ran.stderr[-1000:]
    return int(found[1]), found[2]


def command(program: Path, seed: int, parts: int = 1) -> list[str]:
    return [str(program), str(seed), str(ROUNDS), "0", str(parts)]


def job(mpi: Mpi, program: Path, ranks: int, parts: int = 1) -> list[str]:
    return [mpi.launcher, *mpi.options, "-n", str(ranks), *command(program, ranks, parts)]


@pytest.fixture(scope="module")
def without_layer(programs):
    """without_layer(mpi, ranks, parts): the same job by the MPI alone, which runs once."""
    return cache(lambda mpi, ranks, parts=1: exchanged(job(mpi, programs(mpi), ranks, parts), {}))


@dataclass(frozen=True)
class Sent:
    sender: int
    receiver: int
    way: str
    messages: int
    call: str


def sent_by_collectives(report: Path) -> list[Sent]:
    """What the layer saw of collective calls."""
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    return [
        Sent(line["rank"], receiver, way, messages, call)
        for line in lines
        for kind in line["types"]
        for _count, receiver, way, _why, messages, _bytes, _withdrawn, call in kind["sent"]
        if call
    ]


def taken_over(report: Path) -> dict[str, int]:
    """The messages of each collective call that the layer saw."""
    calls: dict[str, int] = {}
    for sent in sent_by_collectives(report):
        calls[sent.call] = calls.get(sent.call, 0) + sent.messages
    return calls


# The calls that leave for other machines as packed bytes, where their blocks are small.
PACKED = {"MPI_Alltoallw", "MPI_Neighbor_alltoallv", "MPI_Neighbor_alltoallw"}


def between_machines(report: Path, machines: str) -> set[tuple[str, str]]:
    """The ways that messages of collective calls took to other machines, with the calls."""
    return {
        (one.way, one.call)
        for one in sent_by_collectives(report)
        if machines[one.sender] != machines[one.receiver]
    }


@every_mpi
@pytest.mark.parametrize(
    ("ranks", "path"),
    [(2, "auto"), (2, "mapped"), (3, "auto"), (3, "joint"), (4, "staged"), (4, "cma")],
)
def test_random_calls_of_random_types(mpi, programs, without_layer, ranks, path, tmp_path):
    report = tmp_path / "report"
    settings = preloads(report) | SHORT | {"SPINLOOM_MPI_PATH": path}
    assert exchanged(job(mpi, programs(mpi), ranks), settings) == without_layer(mpi, ranks)
    calls = taken_over(report)
    assert len(calls) > 7, calls
    assert sum(calls.values()) > ROUNDS / 2


@every_mpi
@pytest.mark.parametrize("machines", ["aa-", "aao", "abab"])
def test_calls_of_the_whole_job_are_the_mpis_where_some_ranks_are_elsewhere(
    mpi, programs, without_layer, machines, tmp_path
):
    report = tmp_path / "report"
    ranks = len(machines)
    words = machines_of(mpi, command(programs(mpi), ranks), machines, preloads(report) | SHORT)
    assert exchanged(words, {}) == without_layer(mpi, ranks)
    assert between_machines(report, machines) == {("packed", call) for call in PACKED}


@every_mpi
def test_ranks_that_are_alone_on_their_machines_pack_for_the_mpi(mpi, programs, without_layer, tmp_path):
    report = tmp_path / "report"
    words = machines_of(mpi, command(programs(mpi), 2), "ab", preloads(report) | SHORT)
    assert exchanged(words, {}) == without_layer(mpi, 2)
    assert between_machines(report, "ab") == {("packed", call) for call in PACKED}


@every_mpi
@pytest.mark.parametrize("machines", ["abab", "a-a", "aoa"])
def test_calls_of_those_on_one_machine_are_the_layers(mpi, programs, without_layer, machines, tmp_path):
    report = tmp_path / "report"
    ranks = len(machines)
    words = machines_of(mpi, command(programs(mpi), ranks, 2), machines, preloads(report) | SHORT)
    assert exchanged(words, {}) == without_layer(mpi, ranks, 2)
    assert between_machines(report, machines) <= {("packed", call) for call in PACKED}
    assert sum(one.messages for one in sent_by_collectives(report) if one.way != "pass") > 4
    assert len(taken_over(report)) > 7


@every_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_neighbour_that_is_met_twice_is_met_in_the_order_of_the_mpi(mpi, ranks, tmp_path):
    program, report = tmp_path / "periodic", tmp_path / "report"
    compile_for(mpi, [Path(__file__).with_name("periodic_neighbours.c")], program)
    words = [mpi.launcher, *mpi.options, "-n", str(ranks), str(program)]
    stock, ours = (run(words, settings) for settings in ({}, preloads(report) | SHORT))
    assert stock.returncode == ours.returncode == 0, ours.stderr[-2000:]
    lines = stock.stdout.splitlines()
    assert len(lines) >= 18
    assert "differs" not in stock.stdout
    assert ours.stdout.splitlines() == lines
    carried = {sent.call for sent in sent_by_collectives(report) if sent.way != "pass"}
    assert carried == {"MPI_Neighbor_alltoall", "MPI_Neighbor_alltoallv", "MPI_Neighbor_alltoallw"}


@pytest.fixture(scope="module")
def repeated():
    return programs_of(Path(__file__).with_name("repeated_calls.c"))


@every_mpi
@pytest.mark.parametrize(
    ("ranks", "path", "way"), [(2, "auto", "mapped"), (3, "mapped", "mapped"), (5, "staged", "staged")]
)
def test_calls_made_again_until_one_thing_changes(mpi, repeated, ranks, path, way, tmp_path):
    """A plan of a call must not be used where its types, counts, buffers or memory have changed."""
    report = tmp_path / "report"
    words = [mpi.launcher, *mpi.options, "-n", str(ranks), str(repeated(mpi)), str(ranks), "150"]
    ran = run(words, preloads(report) | {"SPINLOOM_MPI_PATH": path})
    found = re.search(r"every number is right; (\d+) new types had the handle", ran.stdout)
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout[-500:]}{ran.stderr[-2000:]}"
    assert found, ran.stdout[-500:]
    assert int(found[1]) > 10, "no handle was given out again"
    carried = [one for one in sent_by_collectives(report) if one.way != "pass"]
    assert way in {one.way for one in carried}
    assert len({one.call for one in carried}) >= 3  # calls that are mostly short are looked at seldom
    assert sum(one.messages for one in carried) > 100


@every_mpi
def test_wrong_arguments_are_the_mpis_own_errors(mpi, tmp_path):
    """Also of calls on which the ranks have agreed. A call that waits for a wrong one would not end."""
    program, report = tmp_path / "wrong", tmp_path / "report"
    compile_for(mpi, [Path(__file__).with_name("wrong_collectives.c")], program)
    words = [mpi.launcher, *mpi.options, "-n", "2", str(program)]
    stock, ours = (run(words, settings) for settings in ({}, preloads(report)))
    lines = stock.stdout.splitlines()
    assert stock.returncode == ours.returncode == 0, ours.stderr[-2000:]
    assert len(lines) >= 17
    assert not any(line.endswith(": 0") for line in lines)
    assert ours.stdout.splitlines() == lines
    carried = {one.call for one in sent_by_collectives(report) if one.way != "pass"}
    assert {"MPI_Alltoallw", "MPI_Alltoallv", "MPI_Gatherv"} <= carried


@pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
def test_a_round_by_itself_is_the_round_of_the_whole_job(mpi, programs, without_layer):
    """What a wrong round says to run again is the round."""
    words = job(mpi, programs(mpi), 2)[:-3]
    parts = [exchanged([*words, str(last), str(first)], {}) for first, last in ((0, 40), (40, ROUNDS))]
    assert sum(messages for messages, _ in parts) == without_layer(mpi, 2)[0]
