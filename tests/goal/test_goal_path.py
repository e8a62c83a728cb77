"""`spinloom goal --critical-path` and `--timeline`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent / "examples"
LATENCY, OVERHEAD, BYTE = 2_500_000, 1_500_000, 6000  # ps


@pytest.fixture
def dissemination(spinloom, tmp_path):
    path = tmp_path / "d.bin"
    spinloom("goal", "make", "dissemination", "--ranks", "16", "--size", "101", "-o", str(path))
    return str(path)


def test_the_parts_of_a_critical_path_add_up(spinloom, dissemination):
    """Four rounds of o, L, 100 G and o."""
    rows = json.loads(spinloom("goal", dissemination, "--critical-path", "--json").out)
    assert [row["what"] for row in rows] == ["send", "latency", "bytes", "receive"] * 4
    sums = {}
    now = 0
    for row in rows:
        assert row["begin_ps"] == now
        now = row["end_ps"]
        sums[row["what"]] = sums.get(row["what"], 0) + row["end_ps"] - row["begin_ps"]
    assert sums == {
        "send": 4 * OVERHEAD,
        "latency": 4 * LATENCY,
        "bytes": 400 * BYTE,
        "receive": 4 * OVERHEAD,
    }
    ran = spinloom("goal", dissemination, "--critical-path")
    assert f"{100 * 4 * LATENCY / now:.1f} %" in ran.out
    assert "the last rank ends" in ran.out


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in EXAMPLES.glob("*.goal") if path.stem != "deadlock")
)
def test_the_path_of_each_example_ends_with_it(spinloom, name):
    path = str(EXAMPLES / f"{name}.goal")
    ends = max(row["finish_ps"] for row in json.loads(spinloom("goal", path, "--json").out))
    rows = json.loads(spinloom("goal", path, "--critical-path", "--json").out)
    assert sum(row["end_ps"] - row["begin_ps"] for row in rows) == ends == rows[-1]["end_ps"]


def test_a_network_lengthens_the_path_by_its_queues(spinloom, dissemination):
    def queues(*words):
        rows = json.loads(spinloom("goal", dissemination, "--critical-path", "--json", *words).out)
        return sum(row["end_ps"] - row["begin_ps"] for row in rows if row["what"] == "queue")

    assert queues() == 0
    # The last two rounds, over 4 and 8 ranks, cross two links more, 100 ns each.
    assert queues("--network", "fat-tree:radix=8,packet=0") >= 2 * 200_000


def test_a_timeline_opens_in_perfetto(spinloom, dissemination, tmp_path):
    proto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    path = tmp_path / "d.perfetto"
    ran = spinloom("goal", dissemination, "--timeline", str(path))
    assert ran.code == 0
    assert "ui.perfetto.dev" in ran.err
    trace = proto.Trace()
    trace.ParseFromString(path.read_bytes())
    names = [packet.track_descriptor.name for packet in trace.packet if packet.HasField("track_descriptor")]
    assert names[1:] == [f"rank {rank}" for rank in range(16)]
    begins = [
        packet
        for packet in trace.packet
        if packet.HasField("track_event") and packet.track_event.type == proto.TrackEvent.TYPE_SLICE_BEGIN
    ]
    assert len(begins) == 16 * 4 * 2
    flows = {}
    for packet in begins:
        for flow in packet.track_event.flow_ids:
            flows.setdefault(flow, []).append(packet.timestamp)
    assert len(flows) == 16 * 4
    # From the begin of a send to that of its receive.
    assert {last - first for first, last in flows.values()} == {OVERHEAD + LATENCY + 100 * BYTE}


@pytest.mark.parametrize("words", [["--critical-path"], ["--timeline", "x"]])
def test_the_dialect_has_neither(spinloom, dissemination, words):
    ran = spinloom("goal", dissemination, "--dialect", "loggopsim", *words)
    assert ran.code == 2
    assert f"{words[0]}: the rules of loggopsim have none" in ran.err
