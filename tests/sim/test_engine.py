"""The whole system: the demo's datatypes on the real engine with the real handler images."""

import json

import pytest

from conftest import needs_engine
from spinloom.common import data
from spinloom.nics import results, workloads

pytestmark = needs_engine


@pytest.fixture(scope="module")
def row():
    return "MILC:8^4"


def test_every_byte_of_the_demo_is_checked(spinloom):
    ran = spinloom("simulate", "--demo", "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert {row["application"] for row in rows} == {row.application for row in workloads.demo()}
    ran_rows = [row for row in rows if row["status"] != "unsupported"]
    assert all(row["checked"] is True and row["time_ps"] > 0 for row in ran_rows)
    for row in ran_rows:
        expected = workloads.row(row["application"], row["datatype"])
        assert row["size_bytes"] == expected.size_bytes
        slack = 0.01 * expected.blocks_per_packet if "rand(" in expected.type else 0.005
        assert row["blocks_per_packet"] == pytest.approx(expected.blocks_per_packet, abs=slack)
        assert set(row) <= set(results.COLUMNS), "spinloom info columns must explain every column"
    assert {row["strategy"] for row in ran_rows} >= {"host-mpitypes", "seek", "rw-cp"}


@pytest.mark.parametrize("kind", ["flip", "skip", "stray"])
def test_injected_damage_is_found(spinloom, row, kind):
    ran = spinloom("simulate", row, "--inject", kind, "--json")
    assert ran.code == 1
    rows = json.loads(ran.out)["rows"]
    assert all(
        row["checked"] is False and row["time_ps"] is None for row in rows if row["status"] != "unsupported"
    )
    assert "offset" in ran.err


def test_the_same_seed_gives_the_same_hash(spinloom, row):
    arguments = ("simulate", row, "--json", "--order", "window:4", "--seed", "3")
    first, second = (json.loads(spinloom(*arguments).out)["result_hash"] for _ in range(2))
    assert first == second


def test_one_picosecond_of_the_profile_changes_the_hash(spinloom, row, tmp_path):
    text = (data.folder("nics") / "sc19-slingshot.toml").read_text()
    other = tmp_path / "sc19-slingshot.toml"
    hashes = set()
    for wire in ("33.4 ns", "33.401 ns"):
        other.write_text(text.replace('wire = { value = "33.4 ns"', f'wire = {{ value = "{wire}"'))
        hashes.add(json.loads(spinloom("simulate", row, "--json", "--nic", str(other)).out)["result_hash"])
    assert len(hashes) == 2


def test_an_unexpected_message_gains_nothing(spinloom, row):
    ran = spinloom("simulate", row, "--json", "--unexpected", "--strategies", "seek")
    assert ran.code == 0, ran.err
    seek = json.loads(ran.out)["rows"][-1]
    assert seek["checked"] is True
    assert seek["speedup"] <= 1.01


def test_packets_out_of_order_leave_the_same_bytes(spinloom, row):
    ran = spinloom("simulate", row, "--json", "--order", "window:6", "--strategies", "seek")
    assert ran.code == 0, ran.err
    assert all(each["checked"] is True for each in json.loads(ran.out)["rows"])
