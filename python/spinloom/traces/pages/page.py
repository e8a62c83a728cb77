"""Ranks over time as one HTML page that needs nothing beside it.

Contract: build() takes Runs (runs.py) and returns the page, in the frame of common/pages. Runs have one axis
of time. What is too much to draw is merged, so that a page stays below PAGE_BYTES; the page says what one
mark then stands for. Who waited for whom, and what the critical path consists of, is added up before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spinloom.common import units
from spinloom.common.pages import columns, frame
from spinloom.common.printable import html, printable
from spinloom.traces.pages import runs
from spinloom.traces.pages.runs import KINDS, Run

PAGE_BYTES = 8_000_000
MARKS_MAX = 120_000
PAIRS_SHOWN = 40
LABEL_MAX = 120


class Words:
    """Gives each text a number."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def shown(self) -> list[str]:
        return [frame.shortened(text, LABEL_MAX) for text in self.texts]


def content_of(run: Run, limit: int) -> dict[str, Any]:
    """What the page shows of a run."""
    kinds = list(KINDS)
    labels, whys, steps = Words(), Words(), Words()
    pairs = runs.pairs(run, PAIRS_SHOWN)
    shares = runs.shares(run.path)
    waited = runs.waited(run)
    operations = len(run.marks)
    run = runs.merged(run, limit)
    text = columns.text_of
    return {
        "name": printable(run.name),
        "about": printable(run.about),
        "end": run.end,
        "between": run.between,
        "lanes": run.lanes,
        "operations": operations,
        "left_out": run.left_out,
        "waits_left_out": run.waits_left_out,
        "track": {
            "rank": text(track.rank for track in run.tracks),
            "lane": text(track.lane for track in run.tracks),
            "waited": text(waited),
        },
        "mark": {
            "track": text(mark.track for mark in run.marks),
            "start": text(mark.start for mark in run.marks),
            "time": text(mark.end - mark.start for mark in run.marks),
            "kind": text(kinds.index(mark.kind) for mark in run.marks),
            "label": text(labels.number(mark.label) for mark in run.marks),
            "count": text(mark.count for mark in run.marks),
            "busy": text(mark.time for mark in run.marks),
        },
        "message": {
            "source": text(message.source for message in run.messages),
            "target": text(message.target for message in run.messages),
            "sent": text(message.sent for message in run.messages),
            "time": text(message.there - message.sent for message in run.messages),
            "size": text(message.size for message in run.messages),
        },
        "wait": {
            "track": text(wait.track for wait in run.waits),
            "start": text(wait.start for wait in run.waits),
            "time": text(wait.end - wait.start for wait in run.waits),
            "rank": text(wait.rank for wait in run.waits),
            "why": text(whys.number(wait.why) for wait in run.waits),
            "cause_rank": text(wait.cause_rank for wait in run.waits),
            "cause": text(wait.cause for wait in run.waits),
        },
        "path": {
            "start": text(step.start for step in run.path),
            "time": text(step.end - step.start for step in run.path),
            "what": text(steps.number(step.what) for step in run.path),
            "rank": text(step.rank for step in run.path),
        },
        "labels": labels.shown(),
        "whys": whys.shown(),
        "steps": steps.shown(),
        "shares": shares,
        "pairs": [
            [
                pair.waiter,
                pair.other,
                pair.time,
                pair.waits,
                pair.longest.start,
                pair.longest.end,
                pair.longest.why,
                pair.longest.cause_rank,
                pair.longest.cause,
            ]
            for pair in pairs
        ],
    }


def why(wait: runs.Wait, unit_ps: int) -> str:
    text = wait.why.replace("{rank}", str(wait.cause_rank))
    return text.replace("{time}", units.format_time(wait.cause * unit_ps))


def table(shown: Sequence[Run]) -> str:
    """For browsers without scripts: when each run ends, what its critical path is, and who waits for whom."""
    lines = []
    for run in shown:
        lines.append(f"<h2>{html(run.name)}: {units.format_time(run.end * run.unit_ps)}</h2>")
        rows = [
            f"<tr><th>{html(what)}</th><td>{units.format_time(time * run.unit_ps)}</td></tr>"
            for what, _, time in runs.shares(run.path)
        ]
        if rows:
            lines.append(f"<h3>Critical path</h3><table><tbody>{''.join(rows)}</tbody></table>")
        rows = [
            f"<tr><th>rank {pair.waiter:,} for rank {pair.other:,}</th>"
            f"<td>{units.format_time(pair.time * run.unit_ps)}</td>"
            f"<td>{html(why(pair.longest, run.unit_ps))}</td></tr>"
            for pair in runs.pairs(run, PAIRS_SHOWN)
        ]
        if rows:
            lines.append(f"<h3>Who waits for whom</h3><table><tbody>{''.join(rows)}</tbody></table>")
    return "".join(lines)


def build(title: str, facts: str, notes: Sequence[str], shown: Sequence[Run]) -> str:
    """`facts` stands below the title, `notes` at the end: what the times are, and what is left out."""
    content = {
        "facts": printable(facts),
        "notes": [printable(note) for note in notes],
        "unit_ps": shown[0].unit_ps,
        "kinds": list(KINDS.items()),
        "runs": [content_of(run, MARKS_MAX // len(shown)) for run in shown],
    }
    return frame.build(
        frame.shortened(title, 120),
        table(shown),
        content,
        frame.part("ranks.html", __package__),
        [frame.part(name, __package__) for name in ("ranks.js", "ranks_draw.js", "ranks_view.js")],
        frame.part("ranks.css", __package__),
    )
