"""`spinloom paper study multicast`, `reduce`, `allreduce`: handlers in the switches of a network."""

from __future__ import annotations

import csv
import dataclasses
import io
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.nics import profiles
from spinloom.papers import studies
from spinloom.papers.lab import Lab
from spinloom.predict import goal_network
from study_cells import cell

pytestmark = needs_engine

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "switches.csv"
NIC = "sc19-slingshot"
GROUPS = ("multicast", "reduce", "allreduce")
STUDIES = [study for study in studies.studies().values() if study.networks]


def config(experiment: str, way: str, size_bytes: int, ranks: int, network: str, nic: str = NIC, **more):
    profile = profiles.changed(profiles.load(nic), more.pop("changes", ()))
    parsed = goal_network.parse(network)
    return cell(profile, experiment, way, size_bytes, ranks=ranks, network=parsed, **more)


def run(*arguments, **more):
    """A result, whose bytes have been compared at every rank."""
    result = core.load().run_study(config(*arguments, **more))
    assert result["checked"]
    return result


def ways(experiment: str) -> tuple[str, ...]:
    return studies.studies()[experiment].ways


@pytest.fixture(scope="module")
def laboratory():
    lab = Lab(2)
    lab.run([probe for study in STUDIES for probe in studies.probes(study) if probe.ranks <= 16])
    return lab


def test_every_point_is_as_it_was(laboratory):
    """The golden table, of `spinloom paper study NAME --csv`; here without the 64 ranks."""
    expected = [
        row
        for row in csv.DictReader(io.StringIO(GOLDEN.read_text(encoding="utf-8")))
        if int(row["ranks"]) <= 16
    ]
    rows = [
        row
        for study in STUDIES
        for row in studies.rows(
            dataclasses.replace(study, ranks=tuple(n for n in study.ranks if n <= 16)), laboratory
        )
    ]
    assert [{key: str(value) for key, value in row.items()} for row in rows] == expected


def test_no_time_is_less_than_the_bound(laboratory):
    """T >= put + (s - 1) hop + s (max(match, b G) + copy + dispatch + start); s switches on the way."""
    found = [
        (reading["time_ps"], reading["bound_ps"])
        for probe, reading in laboratory.readings.items()
        if probe.strategy == "switch"
    ]
    assert len(found) > 20
    assert all(time >= bound for time, bound in found)


@pytest.mark.parametrize("experiment", GROUPS)
@pytest.mark.parametrize("members", [[0, 1], [0, 8], [3, 14, 5], [15, 0, 1, 2, 9]])
def test_groups_of_some_ranks_leave_the_others_alone(experiment, members):
    for way in ways(experiment):
        if way != "stream" or members == [0, 1]:
            assert run(experiment, way, 5000, 16, "fat-tree:radix=4", members=members)["time_ps"] > 0


@pytest.mark.parametrize("experiment", GROUPS)
@pytest.mark.parametrize(
    "network", ["fat-tree:radix=4", "fat-tree:radix=16", "torus:4x3,hosts=2", "dragonfly"]
)
@pytest.mark.parametrize("size_bytes", [4, 2044, 2052, 20000])
def test_every_rank_has_every_byte_on_every_network(experiment, network, size_bytes):
    for ranks in (2, 7, 24):
        run(experiment, "switch", size_bytes, ranks, network, rounds=2)


@pytest.mark.parametrize("experiment", GROUPS)
def test_a_round_leaves_nothing_in_the_switches(experiment):
    """Sums are right in each round, and predictors alone know more than before."""
    once, thrice = (run(experiment, "switch", 6000, 16, "fat-tree:radix=8", rounds=n) for n in (1, 3))
    assert thrice["handlers"] == once["handlers"]
    assert thrice["link_bytes"] == once["link_bytes"]
    assert thrice["time_ps"] == pytest.approx(once["time_ps"], rel=0.05)


