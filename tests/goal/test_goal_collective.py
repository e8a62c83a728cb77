"""`spinloom goal collective`: which algorithm an operation takes, its times, its needs, its picture."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from spinloom.common import core, lines

MODEL = {
    "o_ps": 250,
    "L_ps": 83,
    "g_ps": 0,
    "h_ps": 0,
    "m_ps": 532,
    "z_ps": 30,
    "a_ps": 1100,
    "G": (38, 1),
    "A": (36, 1),
}


@pytest.fixture
def explained(spinloom):
    def ask(*words):
        return json.loads(spinloom("goal", "collective", *words, "--json").out)

    return ask


def test_the_fastest_form_is_chosen_and_simulations_agree(explained):
    for operation in ("allreduce", "bcast", "gather", "alltoall", "barrier"):
        rows = explained(operation, "--ranks", "8", "--size", "1024")
        chosen = [row for row in rows if row["chosen"]]
        assert len(chosen) == 1
        assert chosen[0]["time_ps"] == min(row["time_ps"] for row in rows)
        for row in rows:
            if operation != "barrier":  # a message without bytes is not read over PCIe
                assert row["simulated_ps"] == pytest.approx(row["time_ps"], rel=0.25), row["algorithm"]


def test_small_broadcasts_take_a_tree_and_long_ones_segments(explained):
    short, long = (
        next(
            row
            for row in explained(
                "bcast", "--ranks", "1024", "--size", size, "--nic", "sc17-discrete", "--fidelity", "none"
            )
            if row["chosen"]
        )
        for size in ("8", "16MiB")
    )
    assert (short["algorithm"], short["segment_bytes"]) == ("binomial", 0)
    assert 0 < long["segment_bytes"] < 16 << 20


def test_a_broadcast_of_three_ranks_by_hand():
    """Down a binomial tree rank 0 sends to 2 and then to 1: T = 2 o + (g + s G) + (L + s G + m)."""
    rows = core.load().collective_candidates("bcast", 3, 10, 1, MODEL)
    times = {row["algorithm"]: row["time_ps"] for row in rows}
    assert times["binomial"] == 2 * 250 + 380 + (83 + 380 + 532)
    made = core.load().collective_offloaded("bcast", "binomial", 3, 10)
    assert made.time_ps(MODEL) == times["binomial"]
    assert [(source, target) for source, target, *_ in made.messages(MODEL)] == [(0, 2), (0, 1)]


def test_what_a_rank_of_a_binomial_broadcast_takes():
    """Table I: an entry and a descriptor, log P - 1 triggered operations, one counter."""
    for rounds in range(2, 9):
        made = core.load().collective_offloaded("bcast", "binomial", 1 << rounds, 64)
        assert made.resources(4096) == {
            "entries": 2,
            "triggered": rounds - 1,
            "counters": 1,
            "memory_bytes": 0,
        }


def test_the_picture_as_text(spinloom):
    told = spinloom(
        "goal", "collective", "bcast", "--ranks", "4", "--size", "8", "--algorithm", "binomial"
    ).out
    picture = told.split("\n\n")[-1].splitlines()
    assert [line.rstrip() for line in picture] == [
        "rank     0   1   2   3",
        "round 1  o--->  8 B",
        "         o------->  8 B",
        "round 2          o--->  8 B",
    ]


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_picture_in_a_file(spinloom, tmp_path, form):
    written = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.{form}"
        spinloom(
            "goal",
            "collective",
            "reduce",
            "--ranks",
            "7",
            "--size",
            "8",
            "--fidelity",
            "none",
            "--plot",
            str(path),
        )
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert written[0].startswith(b"\x89PNG" if form == "png" else b"<?xml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("explode", "--ranks", "4", "--size", "8"),
            "there is no collective operation 'explode'; there are: barrier, bcast",
        ),
        (("neighbor_alltoall", "--ranks", "4", "--size", "8"), "alike at all ranks are barrier, bcast"),
        (
            ("bcast", "--ranks", "4", "--size", "8", "--algorithm", "star"),
            "bcast has no algorithm 'star'; it has: binomial",
        ),
        (("bcast", "--ranks", "4", "--size", "8", "--root", "4"), "--root 4: 4 ranks are 0 to 3"),
        (("bcast", "--ranks", "4", "--size", "wide"), "--size 'wide'"),
        (("bcast", "--ranks", "4", "--size", "8", "--plot", "tree.gif"), "end the name in .svg or .png"),
    ],
)
def test_what_cannot_be(spinloom, words, told):
    ran = spinloom("goal", "collective", *words)
    assert ran.code == 2
    assert told in ran.err


def test_too_many_operations_have_a_form_only(explained):
    rows = {row["algorithm"]: row for row in explained("allreduce", "--ranks", "2048", "--size", "8")}
    assert rows["ring"]["simulated_ps"] is None
    assert rows["ring"]["time_ps"] > rows["tree"]["time_ps"] > 0


# ---- very many ranks ----


@pytest.fixture
def scaled(spinloom):
    def ask(*words):
        return json.loads(spinloom("goal", "scale", *words, "--json").out)

    return ask


def test_rank_by_rank_a_schedule_is_what_all_graphs_at_once_give(scaled, explained):
    for operation, algorithm in (
        ("allreduce", "tree"),
        ("bcast", "binomial"),
        ("scatter", "binomial"),
        ("allgather", "recursive-doubling"),
    ):
        (row,) = scaled(operation, "--ranks", "24", "--size", "48", "--algorithm", algorithm)
        known = next(
            each
            for each in explained(operation, "--ranks", "24", "--size", "48")
            if each["algorithm"] == algorithm
        )
        assert (row["time_ps"], row["simulated_ps"]) == (known["time_ps"], known["simulated_ps"])
        made = core.load().collective_offloaded(operation, algorithm, 24, 48, 8)
        assert row["operations"] == made.schedule().count()["operations"]


def test_twice_as_many_ranks_of_a_broadcast_take_a_hop_more(scaled):
    """T(2 P) = T(P) + hop, by the form and simulated; two rows of each: a put, an `arrived`."""
    rows = scaled("bcast", "--ranks", "512,1024,2048", "--size", "50", "--algorithm", "binomial")
    for name in ("time_ps", "simulated_ps"):
        first, second, third = (row[name] for row in rows)
        assert abs((third - second) - (second - first)) <= 1
        assert second > first
    assert rows[-1]["operations"] == 2 * 2047


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ranks", "4,many"), "--ranks 4,many: 'many' is no number from 1 to 16,777,216"),
        (("--ranks", "4", "--algorithm", "star"), "bcast has no algorithm 'star'"),
        (("--ranks", "65536", "--algorithm", "scatter-ring"), "take fewer ranks"),
    ],
)
def test_what_cannot_be_at_scale(spinloom, words, told):
    ran = spinloom("goal", "scale", "bcast", "--size", "8", *words)
    assert ran.code != 0
    assert told in ran.err


def test_a_line_through_points_of_a_line_is_it():
    points = [(size, 1000 + 3 * size) for size in (8, 100, 4096)]
    assert lines.fitted(points) == lines.Line(Fraction(1000), Fraction(3))
    assert lines.worst(lines.fitted(points), [*points, (0, 800)]) == 0.25


def test_ping_pongs_follow_the_model(spinloom):
    """OE-1: half a ping-pong is o + L + s G + m, within 5 % where it was not fitted to."""
    rows = json.loads(spinloom("goal", "fit", "--json").out)
    assert [row["size_bytes"] for row in rows] == [1 << power for power in range(3, 17)]
    assert sum(row["fitted"] for row in rows) == 3
    assert max(abs(row["residual_percent"]) for row in rows if not row["fitted"]) <= 5
