"""Table I of the FFLIB paper beside our counts: what differs, what has a reason, and the claim's verdict."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.papers import claims, lab, table1
from spinloom.papers.lab import Lab

pytestmark = needs_engine
RANKS = (2, 8)


@pytest.fixture(scope="module")
def tables():
    return {ranks: table1.counted(ranks) for ranks in RANKS}


def row_of(rows, name):
    return next(row for row in rows if table1.name_of(row) == name)


def test_what_a_binomial_all_reduce_of_8_ranks_takes(tables):
    """log P = 3. The table: log P, 2 log P, log P, S. Ours: 2 log P + 1, 2 log P, log P + 1, log P S."""
    row = row_of(tables[8], "allreduce, binomial tree")
    counts = {name: (row[name]["counted"], row[name]["paper_count"]) for name in table1.RESOURCES}
    size = table1.MESSAGE_BYTES
    assert counts == {
        "entries": (7, 3),
        "triggered": (6, 6),
        "counters": (4, 3),
        "memory_bytes": (3 * size, size),
    }
    assert table1.differs(row)
    assert table1.has_reason(row, 8)


def test_few_ranks_may_take_less_than_a_formula(tables):
    """Of 2 ranks of a tree nobody passes anything on: an entry or a descriptor, no counter."""
    row = row_of(tables[2], "bcast, binomial tree")
    assert (row["entries"]["counted"], row["entries"]["paper_count"]) == (1, 2)
    assert row["from_ranks"] == 4
    assert table1.has_reason(row, 2)
    assert not table1.has_reason(row, 4)


def test_two_of_thirteen_rows_are_equal_at_any_number_of_ranks(tables):
    assert len(tables[8]) == 13
    equal = [row["row"] for row in table1.rows(tables) if row["equal"] == "at all"]
    assert equal == ["bcast, linear", "scatter, linear"]
    assert table1.differing_rows(tables) == 11
    assert table1.counts_without_reason(tables) == 0


def test_a_row_that_differs_shows_both_counts_and_the_reason(tables):
    shown = next(row for row in table1.rows(tables) if row["row"] == "gather, linear")
    assert shown["MD/ME"] == "P: 8 (1: 1)"
    assert shown["triggered"] == "0"
    assert shown["reason"].startswith("an entry takes one message")


@pytest.mark.parametrize("name", table1.RESOURCES)
def test_another_count_has_no_reason(tables, name):
    changed = copy.deepcopy(tables)
    row_of(changed[8], "bcast, linear")[name]["counted"] += 1
    assert table1.differing_rows(changed) == 12
    assert table1.counts_without_reason(changed) == 1
    row_of(changed[8], "gather, linear")[name]["counted"] += 1
    assert table1.counts_without_reason(changed) == 2


def test_a_claim_whose_reason_holds_is_explained_and_one_whose_reason_does_not_fails():
    def few(condition):
        return replace(condition, arguments=(("ranks", RANKS),))

    whole = claims.claims()["OE-2"]
    (reason,) = whole.reasons
    claim = replace(
        whole,
        holds=tuple(map(few, whole.holds)),
        reasons=(replace(reason, holds=tuple(map(few, reason.holds))),),
    )
    laboratory = Lab(1)
    verdict = claims.assess(claim, laboratory)
    assert verdict.verdict == claims.EXPLAINED
    assert verdict.ours == "11 (!)"
    assert reason.why in verdict.remark
    assert len(claims.table_rows(claim, laboratory)) == 13
    for probe, reading in laboratory.readings.items():
        changed = copy.deepcopy(reading.columns)
        changed["rows"][0]["counters"]["counted"] += 1
        laboratory.readings[probe] = lab.Reading(changed)
    assert claims.assess(claim, laboratory).verdict == claims.FAILS


def test_one_rank_has_no_table():
    with pytest.raises(core.load().SpinloomError, match="2 ranks"):
        table1.counted(1)