@pytest.mark.parametrize("hpus", [1, 2, 5])
@pytest.mark.parametrize("experiment", GROUPS)
def test_few_processors_and_packets_out_of_order_change_no_byte(experiment, hpus):
    run(experiment, "switch", 30000, 16, "fat-tree:radix=16", hpus=hpus)
    for seed in (1, 2, 3):
        run(experiment, "switch", 30000, 16, "fat-tree:radix=4", hpus=hpus, order=8, seed=seed)


def test_a_multicast_crosses_every_link_of_its_tree_once():
    """Bytes on links = (12 + 15) n: a link to each switch of the tree but the first, each host but one."""
    for size_bytes in (8, 5000):
        result = run("multicast", "switch", size_bytes, 16, "fat-tree:radix=4")
        assert result["switches"] == 8 + 4 + 1
        assert result["link_bytes"] == (12 + 15) * size_bytes
    # A sum crosses each link once upwards, and one to the root; an all-reduce all links down as well.
    assert run("reduce", "switch", 5000, 16, "fat-tree:radix=4")["link_bytes"] == (12 + 1) * 5000
    assert run("allreduce", "switch", 5000, 16, "fat-tree:radix=4")["link_bytes"] == (2 * 12 + 16) * 5000


def test_a_packet_through_a_chain_of_switches_is_the_bound_and_its_handlers():
    """T = put + (s - 1) hop + s (match + copy + dispatch + start) + s handlers until their call."""
    cycle_ps = 1250
    for experiment, members, switches in (
        ("multicast", [0, 15], 5),
        ("multicast", [0, 3], 3),
        ("multicast", [0, 1], 1),
    ):
        result = run(experiment, "switch", 8, 16, "fat-tree:radix=4", members=members)
        assert result["switches"] == result["handlers"] == switches
        assert 0 < result["time_ps"] - result["bound_ps"] <= result["handler_cycles"] * cycle_ps
    slow, fast = (
        run("multicast", "switch", 8, 16, f"fat-tree:radix=4,hop={hop}", members=[0, 15])["time_ps"]
        for hop in ("1us", "0ns")
    )
    assert slow - fast == 4 * 1_000_000


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"network": None}, "invalid", "needs a network with switches"),
        ({"members": [3]}, "invalid", "at least 2 members, not 1"),
        ({"members": [3, 16]}, "invalid", "rank 16 is no member: there are 16 ranks"),
        ({"members": [3, 4, 3]}, "invalid", "a member of the group twice"),
        ({"bytes": 10}, "invalid", "whole int32_t of 4 B, 10 B were given"),
        ({"rounds": 0}, "invalid", "at least one round"),
        ({"way": "store"}, "unsupported", "sums by linear, rdma or switch"),
        ({"order": "all:8"}, "unsupported", "the header of their message, which must come first"),
        ({"mtu": 3000}, "unsupported", "packets of a power of two of bytes"),
        ({"bytes": 4 << 20}, "exhausted", "needs 4882432 B of its memory .* send smaller messages"),
        ({"ranks": 80, "network": {"form": "fat-tree", "radix": 128}}, "unsupported", "it adds at most 64"),
    ],
)
def test_what_cannot_be_is_an_error(changes, code, message):
    engine = core.load()
    settings = {**config("reduce", "switch", 4096, 16, "fat-tree:radix=4"), **changes}
    if settings["network"] is None:
        del settings["network"]
    with pytest.raises(engine.SpinloomError, match=message) as raised:
        engine.run_study(settings)
    assert raised.value.code == code


def test_only_groups_go_by_switches():
    engine = core.load()
    for way in ("switch", "linear"):
        with pytest.raises(engine.SpinloomError, match="only multicast, reduce and allreduce"):
            run("broadcast", way, 8, 16, "fat-tree:radix=4")


def test_the_command_prints_a_table(spinloom):
    ran = spinloom("paper", "study", "multicast", "--quiet")
    assert ran.code == 0, ran.err
    assert "bytes on links" in ran.out
