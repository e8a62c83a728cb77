"""`spinloom simulate --send`: the sender's side on the real engine, and its columns."""

from __future__ import annotations

import csv
import json
from random import Random

import pytest

from conftest import needs_engine
from spinloom.common import core, data
from spinloom.nics import profiles, results, sending, sweep, workloads
from spinloom.nics.sweep import Cell, Setup
from spinloom.nics.workloads import Row
from type_trees import random_text


def rows_of(spinloom, *arguments):
    ran = spinloom("simulate", *arguments, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["rows"]


def by_strategy(rows):
    return {row["strategy"]: row for row in rows}


def test_names_are_parsed_with_the_baseline_first():
    assert sending.parse("streaming") == ["pack", "streaming"]
    assert sending.parse("outbound, streaming") == ["pack", "streaming", *sending.OUTBOUND]
    assert sending.parse("all") == list(sending.STRATEGIES)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--send", "streming"), "there is no 'streming'"),
        (("--send", ""), "--send is empty"),
        (("--send", "all", "--order", "window:4"), "--order is about receiving"),
        (("--send", "all", "--unexpected"), "--unexpected is about receiving"),
        (("--send", "all", "--strategies", "seek"), "--strategies is about receiving"),
    ],
)
def test_wrong_usage_is_told(spinloom, arguments, said):
    ran = spinloom("simulate", "MILC:16^4", *arguments)
    assert ran.code == 2
    assert said in ran.err


@needs_engine
def test_every_byte_of_the_demo_is_checked(spinloom):
    rows = rows_of(spinloom, "--demo", "--send", "all")
    assert len(rows) == len(workloads.demo()) * len(sending.STRATEGIES)
    for row in rows:
        assert row["checked"] is True
        assert row["send_time_ps"] > row["line_time_ps"]
        assert row["host_busy_ps"] <= row["send_time_ps"]
        assert set(row) <= {**results.COLUMNS, **sending.COLUMNS}.keys()
        outbound = row["strategy"] in sending.OUTBOUND
        assert (row["handler_cycles_per_packet"] > 0) is outbound
        assert (row["nic_memory_bytes"] > 0) is outbound
        assert row["speedup"] == 1 or row["strategy"] != sending.BASELINE


# Types that the demo has not: one region, overlapping regions, far from the base, negative strides.
@needs_engine
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("byte", "1"),
        ("contig(5000, byte)", "3"),
        ("hvector(7, 300, -500B, byte)", "1"),
        ("hindexed([10B x 3, 5B x 0, 1000000B x 4096, 0B x 1], byte)", "2"),
        ("hvector(100, 64, 16B, byte)", "1"),
        ("struct([(100B, vector(100, 3, 7, int)), (20000B, hvector(9, 2, 600B, double))])", "5"),
    ],
)
def test_any_type_is_sent(spinloom, text, count):
    rows = rows_of(spinloom, "--type", text, "--count", count, "--send", "all")
    assert {row["strategy"] for row in rows} == set(sending.STRATEGIES)
    for row in rows:
        assert row["checked"] is True, row
    reads = {row["strategy"]: row["dma_reads"] for row in rows}
    pieces = rows[0]["pieces"]
    assert reads["pack"] == 0
    assert reads["streaming"] == reads["outbound-seek"] == pieces
    assert (
        0 < reads["outbound-specialised"] <= pieces
    )  # a list of blocks joins neighbours of different members


# Small packets, so that random types of a few hundred bytes are cut at many places.
@needs_engine
@pytest.mark.parametrize("mtu", [1, 7, 64])
def test_random_types_are_sent(mtu):
    profile = profiles.load("sc19-slingshot")
    setup = Setup(profile.native(), data.handler_images(), hpus=4, mtu=mtu, order="in", seed=mtu, send=True)
    sent = 0
    for number in range(60):
        random = Random(f"send {number}")
        row = Row("random", str(number), random_text(random, 3), random.randint(1, 3))
        for strategy in sending.STRATEGIES:
            outcome = sweep.run_cell(core.load(), Cell(row, strategy), setup)
            assert outcome.code in ("ok", "unsupported"), (row.type, row.count, strategy, outcome.message)
            sent += outcome.code == "ok"
    assert sent > 150


