"""`spinloom simulate --together`: types on one NIC by priority, then by last use; or on the host."""

from __future__ import annotations

import csv
import json
from fractions import Fraction

import pytest

from conftest import needs_engine
from spinloom.common.errors import Trouble
from spinloom.nics import sharing, workloads

# What they hold on the NIC under rw-cp: 2.8 KiB, 3.9 KiB, 10.3 KiB.
SMALL, MIDDLE, LARGE = "MILC:16^4", "WRF_y:2x2", "FFT2D:N=512 P=4"
ROOM_FOR_TWO = "14KiB"  # the room for SMALL and LARGE, or SMALL and MIDDLE; never MIDDLE and LARGE


def share(spinloom, *arguments):
    ran = spinloom("simulate", "--together", *arguments, "--json", "--quiet")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def served(document, name):
    application, _, datatype = name.partition(":")
    return [
        row["served"]
        for row in document["rows"]
        if (row["application"], row["datatype"]) == (application, datatype)
    ]


# ---- arguments ----


def test_attributes_are_read():
    (shared,) = sharing.parse("MILC:16^4@priority=-3, epsilon=0.4")
    assert (shared.row, shared.offload) == (workloads.row("MILC", "16^4"), True)
    assert (shared.priority, shared.epsilon) == (-3, Fraction(2, 5))
    everything = sharing.parse("MILC@host")
    assert [shared.row for shared in everything] == list(workloads.application("MILC").rows)
    assert not any(shared.offload for shared in everything)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("MLIC", "did you mean 'MILC'"),
        ("MILC:16^5@host", "did you mean '16^4'"),
        ("MILC@prio=3", "did you mean 'priority'"),
        ("MILC@priority=high", "'high' is no whole number"),
        ("MILC@priority=2147483648", "up to 2147483647"),
        ("MILC@priority", "'' is no whole number"),
        ("MILC@epsilon=much", "epsilon 'much': it must begin with a number"),
        ("MILC@epsilon=0", "must be positive"),
        ("MILC@host=yes", "'host' has no value"),
    ],
)
def test_a_wrong_argument_is_refused(text, complaint):
    with pytest.raises(Trouble) as caught:
        sharing.parse(text)
    assert caught.value.code == "invalid"
    assert complaint in caught.value.message


@needs_engine
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "nothing to do"),
        (["MILC", "--strategies", "rw-pc"], "did you mean 'rw-cp'"),
        (["MILC", "--strategies", "iovec"], "iovec keeps nothing in NIC memory"),
        (["MILC", "--strategies", "host-best"], "host-best keeps nothing in NIC memory"),
        (["MILC", "--nic-memory", "2 parsecs"], "memory.state_bytes = '2 parsecs': accepted forms"),
        (["MILC", "--set", "memory.stat_bytes=2"], "did you mean 'memory.state_bytes'"),
        (["MILC", "--set", "hpu.clock"], "FIELD=VALUE"),
        (["MILC", "--rounds", "0"], "--rounds"),
        (["MILC", "--strategies", "seek,rw-cp"], "datatypes that share a NIC have one strategy"),
        (["MILC", "--seeds", "1..3"], "--seeds is for messages that come alone; leave out --together"),
        (["--demo"], "--demo is for messages that come alone"),
    ],
)
def test_usage_errors_exit_with_2(spinloom, arguments, complaint):
    ran = spinloom("simulate", "--together", *arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["MILC", "--peers", "4"], "--peers is for datatypes that share a NIC: add --together"),
        (["MILC", "--rounds", "4"], "--rounds is for datatypes that share a NIC: add --together"),
        (["MILC@priority=3"], "MILC@priority=3: attributes are for datatypes that share a NIC"),
    ],
)
def test_what_needs_together_says_so(spinloom, arguments, complaint):
    ran = spinloom("simulate", *arguments)
    assert ran.code == 2
    assert complaint in ran.err


# ---- on the engine ----


@needs_engine
def test_with_room_for_all_every_later_message_is_a_hit(spinloom):
    document = share(spinloom, SMALL, MIDDLE, LARGE, "--rounds", "4")
    assert [row["served"] for row in document["rows"]] == ["prepared"] * 3 + ["hit"] * 9
    assert all(row["checked"] is True and row["evictions"] == 0 for row in document["rows"])
    assert (document["summary"]["hits"], document["summary"]["evictions"]) == (9, 0)
    memory = {row["nic_memory_in_use_bytes"] for row in document["rows"][3:]}
    (all_of_it,) = memory
    assert all_of_it >= sum(row["nic_memory_bytes"] for row in document["rows"][:3])
    for row in document["rows"]:
        assert (row["preparation_ps"] > 0) == (row["served"] == "prepared")
        assert (row["prepared_blocks"] > 0) == (row["served"] == "prepared")
        assert row["speedup"] > 2
    mean, with_preparation = (
        document["summary"][name] for name in ("speedup_mean", "speedup_mean_with_preparation")
    )
    assert mean > with_preparation > 1


