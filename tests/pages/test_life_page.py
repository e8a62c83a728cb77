"""The page of a message's life: its numbers are the simulation's, and text from outside stays text."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from conftest import needs_engine
from spinloom import layout
from spinloom.common import core
from spinloom.common.pages import columns
from spinloom.nics import machines, simulation, strategies, sweep
from spinloom.nics.pages import lives, page
from spinloom.nics.sweep import Cell

pytestmark = needs_engine
VECTOR = "vector(64, 16, 32, double)"
TYPES = (VECTOR, "MILC:16^4", "WRF_y:2x2", "contig(4096, double)", "vector(40, 3, 7, byte)")
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&\u202e'


def outcomes_of(type_text, names=tuple(strategies.STRATEGIES), **more):
    machine = machines.machine(**more)
    setup = machine.setup(record=("trace",))
    row = simulation.rows_of(type_text)[0]
    each = [sweep.run_cell(core.load(), Cell(row, name), setup) for name in names]
    return [outcome for outcome in each if outcome.code == "ok"], setup


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


@pytest.mark.parametrize("row", [[], [0], [5, 5, 4, -9, 0], [2**51, 0, 127, 128, -(2**51)], list(range(300))])
def test_columns_come_back(row):
    assert numbers(columns.text_of(row)) == row


@pytest.mark.parametrize("order", ["in", "window:8"])
@pytest.mark.parametrize("type_text", TYPES)
def test_a_life_is_what_was_simulated(type_text, order):
    outcomes, setup = outcomes_of(type_text, order=order)
    assert len(outcomes) >= 7
    for outcome in outcomes:
        of = outcome.columns
        life = lives.follow(of["trace"], setup.mtu, of["size_bytes"])
        assert life.exact
        assert life.staged == outcome.cell.strategy.startswith("host-")
        assert max(work.end for works in life.works.values() for work in works) == of["time_ps"]
        assert len(life.works["wire"]) == of["packets"]
        parts = sorted((work.first, work.last) for work in life.works["dma"])
        assert parts[0][0] == 0
        assert parts[-1][1] == of["size_bytes"]
        assert all(one[1] == other[0] for one, other in pairwise(parts))


@pytest.mark.parametrize("type_text", TYPES)
def test_dma_writes_cover_the_layout_exactly(type_text):
    """Each write of a handler, moved through the layout, is one piece of memory; all are the layout."""
    outcomes, setup = outcomes_of(type_text)
    row = outcomes[0].cell.row
    blocks = layout.from_text(row.type).blocks(1_000_000, count=row.count)
    wanted = {at for offset, length in blocks for at in range(offset, offset + length)}
    place = [at for offset, length in blocks for at in range(offset, offset + length)]
    for outcome in outcomes:
        life = lives.follow(outcome.columns["trace"], setup.mtu, len(place))
        if life.staged:
            continue
        written: set[int] = set()
        for work in life.works["dma"]:
            piece = place[work.first : work.last]
            assert piece == list(range(piece[0], piece[0] + len(piece)))
            written.update(piece)
        assert written == wanted


def test_the_page_has_the_numbers_of_the_simulation():
    outcomes, setup = outcomes_of(VECTOR, ["host-mpitypes", "rw-cp"])
    data = data_of(page.build(outcomes, setup, "a machine", "a hash"))
    assert (data["size"], data["packets"], data["result_hash"]) == (8192, 4, "a hash")
    offsets, lengths = numbers(data["memory"]["offset"]), numbers(data["memory"]["length"])
    assert list(zip(offsets, lengths, strict=True)) == layout.from_text(VECTOR).blocks()
    for life, outcome in zip(data["lives"], outcomes, strict=True):
        rows = life["rows"]
        ends = {
            unit: max(map(sum, zip(numbers(row["start"]), numbers(row["time"]), strict=True)))
            for unit, row in rows.items()
        }
        assert life["time_ps"] == outcome.columns["time_ps"] == max(ends.values())
        assert ends["dma"] + life["latency_ps"] == outcome.columns["data_time_ps"]
        assert life["latency_ps"] == 250_000  # pcie.latency of the profile
        assert sum(numbers(rows["dma"]["bytes"])) == 8192
        assert life["sha256"] == outcome.destination_sha256


def test_the_same_input_gives_the_same_bytes(tmp_path, spinloom):
    results = []
    for name in ("one.html", "other.html"):
        ran = spinloom("simulate", "--type", VECTOR, "--page", str(tmp_path / name), "--json")
        assert ran.code == 0
        assert "open it in a browser" in ran.err
        results.append(json.loads(ran.out)["result_hash"])
    text = (tmp_path / "one.html").read_bytes()
    assert text == (tmp_path / "other.html").read_bytes()
    assert data_of(text.decode())["result_hash"] == results[0]
    again = spinloom("simulate", "--type", VECTOR, "--page", str(tmp_path / "one.html"))
    assert again.code != 0
    assert "--force overwrites" in again.err


def test_explain_writes_the_page_of_every_strategy(tmp_path, spinloom):
    ran = spinloom("explain", VECTOR, "--page", str(tmp_path / "life.html"), "--json")
    assert ran.code == 0
    shown = [life["strategy"] for life in data_of((tmp_path / "life.html").read_text("utf-8"))["lives"]]
    assert shown == [name for name in strategies.STRATEGIES if name != "rdma-direct"]


@pytest.mark.parametrize("arguments", [["--send", "pack"], ["--together"]])
def test_a_page_is_of_one_received_message(tmp_path, spinloom, arguments):
    ran = spinloom("simulate", "--type", VECTOR, "--page", str(tmp_path / "life.html"), *arguments)
    assert ran.code != 0
    assert "--page" in ran.err
    assert not (tmp_path / "life.html").exists()


def test_a_page_of_several_datatypes_names_the_one_that_it_shows(tmp_path, spinloom):
    path = tmp_path / "life.html"
    ran = spinloom("simulate", "MILC:8^4", "WRF_y:2x2", "--strategies", "rw-cp", "--page", str(path))
    assert ran.code == 0
    assert f"{path}: 2 strategies of MILC 8^4; open it in a browser" in ran.err
    assert f"{path} shows the first of 2 datatypes" in ran.err


def test_nothing_received_is_said(tmp_path, spinloom):
    ran = spinloom("simulate", "--type", "contig(0, byte)", "--page", str(tmp_path / "life.html"))
    assert ran.code != 0
    assert "no strategy received any bytes" in ran.err


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def elements_of(text):
    parser = Elements()
    parser.feed(text)
    return parser.found


def test_text_from_outside_stays_text():
    outcomes, setup = outcomes_of(VECTOR, ["host-mpitypes", "rw-cp"])
    row = replace(outcomes[0].cell.row, application=HOSTILE, datatype=HOSTILE)
    hostile = [replace(each, cell=replace(each.cell, row=row)) for each in outcomes]
    text = page.build(hostile, setup, HOSTILE, "hash")
    assert "onerror=" not in text.replace('onerror=\\"', "").replace("onerror=&quot;", "")
    assert "\u202e" not in text
    elements = elements_of(text)
    assert [tag for tag, _ in elements].count("script") == 2
    assert not [tag for tag, _ in elements if tag in ("img", "link", "iframe", "object", "base")]
    assert not [name for _, attributes in elements for name in attributes if name.startswith("on")]
    assert data_of(text)["machine"].startswith("</script><script>")


def test_the_page_asks_for_nothing():
    outcomes, setup = outcomes_of(VECTOR, ["rw-cp"])
    text = page.build(outcomes, setup, "", "")
    policy = next(
        attributes["content"] for _, attributes in elements_of(text) if attributes.get("http-equiv")
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not re.search(r"https?://", text)


def test_without_scripts_there_is_a_table():
    outcomes, setup = outcomes_of(VECTOR, ["host-mpitypes", "rw-cp"])
    text = page.build(outcomes, setup, "", "")
    table = re.search(r"<noscript>(.*?)</noscript>", text, re.DOTALL)[1]
    assert "1.282 us" in table  # the whole message by rw-cp
    assert len(re.findall("<tr>", table)) == 2 + 4


def test_a_large_message_has_a_small_page():
    outcomes, setup = outcomes_of("vector(100000, 2, 4, double)", ["host-mpitypes", "rw-cp"])
    text = page.build(outcomes, setup, "", "")
    assert len(text) < page.PAGE_BYTES
    data = data_of(text)
    assert data["memory"]["together"] == 2
    assert sum(numbers(data["memory"]["data"])) == 1_600_000
    rows = data["lives"][1]["rows"]
    assert rows["dma"]["spans"] == 100_000
    assert rows["dma"]["spans"] == sum(numbers(rows["dma"]["count"]))
    assert sum(numbers(rows["dma"]["bytes"])) == 1_600_000
    assert sum(row["drawn"] for row in rows.values()) <= page.SPANS_MAX


def test_a_full_recording_is_said_and_drawn_as_far_as_it_goes():
    outcomes, setup = outcomes_of("vector(512, 16, 32, double)", ["host-mpitypes", "rw-cp"])
    of = outcomes[1].columns
    cut = replace(outcomes[1], columns={**of, "trace": of["trace"][:900], "trace_dropped": 9})
    whole, short = data_of(page.build([outcomes[0], cut], setup, "", ""))["lives"]
    assert whole["until_ps"] is None
    assert 0 < short["until_ps"] < of["time_ps"] == short["time_ps"]
    assert not short["exact"]
    full = lives.follow(of["trace"], setup.mtu, 65536).works["dma"]
    known = {(work.start, work.end, work.first, work.last) for work in full}
    drawn = lives.follow(cut.columns["trace"], setup.mtu, 65536).works["dma"]
    assert 0 < len(drawn) < len(full)
    assert {(work.start, work.end, work.first, work.last) for work in drawn} <= known


@pytest.mark.parametrize(("limit", "most"), [(12, 20), (4, 5)])
def test_merged_works_cover_what_they_stand_for(limit, most):
    works = [lives.Work(place % 3, place, place + 5, place * 10, place * 10 + 10) for place in range(100)]
    whole = lives.Work(0, 200, 210, 0, 1000)
    merged = lives.merged([*works, whole], limit, 100)
    assert len(merged) <= most + 1
    assert whole in merged
    merged.remove(whole)
    assert sum(work.spans for work in merged) == 100
    assert (min(work.start for work in merged), max(work.end for work in merged)) == (0, 104)
    parts = sorted((work.first, work.last) for work in merged)
    assert (parts[0][0], parts[-1][1]) == (0, 1000)
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert lives.merged(works, 100, 100) == works


def test_a_packet_whose_writes_do_not_fit_is_not_guessed():
    spans = [
        ("wire", 0, 0, 0, 10),
        ("parser", 0, 0, 0, 5),
        ("packet buffer", 0, 7, 10, 12),
        ("scheduler", 0, 7, 12, 13),
        ("DMA", 0, 60, 20, 22),
        ("PCIe", 0, 60, 21, 22),
        ("call", 3, 1, 20, 20),
        ("payload handler", 3, 7, 14, 30),
    ]
    life = lives.follow(spans, 100, 100)
    assert not life.exact
    assert [(work.first, work.last) for work in life.works["dma"]] == [(0, 100)]