@needs_engine
def test_what_the_sender_does_is_counted(spinloom):
    rows = by_strategy(rows_of(spinloom, "--type", "vector(512, 16, 32, double)", "--send", "all"))
    profile = profiles.load("sc19-slingshot")
    call = profile.native()["host.call"]
    assert rows["outbound-seek"]["host_busy_ps"] == call
    assert rows["outbound-seek"]["host_calls"] == rows["pack"]["host_calls"] == 1
    assert rows["streaming"]["host_calls"] == 512
    # Two cycles of walking at 3.4 GHz a region, rounded up, and a call.
    assert rows["streaming"]["host_busy_ps"] == 512 * (call + 589)
    assert rows["streaming"]["dma_reads"] == rows["outbound-seek"]["dma_reads"] == 512
    assert rows["outbound-seek"]["dma_read_bytes"] == rows["outbound-seek"]["size_bytes"]
    assert rows["outbound-seek"]["outbound_packets_peak"] <= profile["memory.outbound_packets"]


@needs_engine
def test_long_blocks_stream_as_packets_leave(spinloom):
    rows = by_strategy(rows_of(spinloom, "--type", "hvector(256, 4096, 8192B, byte)", "--send", "all"))
    streaming, line = rows["streaming"], rows["streaming"]["line_time_ps"]
    # 1 MiB: regions are posted faster than the line takes them, so the line is what takes time.
    assert streaming["host_busy_ps"] < line < streaming["send_time_ps"] < 1.05 * line
    assert rows["pack"]["send_time_ps"] > rows["pack"]["host_busy_ps"] + line


@needs_engine
def test_one_slot_of_the_outbound_buffer_is_enough(spinloom):
    arguments = ("--type", "vector(512, 16, 32, double)", "--send", "outbound")
    many = by_strategy(rows_of(spinloom, *arguments))["outbound-seek"]
    one = by_strategy(rows_of(spinloom, *arguments, "--set", "memory.outbound_packets=1"))["outbound-seek"]
    assert one["outbound_packets_peak"] == 1
    assert one["checked"] is True
    assert one["send_time_ps"] > 5 * many["send_time_ps"]


@needs_engine
@pytest.mark.parametrize("nic", ["pulp-22nm", "pspin-rtl", "sc17-discrete", "sc17-integrated"])
def test_every_card_sends(spinloom, nic):
    rows = rows_of(spinloom, "WRF_y:2x2", "--send", "all", "--nic", nic)
    assert all(row["checked"] is True for row in rows)


@needs_engine
@pytest.mark.parametrize("kind", ["flip", "skip", "stray"])
def test_injected_damage_is_found(spinloom, kind):
    ran = spinloom("simulate", "MILC:8^4", "--send", "all", "--inject", kind, "--json")
    assert ran.code == 1
    for row in json.loads(ran.out)["rows"]:
        assert row["checked"] is False
        assert row["send_time_ps"] is None


# The last strategy of the table: what the sending node did, from its call on.
@needs_engine
def test_a_timeline_of_the_sender(spinloom, tmp_path):
    path = tmp_path / "send.pftrace"
    ran = spinloom("simulate", "MILC:8^4", "--send", "outbound", "--timeline", str(path))
    assert ran.code == 0, ran.err
    assert path.stat().st_size > 0
    profile = profiles.load("sc19-slingshot")
    setup = Setup(profile.native(), data.handler_images(), hpus=32, mtu=2048, order="in", seed=1, send=True)
    cell = Cell(workloads.row("MILC", "8^4"), "outbound-seek")
    spans, dropped = sweep.record(cell, setup)
    assert dropped == 0
    packets = sweep.run_cell(core.load(), cell, setup).columns["packets"]
    tracks = [span[0] for span in spans]
    assert tracks.count("payload handler") == packets
    assert min(span[3] for span in spans) == 0, "the call itself"


@needs_engine
def test_a_message_of_nothing_is_not_sent(spinloom):
    rows = rows_of(spinloom, "--type", "contig(0, byte)", "--send", "all")
    assert {row["status"] for row in rows} == {"unsupported"}


@needs_engine
def test_the_table_and_the_files(spinloom, tmp_path):
    ran = spinloom("simulate", "MILC:8^4", "--send", "streaming", "--out", str(tmp_path))
    assert ran.code == 0, ran.err
    assert "from the sender's call" in ran.out
    written = list(csv.DictReader((tmp_path / "simulate.csv").open(newline="")))
    assert [row["strategy"] for row in written] == ["pack", "streaming"]
    document = json.loads((tmp_path / "simulate.json").read_text())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert document["result_hash"] == manifest["result_hash"]
    again = json.loads(spinloom("simulate", "MILC:8^4", "--send", "streaming", "--json").out)
    assert again["result_hash"] == document["result_hash"]