@needs_engine
def test_a_higher_priority_stays(spinloom):
    plain = share(spinloom, SMALL, MIDDLE, LARGE, "--nic-memory", "12KiB")
    assert "hit" not in served(plain, SMALL)
    important = share(spinloom, f"{SMALL}@priority=1", MIDDLE, LARGE, "--nic-memory", "14KiB")
    assert served(important, SMALL) == ["prepared", "hit", "hit"]
    assert "hit" not in served(important, LARGE)
    assert important["summary"]["evictions"] > 0


@needs_engine
def test_nobody_below_the_important_gets_their_memory(spinloom):
    document = share(
        spinloom, f"{LARGE}@priority=7", f"{SMALL}@priority=6", MIDDLE, "--nic-memory", ROOM_FOR_TWO
    )
    assert served(document, LARGE) == ["prepared", "hit", "hit"]
    assert served(document, SMALL) == ["prepared", "hit", "hit"]
    fallen = [row for row in document["rows"] if row["application"] == "WRF_y"]
    assert [row["served"] for row in fallen] == ["fallback"] * 3
    for row in fallen:
        assert "memory.state_bytes" in row["message"]
        assert (row["evictions"], row["nic_memory_bytes"]) == (0, 0)
        assert row["speedup"] == pytest.approx(1, abs=0.01)
    assert document["summary"]["fallbacks"] == 3


@needs_engine
def test_the_least_recently_used_leaves(spinloom):
    # SMALL comes between the others: were it the oldest that leaves, it would never be a hit.
    document = share(spinloom, SMALL, MIDDLE, SMALL, LARGE, "--nic-memory", ROOM_FOR_TWO, "--rounds", "3")
    assert served(document, SMALL) == ["prepared", *["hit"] * 5]
    assert served(document, MIDDLE) == served(document, LARGE) == ["prepared"] * 3
    evictions = [row["evictions"] for row in document["rows"]]
    assert evictions == [0, 0, 0, 1, *[0, 1, 0, 1] * 2]


@needs_engine
def test_what_fits_no_nic_is_unpacked_by_the_host(spinloom):
    document = share(spinloom, SMALL, MIDDLE, "--nic-memory", "512B")  # MIDDLE's layout alone takes them
    assert served(document, MIDDLE) == ["fallback"] * 3
    assert served(document, SMALL) == ["prepared", "hit", "hit"]
    assert document["summary"]["evictions"] == 0


@needs_engine
def test_a_type_may_ask_for_the_host(spinloom):
    document = share(spinloom, f"{SMALL}@host", MIDDLE)
    assert served(document, SMALL) == ["host"] * 3
    assert document["summary"]["on_host"] == 3
    assert {row["speedup"] for row in document["rows"] if row["application"] == "MILC"} == {1.0}


@needs_engine
def test_a_types_epsilon_decides_its_checkpoints(spinloom):
    held = {}
    for epsilon in ("0.05", "2"):
        document = share(spinloom, f"{LARGE}@epsilon={epsilon}", "--rounds", "1")
        held[epsilon] = document["rows"][0]["nic_memory_bytes"]
    assert held["0.05"] > held["2"]


@needs_engine
@pytest.mark.parametrize("strategy", ["specialised", "hpu-local", "ro-cp", "rw-cp", "seek"])
def test_one_message_takes_the_time_that_ddt_says(spinloom, strategy):
    alone = share(spinloom, SMALL, "--strategies", strategy, "--rounds", "1")["rows"][0]
    cells = json.loads(spinloom("simulate", SMALL, "--strategies", strategy, "--json").out)["rows"]
    (cell,) = [row for row in cells if row["strategy"] == strategy]
    for column in ("time_ps", "speedup", "nic_memory_bytes", "size_bytes"):
        assert alone[column] == cell[column]


@needs_engine
@pytest.mark.parametrize("kind", ["flip", "skip", "stray"])
def test_injected_damage_is_found(spinloom, kind):
    ran = spinloom(
        "simulate", "--together", SMALL, f"{MIDDLE}@host", "--rounds", "2", "--inject", kind, "--json"
    )
    assert ran.code == 1
    document = json.loads(ran.out)
    assert len(document["rows"]) == 4
    for row in document["rows"]:
        assert (row["checked"], row["status"], row["time_ps"], row["speedup"]) == (
            False,
            "mismatch",
            None,
            None,
        )
    assert "offset" in ran.err
    assert "WRF_y 2x2, round 2: mismatch" in ran.err


