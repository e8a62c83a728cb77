"""Many peers at once on one NIC: what they hold of its memory, and what it costs."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from conftest import needs_engine
from spinloom import exchange, simulate
from spinloom.common.errors import Trouble
from spinloom.nics import exchanges

pytestmark = needs_engine
LISTS = "idxblock(1, rand(7, 4000, 300), double)"
VECTOR = "vector(64, 4, 8, double)"


def test_one_peer_takes_the_time_that_ddt_says():
    for strategy in ("host-mpitypes", "host-warm", "specialised", "rw-cp", "seek"):
        alone = simulate(VECTOR, strategy).one(strategy=strategy)
        assert exchange(VECTOR, 1, strategy).time_ps == alone["time_ps"]


def test_every_peer_has_lists_of_its_own():
    texts = exchanges.peer_types(exchanges.simulation.rows_of(LISTS)[0], 3)
    assert len(set(texts)) == 3
    assert texts[0] == LISTS
    one, many = exchange(LISTS, 1), exchange(LISTS, 40)
    assert len(set(many.destinations)) == 40
    assert many.occupancy["lists"] == pytest.approx(40 * one.occupancy["lists"], rel=0.05)  # neighbours join
    assert many.occupancy["code"] == one.occupancy["code"] > 0  # once for all
    assert many.bytes == 40 * one.bytes


def test_packets_of_all_peers_share_the_link():
    """Messages of one packet each: together they take the line as long as one message of all bytes."""
    found = exchange(LISTS, 64)
    line_ps = float(found.machine.profile["link.byte_time"]) * found.bytes
    assert found.time_ps > line_ps
    assert exchange(LISTS, 64, "host-mpitypes").time_ps > found.time_ps


def test_packets_over_time_begin_and_end_with_none_and_reach_the_peak():
    found = exchange(LISTS, 64)
    times, depths = zip(*found.packets_over_time, strict=True)
    assert all(before < after for before, after in pairwise(times))
    assert max(depths) == found.occupancy["packets"] > 0
    assert depths[-1] == 0


def test_checkpoints_are_a_kind_of_their_own():
    found = exchange(VECTOR, 20, "rw-cp")
    assert found.occupancy["checkpoints"] > 0
    assert exchange(VECTOR, 20, "specialised").occupancy["checkpoints"] == 0


def test_what_finds_no_room_is_unpacked_by_the_host():
    whole = exchange(LISTS, 32)
    half = exchanges.with_half_memory(whole, "lists")
    assert not whole.fallbacks
    assert 14 <= len(half.fallbacks) <= 18
    assert half.occupancy["lists"] <= whole.occupancy["lists"] / 2
    assert half.time_ps > whole.time_ps


def test_the_same_peers_give_the_same_numbers_and_another_seed_other_bytes():
    first, again, other = exchange(LISTS, 8), exchange(LISTS, 8), exchange(LISTS, 8, seed=2)
    assert exchanges.result_hash(first) == exchanges.result_hash(again) != exchanges.result_hash(other)


@pytest.mark.parametrize("kind", ["flip", "skip", "stray"])
def test_a_wrong_byte_is_found(spinloom, kind):
    ran = spinloom("simulate", "--together", "--type", VECTOR, "--peers", "3", "--inject", kind)
    assert ran.code == 1
    assert "3 peers" in ran.err


def test_the_verb_says_what_matters(spinloom):
    ran = spinloom("simulate", "--together", "--type", LISTS, "--peers", "24", "--host", "zen5")
    assert ran.code == 0
    assert "sc19-slingshot, host zen5" in ran.out
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line.split()}
    assert set(exchanges.KINDS) <= set(rows)
    assert "on host" in rows["lists"]
    document = json.loads(spinloom("simulate", "--together", "--type", LISTS, "--peers", "24", "--json").out)
    assert {row["kind"]: row["bytes"] for row in document["kinds"]} == exchange(LISTS, 24).occupancy


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("MILC",), "one datatype without attributes"),
        (("MILC:16^4@priority=2",), "one datatype without attributes"),
        (("MILC:16^4", "--rounds", "2"), "--rounds and --peers"),
        (("MILC:16^4", "--strategies", "sek"), "did you mean 'seek'"),
    ],
)
def test_what_does_not_go_together_is_refused(spinloom, arguments, complaint):
    ran = spinloom("simulate", "--together", "--peers", "2", *arguments)
    assert ran.code == 2
    assert complaint in ran.err


def test_too_many_peers_are_refused():
    with pytest.raises(Trouble, match="300 peers"):
        exchange(VECTOR, 300)
