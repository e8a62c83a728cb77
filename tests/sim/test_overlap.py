"""Collective operations while the host computes: what a start costs, what is left, the drawing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from c_programs import NIC, needs_compiler
from conftest import needs_engine
from spinloom.common.errors import Trouble
from spinloom.nics import profiles
from spinloom.papers import observe, overlap, studies, study_plots
from spinloom.papers.lab import Lab, Reading
from spinloom.papers.trial import Trial

pytestmark = [needs_engine, needs_compiler]
SIZE_BYTES = 50
NS = 1000


@pytest.fixture(scope="module")
def profile():
    return profiles.load(NIC)


def test_starting_costs_the_host_a_call_for_each_entry_and_one_round_trip(profile):
    """A broadcast's ranks but the root append one entry: T = o + 2 L, and the commands' bytes on PCIe."""
    algebra = profile["host.call"] + 2 * profile["pcie.latency"]
    for ranks in (2, 16):
        found = overlap.measured(profile, "bcast", overlap.NIC, SIZE_BYTES, ranks)
        assert algebra <= found["start_ps"] <= algebra + 5 * NS
        assert abs(found["overhead_ps"] - found["start_ps"]) <= NS  # the clock ticks in ns


def test_starting_an_all_reduce_costs_a_call_for_each_child_or_parent(profile):
    """In a tree of P = 2^d ranks a rank hears from d others at most, and a leaf also gives a count that lets
    its send go: T = max(d, 2) o + 2 L."""
    for depth in (1, 4):
        found = overlap.measured(profile, "allreduce", overlap.NIC, SIZE_BYTES, 2**depth)
        algebra = max(depth, 2) * profile["host.call"] + 2 * profile["pcie.latency"]
        assert algebra <= found["start_ps"] <= algebra + 5 * NS


@pytest.mark.parametrize("operation", list(overlap.ALGORITHMS))
def test_the_host_computes_while_its_nic_works_and_not_while_it_works_itself(profile, operation):
    by_nic = overlap.measured(profile, operation, overlap.NIC, SIZE_BYTES, 16)
    by_cpu = overlap.measured(profile, operation, overlap.CPU, SIZE_BYTES, 16)
    assert by_nic["rest_ps"] == 0
    assert by_cpu["rest_ps"] > 0.5 * by_cpu["time_ps"]
    assert by_cpu["time_ps"] > by_nic["time_ps"]


def test_tests_during_the_computation_help_a_host(profile):
    never, often = (
        overlap.measured(profile, "allreduce", overlap.CPU, SIZE_BYTES, 8, polls)["overhead_ps"]
        for polls in (0, 32)
    )
    assert often < never


def test_schedules_that_are_made_at_each_start_cost_the_host_more(profile):
    kept, made = (
        overlap.measured(profile, "allreduce", overlap.NIC, SIZE_BYTES, 8, once=once)["start_ps"]
        for once in (False, True)
    )
    assert made > kept + 2 * profile["pcie.latency"]


def test_an_algorithm_that_does_not_exist_is_an_error(profile, monkeypatch, capfd):
    monkeypatch.setitem(overlap.ALGORITHMS, "bcast", "by pigeon")
    with pytest.raises(Trouble, match="bcast of 2 ranks: rank"):
        overlap.measured(profile, "bcast", overlap.NIC, SIZE_BYTES, 2)
    assert "bcast has no algorithm 'by pigeon'" in capfd.readouterr().err


# ---- observations and drawing ----


def test_observations_are_ratios_of_the_right_ways():
    trial = Trial(NIC)
    of = observe.OBSERVATIONS["overhead_by_cpu_over_nic"]
    arguments = {"operation": "bcast", "size_bytes": SIZE_BYTES, "ranks": 4, "polls": 3, "once": True}
    by_cpu, by_nic = of.probes(trial, **arguments)
    assert (by_cpu.strategy, by_cpu.polls, by_cpu.once) == (overlap.CPU, 3, True)
    assert (by_nic.strategy, by_nic.polls, by_nic.once) == (overlap.NIC, 0, True)
    readings = [Reading({"overhead_ps": 30, "time_ps": 8}), Reading({"overhead_ps": 10, "time_ps": 2})]
    assert of.value(trial, readings, **arguments) == 3
    assert observe.OBSERVATIONS["latency_by_cpu_over_nic"].value(trial, readings, **arguments) == 4
    growth = observe.OBSERVATIONS["latency_growth"]
    small, large = growth.probes(trial, operation="scatter", size_bytes=SIZE_BYTES, ranks=(64, 256))
    assert (small.ranks, large.ranks, large.strategy) == (64, 256, overlap.NIC)
    assert growth.value(trial, readings, operation="scatter") == 0.25


def test_the_study_is_a_table_and_a_drawing(tmp_path):
    study = replace(studies.studies()["overlap"], ranks=(2, 4))
    laboratory = Lab(2)
    laboratory.run(studies.probes(study))
    rows = studies.rows(study, laboratory)
    # Four operations of two ways, and two of these also by the linear algorithm; two numbers of ranks.
    assert len(rows) == 2 * (4 * 2 + 2)
    assert list(rows[0]) == study.columns
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    study_plots.draw(study, rows, first)
    study_plots.draw(study, rows, second)
    assert first.read_bytes() == second.read_bytes()
    for text in ("latency", "overhead", "allgather", "cpu, linear"):
        assert text in first.read_text(encoding="utf-8")


def test_other_ranks_and_sizes_are_a_table_and_a_picture_for_each_size(spinloom, tmp_path):
    ran = spinloom(
        *(
            "paper",
            "study",
            "overlap",
            "--ranks",
            "2",
            "--size",
            "4KiB,64KiB",
            "--out",
            str(tmp_path),
            "--json",
        )
    )
    rows = json.loads(ran.out)
    assert {(row["size_bytes"], row["ranks"]) for row in rows} == {(4096, 2), (65536, 2)}
    assert len(rows) == 2 * (4 * 2 + 2)
    by_nic = {(row["operation"], row["size_bytes"]): row for row in rows if row["way"] == overlap.NIC}
    for operation in overlap.ALGORITHMS:  # a start does not grow with the message, its time does
        short, long = by_nic[operation, 4096], by_nic[operation, 65536]
        assert long["start_ps"] <= short["start_ps"] + 5 * NS
        assert long["time_ps"] > 1.5 * short["time_ps"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "overlap-4KiB.svg",
        "overlap-64KiB.svg",
        "overlap.csv",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("pingpong", "--ranks", "4"), "only the study 'overlap' takes --ranks and --size"),
        (("overlap", "--ranks", "1"), "--ranks 1: '1' is no number from 2"),
        (("overlap", "--size", "0"), "give 1 B or more"),
        (("overlap", "--ranks", "1024", "--size", "1MiB"), "take fewer ranks or smaller sizes"),
    ],
)
def test_numbers_that_cannot_be(spinloom, words, told):
    ran = spinloom("paper", "study", *words)
    assert ran.code != 0
    assert told in ran.err


def test_counts_made_while_a_header_is_parsed_reach_the_host():
    """47 messages and a copy to itself at once: the newest value of the counter is posted last."""
    found = overlap.measured(profiles.load("sc17-discrete"), "allgather", overlap.LINEAR, SIZE_BYTES, 48)
    assert found["time_ps"] > 0
