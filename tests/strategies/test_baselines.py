"""What offloading is compared with: contiguous data lands in place, a warm host, another host."""

from __future__ import annotations

import csv
import json

import pytest

from conftest import needs_engine
from spinloom import simulate
from spinloom.nics.strategies import BASELINE, DIRECT

pytestmark = needs_engine
CONTIGUOUS, VECTOR = "contig(131072, double)", "vector(4096, 4, 8, double)"


def test_contiguous_data_has_no_speedup_over_landing_in_place():
    table = simulate(CONTIGUOUS, ["specialised", "rw-cp", "seek"])
    direct = table.one(strategy=DIRECT)
    assert direct["speedup"] == 1
    for row in table:
        assert row["baseline"] == DIRECT
        assert row["checked"]
        assert row["speedup"] <= 1
    # the wire, and the last packet's way into memory: no CPU touches a byte
    assert direct["line_time_ps"] < direct["time_ps"] < 1.1 * direct["line_time_ps"]
    assert direct["host_line_fetches"] == 0


def test_blocks_do_not_land_in_place():
    table = simulate(VECTOR, ["seek", DIRECT])
    assert [row["strategy"] for row in table] == [BASELINE, "seek"]
    assert {row["baseline"] for row in table} == {BASELINE}


def test_an_early_message_is_copied_even_when_it_is_contiguous():
    row = simulate(CONTIGUOUS, [DIRECT], unexpected=True).one(strategy=DIRECT)
    assert row["checked"]
    assert row["host_line_fetches"] > 0


def test_a_warm_host_fetches_nothing_that_its_cache_holds():
    table = simulate(VECTOR, ["host-best", "host-warm"])
    cold, warm = table.one(strategy="host-best"), table.one(strategy="host-warm")
    assert cold["host_line_fetches"] > 0 == warm["host_line_fetches"]
    assert cold["data_time_ps"] == warm["data_time_ps"] < warm["time_ps"] < cold["time_ps"]


@pytest.mark.parametrize("host", ["i7-4770", "zen5"])
def test_a_warm_host_is_never_slower_than_a_cold_one(host):
    faces = {
        f"face of {width}": f"subarray([64, 64, 64], [64, 64, {width}], [0, 0, 0], C, double)"
        for width in (1, 4, 16)
    }
    table = simulate({**faces, "MILC": "MILC:16^4"}, ["host-best", "host-warm"], host=host)
    for datatype in dict.fromkeys(table.column("datatype")):
        cold, warm = (table.one(datatype=datatype, strategy=name) for name in ("host-best", "host-warm"))
        assert warm["time_ps"] < cold["time_ps"]


def test_warm_data_that_no_cache_holds_is_fetched():
    large = "vector(524288, 4, 8, double)"  # 16 MiB in 32 MiB of memory; the i7-4770 has 8 MiB
    table = simulate(large, ["host-best", "host-warm"])
    cold, warm = table.one(strategy="host-best"), table.one(strategy="host-warm")
    assert warm["host_line_fetches"] == cold["host_line_fetches"]
    larger = simulate(large, ["host-warm"], host="zen5", set={"host.cache": "64MiB"})
    assert larger.one(strategy="host-warm")["host_line_fetches"] == 0


@pytest.mark.parametrize("field", ["host.memory_byte_time", "link.byte_time", "pcie.byte_time"])
@pytest.mark.parametrize("strategy", [BASELINE, "host-best", "host-warm"])
def test_a_host_is_never_slower_with_more_bandwidth(field, strategy):
    """A host whose prefetchers run far ahead is bound by its memory, and more of it never hurts."""
    table = simulate(
        [VECTOR, "hvector(64, 16384, 32768B, byte)"],
        [strategy],
        set={"host.streamed_in_flight": 100, field: ["8 GB/s", "16 GB/s", "64 GB/s", "256 GB/s"]},
    )
    for datatype in dict.fromkeys(table.column("datatype")):
        times = [row["time_ps"] for row in table.where(datatype=datatype, strategy=strategy)]
        assert len(times) == 4
        assert times == sorted(times, reverse=True)


def test_ddt_compares_with_a_host_that_is_chosen(spinloom):
    ran = spinloom("simulate", "--type", VECTOR, "--strategies", "seek", "--host", "zen5", "-q")
    assert ran.code == 0
    assert "sc19-slingshot, host zen5" in ran.out
    rows = {
        host: json.loads(spinloom("simulate", "--type", VECTOR, "--host", host, "--json", "-q").out)["rows"]
        for host in ("zen5", "i7-4770")
    }
    times = {host: {row["strategy"]: row["time_ps"] for row in found} for host, found in rows.items()}
    assert times["zen5"][BASELINE] < times["i7-4770"][BASELINE]
    assert times["zen5"]["seek"] == times["i7-4770"]["seek"]  # the NIC does not care


def test_the_table_says_what_the_speedups_are_over(spinloom):
    ran = spinloom("simulate", "--type", CONTIGUOUS, "--strategies", "seek", "-q")
    assert f"the time of {DIRECT}, and each" in ran.out
    assert "1.0x" not in ran.out  # it is a time
    assert BASELINE not in spinloom("simulate", "--type", CONTIGUOUS, "-q").out.splitlines()[0]


def test_no_room_is_neither_wrong_nor_an_error(spinloom):
    arguments = (
        "simulate",
        "--type",
        "vector(65536, 2, 4, double)",
        "--set",
        "memory.state_bytes=1KiB",
        "-q",
    )
    ran = spinloom(*arguments, "--strategies", "hpu-local,seek")
    assert ran.code == 0
    assert "WRONG" not in ran.out
    assert "no room [1]" in ran.out
    assert "[1] hpu-local needs" in ran.out
    (row,) = [
        row
        for row in csv.DictReader(spinloom(*arguments, "--strategies", "hpu-local", "--csv").out.splitlines())
        if row["strategy"] == "hpu-local"
    ]
    assert (row["status"], row["checked"], row["time_ps"]) == ("exhausted", "", "")
