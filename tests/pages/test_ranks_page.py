"""The page of ranks over time: its numbers are the run's, and text from outside stays text."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser

import pytest

import ranks
from conftest import needs_engine
from spinloom.traces.pages import page, runs

pytestmark = needs_engine
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&\u202e'


def test_waits_name_the_rank_and_its_cause(tmp_path):
    run = ranks.run_of(tmp_path / "chain.goal")
    assert [(run.tracks[wait.track].rank, wait.start, wait.end, wait.rank) for wait in run.waits] == [
        (1, 0, 104_000_000, 0),
        (2, 0, 109_500_000, 1),
    ]
    for wait in run.waits:
        assert (wait.cause_rank, wait.cause) == (0, 100_000_000)
        assert wait.why == "rank {rank} computed for {time} of it"
    assert [(message.sent, message.there, message.size) for message in run.messages] == [
        (101_500_000, 104_000_000, 1),
        (107_000_000, 109_500_000, 1),
    ]
    assert sum(step.end - step.start for step in run.path) == run.end == 111_000_000


@pytest.mark.parametrize("asked_ns", [0, 1000, 1_000_000])
@pytest.mark.parametrize("size", [1, 100, 65_535, 65_536])
def test_a_message_is_there_when_its_bytes_are_whenever_its_receive_comes(tmp_path, size, asked_ns):
    """Messages of more than 65,535 bytes wait for their receive."""
    text = f"""num_ranks 2
