"""Figures and timelines: every figure's table is complete, drawings and traces can be read back."""

from __future__ import annotations

import csv
import json

import pytest

from conftest import fake_run_cell, needs_engine
from spinloom.common import core, data, pictures
from spinloom.nics import profiles, timeline
from spinloom.nics.strategies import STRATEGIES
from spinloom.papers import figure_tables

FIGURES = list(figure_tables.figures())


def test_the_papers_figures_are_all_there():
    sc19 = ["2", "8", "9c", "10", "11", "12", "13a", "13b", "13c", "14", "15", "16", "17", "18"]
    assert [*sc19, "sc17-4", "sc17-7a"] == FIGURES
    for figure in figure_tables.figures().values():
        assert set(figure.strategies) <= {figure_tables.COPIES, figure_tables.BUSY, *STRATEGIES}
        assert figure.measure in figure_tables.MEASURES
        assert len(figure_tables.cells(figure, True)) <= len(figure_tables.cells(figure, False))


def test_an_unknown_figure_is_answered_with_the_nearest(spinloom, tmp_path):
    ran = spinloom("paper", "figure", "13", "--out", str(tmp_path))
    assert ran.code == 2
    assert "did you mean '13" in ran.err


@needs_engine
@pytest.mark.parametrize("name", ["8", "12", "15", "16", "17", "18"])
def test_a_figure_has_a_row_a_point_and_a_drawing(spinloom, tmp_path, name):
    ran = spinloom("paper", "figure", name, "--quick", "--quiet", "--out", str(tmp_path))
    assert ran.code == 0
    rows = list(csv.DictReader((tmp_path / f"fig{name}.csv").open()))
    figure = figure_tables.figures()[name]
    wanted = {(str(cell.x), cell.strategy) for cell in figure_tables.cells(figure, True)}
    there = {(row[figure.axis if figure.axis != "row" else "datatype"], row["strategy"]) for row in rows}
    assert there == wanted
    for row in rows:
        assert (row["status"] == "ok") == (row[figure.measure] != "")
        assert row["status"] == "ok" or row["message"]
    if pictures.available():
        assert (tmp_path / f"fig{name}.svg").read_text().startswith("<?xml")


def test_what_is_missing_is_not_available_and_does_not_fail(spinloom, fake_engine, tmp_path):
    def some(config):
        if config["strategy"] not in ("host-mpitypes", "specialised", "rw-cp", "seek"):
            raise fake_engine.SpinloomError("unsupported", "not in this engine")
        return {**fake_run_cell(config), "data_time_ps": 500_000}

    fake_engine.run_cell = some
    assert spinloom("paper", "figure", "8", "--quick", "--quiet", "--out", str(tmp_path)).code == 0
    rows = list(csv.DictReader((tmp_path / "fig8.csv").open()))
    lost = {row["strategy"]: row["message"] for row in rows if row["status"] == "not available"}
    assert lost == dict.fromkeys(["host-best", "hpu-local", "ro-cp"], "not in this engine")


# ---- recording ----


def cell(**changes):
    return core.load().run_cell(
        {
            "type": "hvector(512, 128, 256B, byte)",
            "count": 1,
            "strategy": "rw-cp",
            "profile": profiles.load("sc19-slingshot").native(),
            "images": data.handler_images(),
            "hpus": 4,
            "mtu": 2048,
            "order": "in",
            "seed": 1,
            "inject": "none",
            **changes,
        }
    )


@needs_engine
def test_recording_changes_no_number():
    plain, recorded = cell(), cell(trace=True, sample_dma_queue=True)
    extra = {name: recorded.pop(name) for name in ("trace", "trace_dropped", "dma_queue")}
    assert plain == recorded
    assert extra["trace_dropped"] == 0
    assert max(depth for _, depth in extra["dma_queue"]) == plain["dma_queue_peak"]


@needs_engine
def test_a_trace_has_a_span_for_each_thing_that_happened():
    row = cell(trace=True)
    counts = {}
    for track, _, _, start, end in row["trace"]:
        assert start <= end
        counts[track] = counts.get(track, 0) + 1
    assert counts["wire"] == counts["parser"] == counts["payload handler"] == row["packets"] == 32
    assert counts["DMA"] == counts["PCIe"] == row["dma_writes"] - 1  # the completion handler's has no bytes
    assert counts["completion handler"] == counts["event"] == 1
    assert counts["call"] == row["dma_writes"]
    handlers = [span for span in row["trace"] if span[0].endswith("handler")]
    for track, hpu, _, start, end in row["trace"]:
        if track == "call":
            inside = [
                1 for _, lane, _, begin, stop in handlers if lane == hpu and begin <= start <= end <= stop
            ]
            assert len(inside) == 1
    cycle_ps = 1250
    busy = sum(end - start for track, _, _, start, end in row["trace"] if track == "payload handler")
    assert busy == round(row["handler_cycles_per_packet"] * row["packets"]) * cycle_ps
    assert max(end for _, _, _, _, end in row["trace"]) == row["time_ps"]


SPANS = [
    ("wire", 0, 0, 0, 100),
    ("wire", 0, 2048, 100, 200),
    ("payload handler", 3, 7, 150, 400),
    ("call", 3, 4, 180, 390),
    ("call", 3, 7, 390, 400),
    ("completion handler", 3, 8, 400, 450),
    ("DMA", 0, 64, 200, 500),
    ("DMA", 0, 64, 250, 550),
    ("DMA", 0, 32, 500, 600),
    ("event", 0, 0, 700, 700),
]


def test_overlapping_spans_get_lanes_of_their_own():
    placed = [(unit, lane) for unit, lane, _ in timeline.lanes(SPANS)]
    assert placed.count(("DMA", 0)) == 2
    assert placed.count(("DMA", 1)) == 1
    assert placed.count(("HPU", 3)) == 4


def test_a_timeline_reads_back_with_every_span():
    proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = proto.Trace.FromString(timeline.build(SPANS, "a test"))
    names = {
        packet.track_descriptor.uuid: packet.track_descriptor.name
        for packet in trace.packet
        if packet.HasField("track_descriptor")
    }
    stacks: dict[int, list] = {}
    read = []
    last = 0
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        assert packet.timestamp >= last
        last = packet.timestamp
        event = packet.track_event
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
            assert (
                not stack or names[event.track_uuid] == "HPU 3"
            )  # lanes are free of overlaps; calls lie in handlers
            stack.append((event.name, packet.timestamp))
        else:
            name, start = stack.pop()
            read.append((names[event.track_uuid], name, start, packet.timestamp))
    assert not any(stacks.values())
    assert len(read) == len(SPANS)
    assert ("HPU 3", "payload handler HER 7", 150, 400) in read
    assert ("HPU 3", "DMA from host, blocking", 180, 390) in read
    assert ("HPU 3", "counter increment", 390, 400) in read
    assert ("event 0", "event", 700, 700) in read


@needs_engine
def test_ddt_writes_a_timeline(spinloom, tmp_path):
    pytest.importorskip("perfetto")
    file = tmp_path / "milc.pftrace"
    ran = spinloom(
        "simulate", "MILC:8^4", "--strategies", "seek", "--quiet", "--timeline", str(file), "--json"
    )
    assert ran.code == 0
    assert "ui.perfetto.dev" in ran.err
    assert file.stat().st_size > 1000
    assert "trace" not in json.loads(ran.out)["rows"][0]
