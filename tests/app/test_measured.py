"""`spinloom explain --measure`: times of this machine, NumPy as a peer, the verdict and the advice."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from conftest import needs_engine
from spinloom import layout
from spinloom.accelerate import explain, measured
from spinloom.accelerate.measured import BY_HAND, MEMCPY, OURS, Measured
from spinloom.bench import peers
from spinloom.bench.numpy_peer import NumpyPeer, loops_of
from spinloom.common.errors import Trouble
from spinloom.nics.workloads import Row

pytestmark = needs_engine
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def known(text: str, count: int = 1) -> dict:
    return explain.facts(Row("custom", text, text, count))


# ---- NumPy ----


@pytest.mark.parametrize(
    ("places", "loops"),
    [
        ([0], []),
        ([0, 8, 16], [(3, 8)]),
        ([16, 8, 0], [(3, -8)]),
        ([0, 8, 100, 108], [(2, 100), (2, 8)]),
        ([0, 1, 10, 11, 100, 101, 110, 111], [(2, 100), (2, 10), (2, 1)]),
        ([0, 8, 24], None),
        ([0, 8, 100, 109], None),
        ([0, 8, 100, 108, 201, 209], None),
    ],
)
def test_loops_behind_places(places, loops):
    found = loops_of(np.array(places))
    if loops is None:
        assert found is None or len(places) != np.prod([count for count, _ in found])
    else:
        assert found == loops


@pytest.mark.parametrize(
    ("text", "name", "item"),
    [
        ("vector(100, 2, 5, double)", "NumPy copyto", 8),
        ("hvector(10, 1, -48B, int)", "NumPy copyto", 4),
        ("subarray([8, 9, 10], [4, 5, 6], [1, 2, 3], C, short)", "NumPy copyto", 4),
        ("contig(20, resized(0B, 4B, vector(30, 1, 20, int)))", "NumPy copyto", 4),
        ("idxblock(1, [3, 1, 4, 1, 5], double)", "NumPy take", 8),
        ("hindexed([1B x 3, 8B x 9], byte)", "NumPy take", 1),
        ("contig(5, struct([(0B, int), (8B, 3, double)]))", "NumPy take", 4),
        ("contig(64, double)", "NumPy copyto", 8),
    ],
)
def test_numpy_moves_the_same_bytes(text, name, item):
    peer = NumpyPeer(text)
    assert (peer.name, peer.item) == (name, item)
    peer.check("pack")
    if layout.from_text(text).blocks() == sorted(set(layout.from_text(text).blocks())):
        peer.check("unpack")
    assert all(ns > 0 for ns in peer.time("pack", 2, 3))


def test_numpy_that_moves_other_bytes_is_found_out():
    peer = NumpyPeer("vector(4, 1, 2, int)")
    peer.call["pack"] = lambda: None
    with pytest.raises(Trouble, match="packs other bytes"):
        peer.check("pack")
    with pytest.raises(Trouble, match="blocks"):
        NumpyPeer("contig(0, int)")


# ---- the command ----


@needs_compiler
def test_measure_times_every_way_after_comparing_bytes(spinloom):
    text = "resized(0B, 32B, struct([(0B, int), (8B, 3, double)]))"
    ran = spinloom("explain", text, "--count", "50", "--measure", "--strategies", "none", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    ways = {way["name"]: way["times_ns"] for way in found["measured"]}
    assert {OURS, BY_HAND, MEMCPY, "NumPy take"} <= set(ways)
    for name in (OURS, BY_HAND):
        assert set(ways[name]) == {"pack", "unpack", "copy"}
    assert all(ns > 0 for times in ways.values() for ns in times.values())
    assert found["verdict"].startswith("use ")
    assert found["advice"] == [
        "put the int at 0 B last in the struct: its 28 B are then one run instead of 2"
    ]


@needs_compiler
def test_the_measured_table_stands_beside_the_predictions(spinloom, monkeypatch):
    monkeypatch.setattr(peers, "compilers", lambda: [])
    ran = spinloom("explain", "vector(64, 2, 5, double)", "--measure", "--strategies", "none")
    assert ran.code == 0, ran.err
    table = ran.out.split("Measured on this machine now, in host time")[1]
    for words in (
        "predicted",
        "measured",
        "over ours",
        "loops by hand",
        "memcpy of as many bytes",
        "NumPy copyto",
    ):
        assert words in table
    assert "MPI" not in table
    assert "\nuse " in table


@needs_compiler
def test_what_overlaps_itself_is_measured_as_packed_only(spinloom, monkeypatch):
    monkeypatch.setattr(peers, "compilers", lambda: [])
    ran = spinloom("explain", "hvector(9, 8, 4B, byte)", "--measure", "--strategies", "none", "--json")
    assert ran.code == 0, ran.err
    assert {name for way in json.loads(ran.out)["measured"] for name in way["times_ns"]} == {"pack"}


def test_nothing_to_move_is_not_measured(spinloom):
    ran = spinloom("explain", "contig(0, int)", "--measure")
    assert ran.code == 2
    assert "--measure is for messages of 1 B" in ran.err


def test_an_array_of_structs_has_a_loop_that_knows_its_fields():
    text = "resized(0B, 32B, struct([(0B, int), (8B, 3, double)]))"
    for found in (
        measured.structs_of(Row("", "", text, 7), known(text, 7)),
        measured.structs_of(Row("", "", f"contig(7, {text})", 1), known(f"contig(7, {text})")),
    ):
        assert found is not None
        assert (found.fields, found.extent_bytes, found.count) == (((0, 4), (8, 24)), 32, 7)
    assert measured.structs_of(Row("", "", "vector(3, 1, 2, int)", 1), known("vector(3, 1, 2, int)")) is None


# ---- words ----


def ways(**both_ns: float) -> list[Measured]:
    return [
        Measured(name.replace("_", " "), {"pack": ns / 2, "unpack": ns / 2}) for name, ns in both_ns.items()
    ]


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        (
            {OURS: 100, "loops_by_hand": 310, MEMCPY: 10},
            "use spinloom: 3.1 times faster than packing by hand",
        ),
        ({OURS: 100, "loops_by_hand": 102}, "use spinloom: as fast as packing by hand"),
        ({OURS: 100, "NumPy_take": 400, "MPICH": 200}, "use spinloom: 2.0 times faster than MPICH"),
        (
            {OURS: 100, "loops_by_hand": 50, "MPICH": 200},
            "use loops by hand: 2.0 times faster than spinloom",
        ),
        (
            {OURS: 100, "loops_by_hand": 300, "MPICH": 50},
            "use MPICH: 6.0 times faster than packing by hand, 2.0 times faster than spinloom",
        ),
        ({OURS: 100, MEMCPY: 10}, "use spinloom: there is nothing else to compare with here"),
    ],
)
def test_the_verdict_is_one_sentence(times, sentence):
    assert measured.verdict(ways(**times)) == sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("struct([(0B, int), (8B, double)])", ["put the int at 0 B last in the struct: its 12 B"]),
        (
            "contig(9, resized(0B, 24B, struct([(0B, char), (8B, double), (16B, int)])))",
            ["put the char at 0 B"],
        ),
        (
            "struct([(0B, char), (4B, int), (8B, short), (16B, double)])",
            ["put the char at 0 B and the short at 8 B last"],
        ),
        ("struct([(0B, double), (8B, int)])", []),  # one run as it is
        ("struct([(0B, int), (64B, double)])", []),  # other data lie between
        ("struct([(0B, int), (8B, vector(2, 1, 2, double))])", []),
        ("vector(3, 1, 2, int)", []),
        (f"idxblock(1, [{', '.join(str(2 * i) for i in range(100))}], int)", []),
        (f"idxblock(1, [{', '.join(str(7 * i % 100 * 2) for i in range(100))}], int)", []),
        (
            f"idxblock(1, [{', '.join(str(71 * i % 100 * 2) for i in range(100))}], int)",
            ["list the blocks in the order of memory"],
        ),
    ],
)
def test_advice_where_a_rewrite_helps(text, words):
    found = measured.advice(text, known(text))
    assert len(found) == len(words)
    for sentence, beginning in zip(found, words, strict=True):
        assert sentence.startswith(beginning)