@needs_engine
def test_the_same_input_gives_the_same_hash_and_another_one_does_not(spinloom):
    arguments = (SMALL, MIDDLE, LARGE, "--nic-memory", ROOM_FOR_TWO)
    hashes = [share(spinloom, *arguments, *more)["result_hash"] for more in ((), ())]
    assert hashes[0] == hashes[1]
    others = (("--seed", "2"), ("--set", "link.wire=33.401ns"), ("--rounds", "2"))
    hashes += [share(spinloom, *arguments, *more)["result_hash"] for more in others]
    hashes.append(share(spinloom, f"{SMALL}@priority=1", *arguments[1:])["result_hash"])
    assert len(set(hashes)) == 1 + len(others) + 1


@needs_engine
def test_the_table_says_what_happened(spinloom):
    ran = spinloom(
        "simulate",
        "--together",
        f"{SMALL}@priority=2,epsilon=0.4",
        f"{MIDDLE}@host",
        LARGE,
        "--nic-memory",
        "6KiB",
    )
    assert ran.code == 0
    assert "sc19-slingshot, host i7-4770, with memory.state_bytes = 6KiB" in ran.out
    assert "priority=2,epsilon=2/5" in ran.out
    assert "fallback [1]" in ran.out
    assert "[1] " in ran.out.split("checked")[-1]
    assert "9 messages: 2 hits, 1 prepared, 3 fall-backs, 3 on the host as asked, 0 evictions" in ran.out
    rows = list(csv.DictReader(spinloom("simulate", "--together", SMALL, "--csv").out.splitlines()))
    assert [row["served"] for row in rows] == ["prepared", "hit", "hit"]


# ---- as an MPI library: some messages before their receive ----


def mixed(spinloom, *arguments):
    document = share(spinloom, *arguments)
    for row in document["rows"]:
        assert row["checked"] is True
    return document


@needs_engine
def test_early_messages_are_unpacked_by_the_host_and_cost_that(spinloom):
    # T(unexpected, from its receive on) = append and event + unpack
    # T(alone on the host) = landing + event + unpack
    late = mixed(spinloom, LARGE, "--early", "1", "--rounds", "3")["rows"][0]
    assert (late["expected"], late["on_host"], late["unexpected"]) == (0, 0, 3)
    assert late["nic_memory_bytes"] > 0  # its receive was prepared for the NIC
    assert late["landing_ps"] > 0
    assert late["unexpected_ps"] < late["host_ps"] < late["landing_ps"] + late["unexpected_ps"]
    in_time = mixed(spinloom, LARGE, "--early", "0", "--rounds", "3")["rows"][0]
    assert (in_time["expected"], in_time["unexpected"]) == (3, 0)
    assert in_time["expected_ps"] < late["landing_ps"] + late["unexpected_ps"]


@needs_engine
def test_a_mix_says_who_unpacked_what(spinloom):
    types = [f"{SMALL}@priority=3", MIDDLE, LARGE, "COMB:corner@host"]
    arguments = [*types, "--nic-memory", "14KiB", "--early", "1/3", "--at-once", "6", "--rounds", "8"]
    document = mixed(spinloom, *arguments)
    assert document["messages"] == 32
    for row in document["rows"]:
        assert row["expected"] + row["on_host"] + row["unexpected"] == 8
    assert document["rows"][3]["expected"] == 0
    assert sum(row["unexpected"] for row in document["rows"]) > 0
    assert any(row["on_host"] for row in document["rows"][1:3])
    assert document["nic_memory_peak_bytes"] <= 14 << 10
    assert any("memory.state_bytes" in reason for reason in document["fallbacks"])
    assert mixed(spinloom, *arguments) == document
    shown = spinloom("simulate", "--together", *arguments)
    assert shown.code == 0
    assert "every byte checked" in shown.out


@needs_engine
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--early", "2"], "give a part of the messages"),
        (["--early", "often"], "give a part of the messages"),
        (["--at-once", "2"], "--at-once is for --early"),
        (["--early", "0", "--strategies", "rw-pc"], "did you mean 'rw-cp'"),
    ],
)
def test_a_wrong_mix_is_refused(spinloom, arguments, complaint):
    ran = spinloom("simulate", "--together", SMALL, *arguments)
    assert ran.code == 2
    assert complaint in ran.err


@needs_engine
def test_damage_in_a_mix_is_found(spinloom):
    ran = spinloom("simulate", "--together", SMALL, "--early", "1/2", "--inject", "skip")
    assert ran.code == 1
    assert "offset" in ran.err
    assert ran.out == ""
