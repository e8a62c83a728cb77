"""Runs of ranks for the tests of their page."""

from __future__ import annotations

import base64
import json
import re

from spinloom.common import core
from spinloom.predict import goal_page
from spinloom.traces.pages import page, runs

MODEL = {"L_ps": 2_500_000, "o_ps": 1_500_000, "g_ps": 1_000_000, "G": (6, 1)}
CHAIN = """num_ranks 3
rank 0 {
c: calc 100000
s: send 1b to 1
s requires c
}
rank 1 {
r: recv 1b from 0
s: send 1b to 2
s requires r
}
rank 2 {
recv 1b from 1
}
"""


def run_of(path, text=CHAIN, name="spinloom", **more):
    path.write_text(text, encoding="utf-8")
    schedule = core.load().open_goal(str(path))
    schedule.check()
    return goal_page.run_of(schedule.run(**MODEL, record=True, **more), name, "a test")


def pattern(path, name, ranks, run_name="spinloom"):
    schedule = core.load().goal_pattern(name, ranks, 1)
    return goal_page.run_of(schedule.run(**MODEL, record=True), run_name, "a test")


def page_of(*shown, title="a title", facts="facts", notes=("a note",)):
    return page.build(title, facts, notes, shown)


def numbers(text):
    """The numbers of columns.text_of(), read as the page reads them."""
    found, last, step, scale = [], 0, 0, 1
    for byte in base64.b64decode(text):
        step, scale = step + byte % 128 * scale, scale * 128
        if byte < 128:
            last += -(step + 1) // 2 if step % 2 else step // 2
            found.append(last)
            step, scale = 0, 1
    return found


def data_of(text):
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    )


def many_marks(tracks, marks):
    """A run of so many marks, of three kinds in turn, each 10 long and 5 apart, with a wait between them."""
    found, waits = [], []
    kinds = list(runs.KINDS)
    for track in range(tracks):
        for place in range(marks // tracks):
            start = 15 * place
            found.append(runs.Mark(track, start, start + 10, kinds[place % 3], f"operation {place % 7}"))
            if place:
                other = (track + 1) % tracks
                waits.append(runs.Wait(track, start - 5, start, other, "rank {rank} computed", other, 5))
    messages = [
        runs.Message(place, (place + len(found) // 2) % len(found), found[place].end, found[place].end + 7, 8)
        for place in range(0, len(found), 3)
    ]
    path = [runs.Step(10 * step, 10 * step + 10, "computation", step % tracks) for step in range(marks // 50)]
    end = 15 * (marks // tracks)
    return runs.Run(
        "many", "", end, [runs.Track(rank, 0) for rank in range(tracks)], found, messages, waits, path
    )