rank 0 {{
send {size}b to 1
}}
rank 1 {{
c: calc {asked_ns}
r: recv {size}b from 0
r requires c
}}
"""
    (message,) = ranks.run_of(tmp_path / "late.goal", text, S_bytes=65_535).messages
    took = ranks.MODEL["L_ps"] + (size - 1) * ranks.MODEL["G"][0]
    assert (message.there - message.sent, message.size) == (took, size)
    assert size > 65_535 or message.sent == ranks.MODEL["o_ps"]


def test_the_page_has_the_numbers_of_the_run(tmp_path):
    run = ranks.run_of(tmp_path / "chain.goal")
    data = ranks.data_of(ranks.page_of(run))
    (shown,) = data["runs"]
    starts, times = ranks.numbers(shown["mark"]["start"]), ranks.numbers(shown["mark"]["time"])
    assert [(start, start + time) for start, time in zip(starts, times, strict=True)] == [
        (mark.start, mark.end) for mark in run.marks
    ]
    kinds = [data["kinds"][kind][0] for kind in ranks.numbers(shown["mark"]["kind"])]
    assert kinds == [mark.kind for mark in run.marks]
    labels = [shown["labels"][label] for label in ranks.numbers(shown["mark"]["label"])]
    assert labels == [mark.label for mark in run.marks]
    assert ranks.numbers(shown["wait"]["rank"]) == [0, 1]
    assert ranks.numbers(shown["message"]["sent"]) == [101_500_000, 107_000_000]
    assert sum(time for _, _, time in shown["shares"]) == shown["end"] == run.end
    assert [row[:4] for row in shown["pairs"]] == [[2, 1, 109_500_000, 1], [1, 0, 104_000_000, 1]]


def test_the_same_run_gives_the_same_bytes(tmp_path):
    one = ranks.page_of(ranks.run_of(tmp_path / "chain.goal"))
    assert one == ranks.page_of(ranks.run_of(tmp_path / "chain.goal"))


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_text_from_outside_stays_text(tmp_path):
    run = ranks.run_of(tmp_path / "chain.goal", name=HOSTILE)
    run.marks = [mark._replace(label=HOSTILE) for mark in run.marks]
    run.waits = [wait._replace(why=HOSTILE) for wait in run.waits]
    run.path = [step._replace(what=HOSTILE) for step in run.path]
    text = ranks.page_of(run, title=HOSTILE, facts=HOSTILE, notes=[HOSTILE])
    parser = Elements()
    parser.feed(text)
    assert [tag for tag, _ in parser.found].count("script") == 2
    assert not [tag for tag, _ in parser.found if tag in ("img", "link", "iframe", "object", "base")]
    assert not [name for _, attributes in parser.found for name in attributes if name.startswith("on")]
    assert "\u202e" not in text


def test_the_page_asks_for_nothing(tmp_path):
    text = ranks.page_of(ranks.run_of(tmp_path / "chain.goal"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://", text)


def test_without_scripts_there_is_a_table(tmp_path):
    text = ranks.page_of(ranks.run_of(tmp_path / "chain.goal"))
    table = re.search(r"<noscript>(.*?)</noscript>", text, re.DOTALL)[1]
    assert "rank 2 for rank 1" in table
    assert "rank 0 computed for 100 us of it" in table
    assert "computations" in table


@pytest.mark.parametrize("limit", [1000, 100, 7])
def test_merged_marks_stand_for_all(limit):
    run = ranks.many_marks(4, 2000)
    merged = runs.merged(run, limit)
    assert len(merged.marks) <= limit + len(run.tracks)
    assert sum(mark.count for mark in merged.marks) == len(run.marks)
    assert sum(mark.time for mark in merged.marks) == sum(mark.time for mark in run.marks)
    for track in range(len(run.tracks)):
        mine = [mark for mark in merged.marks if mark.track == track]
        assert mine[0].start == 0
        assert all(one.end <= other.start for one, other in itertools.pairwise(mine))
        assert mine[-1].end == max(mark.end for mark in run.marks if mark.track == track)
    assert len(merged.messages) <= limit
    assert len(merged.waits) == min(limit, len(run.waits))
    assert merged.waits_left_out + len(merged.waits) == len(run.waits)
    for message in merged.messages:
        assert merged.marks[message.source].end >= message.sent
    assert (merged.path[0].start, merged.path[-1].end) == (run.path[0].start, run.path[-1].end)


def test_a_large_run_has_a_small_page():
    run = ranks.many_marks(100, 1_000_000)
    text = ranks.page_of(run)
    assert len(text) < page.PAGE_BYTES
    (shown,) = ranks.data_of(text)["runs"]
    assert shown["operations"] == 1_000_000
    assert len(ranks.numbers(shown["mark"]["start"])) <= page.MARKS_MAX + 100
    assert (
        sum(row[3] for row in shown["pairs"]) == page.PAIRS_SHOWN * 9999
    )  # counted before waits are left out


def test_goal_run_writes_it(tmp_path, spinloom):
    schedule = tmp_path / "chain.goal"
    schedule.write_text(ranks.CHAIN, encoding="utf-8")
    ran = spinloom("goal", "run", str(schedule), "--page", str(tmp_path / "page.html"), "--json")
    assert ran.code == 0
    assert "open it in a browser" in ran.err
    data = ranks.data_of((tmp_path / "page.html").read_text("utf-8"))
    ends = [rank["finish_ps"] for rank in json.loads(ran.out)]
    assert data["runs"][0]["end"] == max(ends)
    assert "3 ranks, 5 operations, 2 messages" in data["facts"]


@pytest.mark.parametrize(
    "more",
    [
        ("--fidelity", "nic", "--nic", "sc19-slingshot"),
        ("--dialect", "loggopsim"),
        ("--nic", "sc19-slingshot", "--layout", "rw-cp"),
    ],
)
def test_where_nothing_tells_waits_it_is_refused(tmp_path, spinloom, more):
    schedule = tmp_path / "chain.goal"
    schedule.write_text(ranks.CHAIN, encoding="utf-8")
    ran = spinloom("goal", "run", str(schedule), "--page", str(tmp_path / "page.html"), *more)
    assert ran.code == 2
    assert "--page" in ran.err
    assert not (tmp_path / "page.html").exists()
