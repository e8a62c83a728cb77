"""`spinloom hostmodel`: predictions and measurements of the demo's datatypes."""

from __future__ import annotations

import json

import pytest

from conftest import needs_engine
from spinloom import core, profiles, workloads
from spinloom.verbs import hostmodel

pytestmark = needs_engine


def test_compares_every_datatype_of_the_demo(spinloom):
    ran = spinloom("hostmodel", "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)
    assert [row["application"] for row in rows] == [row.application for row in workloads.demo()]
    for row in rows:
        assert row["measured_ns"] > 0
        assert row["model_ns"] < row["model_slower_copy_ns"]
        assert row["model_ns"] < row["model_dearer_block_ns"]
        assert row["within"] == (abs(row["here_ns"] / row["measured_ns"] - 1) <= hostmodel.WITHIN)


def test_the_prediction_is_lines_over_rate_plus_blocks():
    """T = lines * 64 B / 15 GB/s + blocks * 10 cycles / 3.4 GHz: 32 blocks of 3 KiB on their own lines."""
    profile = profiles.load("sc19-slingshot")
    said = core.load().predict_host_unpack(profile.native(), "hvector(32, 3072, 49152B, byte)", 1)
    assert said["blocks"] == 32
    assert said["lines"] == 3 * 32 * 3072 // 64  # read, fetched for writing, written back
    expected_ps = said["lines"] * 64 * 1000 / 15 + 32 * 10 * 1000 / 3.4
    assert said["time_ps"] == pytest.approx(expected_ps, abs=2)


def test_bad_input_is_an_error():
    engine = core.load()
    with pytest.raises(engine.SpinloomError, match="repetitions"):
        engine.measure_host_unpack("double", 1, 0)
    with pytest.raises(engine.SpinloomError, match="line 1"):
        engine.predict_host_unpack(profiles.load("sc19-slingshot").native(), "vector(", 1)
