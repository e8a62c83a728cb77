"""Golden tables: predictions of a fixed corpus, and the diff that a change shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import golden_table
from conftest import needs_engine
from spinloom.papers import claims

GOLDEN = Path(__file__).resolve().parent


@needs_engine
def test_predictions_are_those_that_are_checked_in():
    changed = golden_table.compare()
    if changed:
        shown = "\n".join(changed[:40])
        pytest.fail(
            f"{len(changed)} predictions changed:\n{shown}\nif the change is right: {golden_table.UPDATE}",
            pytrace=False,
        )


ROWS = [
    {"application": "MILC", "datatype": "16^4", "strategy": "seek", "time_ps": "1000"},
    {"application": "MILC", "datatype": "16^4", "strategy": "rw-cp", "time_ps": "2000"},
]


def test_a_changed_number_is_a_readable_line():
    changed = [{**ROWS[0], "time_ps": "1100"}, ROWS[1]]
    assert golden_table.differences(ROWS, changed, golden_table.KEY) == [
        "~ MILC 16^4 seek: time_ps 1000 -> 1100 (+10.00%)"
    ]


def test_rows_that_come_and_go_are_told():
    assert golden_table.differences(ROWS, ROWS[:1], golden_table.KEY) == ["- MILC 16^4 rw-cp: gone"]
    assert golden_table.differences(ROWS[:1], ROWS, golden_table.KEY) == ["+ MILC 16^4 rw-cp: new"]
    assert golden_table.differences(ROWS, ROWS, golden_table.KEY) == []


def test_a_value_that_disappears_is_told():
    gone = [{**ROWS[0], "time_ps": ""}, ROWS[1]]
    assert golden_table.differences(ROWS, gone, golden_table.KEY) == ["~ MILC 16^4 seek: time_ps 1000 -> -"]


def test_the_table_of_verdicts_has_every_claim():
    table = json.loads((GOLDEN / "validate.json").read_text())
    assert list(table["claims"]) == list(claims.claims())
    for row in table["claims"].values():
        assert row["verdict"] in ("holds", "explained", "fails", "not available")
        assert row["verdict"] == "holds" or row["remark"]
