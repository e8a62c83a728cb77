"""`spinloom goal compare`: our model beside LogGOPSim's rules, and the tables of docs/goal.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinloom.common import core
from spinloom.predict import goal_compare, goal_model

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs/goal.md"
PARAMETERS = goal_model.parse(
    {name: str(default) for name, (default, _) in goal_model.PARAMETERS.items()}, "1ns"
)


def written_tables():
    """The rows of the table in docs/goal.md, by schedule."""
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("| schedule | ours"))
    rows = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return rows
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def test_the_table_in_the_docs_is_what_the_command_prints(spinloom):
    files = sorted((HERE / "examples").glob("*.goal"))
    assert len(files) == 24
    ran = spinloom("goal", "compare", *map(str, files), "--json")
    assert ran.code == 0
    written = written_tables()
    rows = json.loads(ran.out)
    assert list(written) == [row["schedule"] for row in rows]
    for row in rows:
        times = [
            "-" if row[key] is None else f"{row[key] / 1000:,.0f}" for key in ("ours_ps", "loggopsim_ps")
        ]
        assert written[row["schedule"]] == [*times, row["rules"]], row["schedule"]


def test_the_docs_explain_each_rule():
    text = " ".join(DOCS.read_text(encoding="utf-8").split())
    for rule in goal_compare.RULES:
        assert f"*{rule.name}*" in text


# A schedule in which one rule makes the difference.
@pytest.mark.parametrize(
    ("rule", "goal", "changes"),
    [
        ("no bytes", "rank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}", {}),
        ("rendezvous", "rank 0 {\nsend 70000b to 1\n}\nrank 1 {\nrecv 70000b from 0\n}", {}),
        ("CPUs", "rank 0 {\na: calc 9\nb: calc 4 cpu 1\nb requires a\n}\nrank 1 {\n}", {}),
        ("O", "rank 0 {\nsend 10b to 1\n}\nrank 1 {\nrecv 10b from 0\n}", {"O": (1000, 1)}),
        (
            "g",
            "rank 0 {\nsend 1b to 1\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\nrecv 1b from 0\n}",
            {"g_ps": 9_000_000},
        ),
        (
            "G",
            "rank 0 {\nsend 9000b to 1\n}\n"
            "rank 1 {\nrecv 9000b from 0\nw: calc 5000\nc: calc 1\nc requires w\n}",
            {},
        ),
        (
            "o",
            "rank 0 {\na: send 1b to 1 tag 1\nw: calc 20000\nb: send 1b to 1 tag 2\n"
            "w requires a\nb requires w\n}\n"
            "rank 1 {\nb: recv 1b from 0 tag 2\na: recv 1b from 0 tag 1\na requires b\n}",
            {},
        ),
    ],
)
def test_the_rule_is_found(rule, goal, changes):
    schedule = core.load().read_goal(f"num_ranks 2\n{goal}\n".encode())
    found = goal_compare.compare(schedule, {**PARAMETERS, **changes})
    assert found.rules is not None
    assert [one.name for one in found.rules] == [rule]
    assert found.ours_ps != found.loggopsim_ps


def test_where_both_agree_no_rule_is_named():
    schedule = core.load().goal_pattern("dissemination", 64, 100)
    found = goal_compare.compare(schedule, PARAMETERS)
    assert found.rules == ()
    assert found.ours_ps == found.loggopsim_ps


def test_a_schedule_that_stalls_says_why(spinloom):
    ran = spinloom("goal", "compare", str(HERE / "examples/deadlock.goal"))
    assert ran.code == 0
    assert "deadlock.goal: rank 0 sends rank 1 1 message with tag 1" in ran.err


def test_loggopsim_counts_in_whole_units(spinloom):
    ran = spinloom("goal", "compare", str(HERE / "examples/chain.goal"), "-g", "6.7ns")
    assert ran.code == 2
    assert "-g of 6700 ps is no whole number of --unit (1000 ps)" in ran.err
    ran = spinloom("goal", "compare", str(HERE / "examples/chain.goal"), "-g", "6.7ns", "--unit", "100ps")
    assert ran.code == 0
