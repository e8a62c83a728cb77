"""`spinloom goal`: the examples to the unit, files that are wrong, patterns as files."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest

from spinloom import core
from spinloom.errors import Trouble

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"


def test_the_time_of_each_rank_by_command_is_that_of_loggopsim(spinloom):
    values = tomllib.loads((HERE / "examples.toml").read_text(encoding="utf-8"))["parameters"]["D"]
    options = [word for name in "LogGOS" for word in (f"-{name}", str(values[name]))]
    ran = spinloom("goal", str(EXAMPLES / "ping_pong.goal"), *options, "--json")
    assert [row["time"] for row in json.loads(ran.out)] == [1763760, 1398460]
    ran = spinloom("goal", "run", str(EXAMPLES / "ping_pong.goal"), *options, "--csv")
    assert [row["time"] for row in csv.DictReader(ran.out.splitlines())] == ["1763760", "1398460"]
    ran = spinloom("goal", str(EXAMPLES / "ping_pong.goal"), *options)
    assert "1,763,760 (rank 0)" in ran.out
    assert "host time" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num_ranks 2\nrank 0 {\nsend 8b to 5\n}\nrank 1 {\n}\n", "line 3"),
        ("num_ranks 1\nrank 0 {\nb requires a\n}\n", "line 3"),
        ("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n", "rank 1"),
        ("", "line 1"),
    ],
)
def test_what_is_wrong_is_one_sentence(spinloom, tmp_path, text, said):
    path = tmp_path / "wrong.goal"
    path.write_text(text)
    for verb in (["goal"], ["goal", "check"]):
        ran = spinloom(*verb, str(path))
        assert ran.code in (1, 2)
        assert said in ran.err
        assert ran.err.count("\n") == 1
        assert ran.out == ""


def test_messages_that_nobody_wants_are_found_before_the_run(spinloom):
    ran = spinloom("goal", str(EXAMPLES / "deadlock.goal"))
    assert ran.code == 2
    assert "rank 0 sends rank 1 1 message with tag 1, but rank 1 has 0 receives" in ran.err
    assert ran.out == ""


def test_a_schedule_that_stalls_says_who_waits(spinloom, tmp_path):
    path = tmp_path / "both.goal"
    ranks = [
        f"rank {rank} {{\nr: recv 8b from {1 - rank}\ns: send 8b to {1 - rank}\ns requires r\n}}\n"
        for rank in (0, 1)
    ]
    path.write_text("num_ranks 2\n" + "".join(ranks))
    assert spinloom("goal", "check", str(path)).code == 0
    ran = spinloom("goal", str(path))
    assert ran.code == 1
    assert "rank 0" in ran.err
    assert "rank 1" in ran.err
    assert ran.out == ""


def test_a_file_that_is_not_there(spinloom, tmp_path):
    ran = spinloom("goal", str(tmp_path / "none.goal"))
    assert ran.code == 3
    assert "none.goal: No such file" in ran.err


@pytest.mark.parametrize("ending", [".goal", ".bin"])
def test_a_pattern_in_a_file_is_the_pattern(spinloom, tmp_path, ending):
    names = spinloom("goal", "make").out.split()
    assert len(names) == 10
    for name in names:
        path = tmp_path / f"{name}{ending}"
        assert spinloom("goal", "make", name, "--ranks", "8", "--bytes", "100", "-o", str(path)).code == 0
        read, made = core.load().read_goal(path.read_bytes()), core.load().goal_pattern(name, 8, 100)
        assert read.text() == made.text()
        read.check()
        values = {"L": 7, "o": 3, "g": 2, "G": 1, "O": 0, "S": 1000}
        assert read.run_loggopsim(**values) == made.run_loggopsim(**values)


def test_a_dissemination_has_its_closed_form(spinloom, tmp_path):
    """k rounds of 2 o + L + (s - 1) G, where a rank's overhead is at least its gap."""
    rounds, size = 10, 64
    path = tmp_path / "d.bin"
    spinloom(
        "goal", "make", "dissemination", "--ranks", str(2**rounds), "--bytes", str(size), "-o", str(path)
    )
    rows = json.loads(spinloom("goal", str(path), "--json").out)
    assert {row["time"] for row in rows} == {rounds * (2 * 1500 + 2500 + (size - 1) * 6)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no_such"], "no_such"),
        (["dissemination"], "--ranks"),
        (["recursive_doubling_allreduce", "--ranks", "6"], "6"),
        (["dissemination", "--ranks", "4", "-o", "d.txt"], ".goal"),
    ],
)
def test_make_says_what_it_lacks(spinloom, words, said):
    if words[0] == "no_such":
        words = [*words, "--ranks", "4"]
    ran = spinloom("goal", "make", *words)
    assert ran.code == 2
    assert said in ran.err


def test_the_engine_from_python_refuses_what_is_no_schedule():
    with pytest.raises(Trouble, match="line 1"):
        core.load().read_goal(b"hello")
