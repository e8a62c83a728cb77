"""`spinloom calibrate host`: predictions and measurements of the demo's datatypes."""

from __future__ import annotations

import json

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.nics import profiles, workloads
from spinloom.verbs import calibrate_host

pytestmark = needs_engine


def test_compares_every_datatype_of_the_demo(spinloom):
    ran = spinloom("calibrate", "host", "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)
    assert [row["application"] for row in rows] == [row.application for row in workloads.demo()]
    for row in rows:
        assert row["measured_ns"] > 0
        assert row["model_ns"] < row["model_slower_lines_ns"]
        assert row["model_ns"] < row["model_dearer_blocks_ns"]
        assert row["within"] == (abs(row["here_ns"] / row["measured_ns"] - 1) <= calibrate_host.WITHIN)


def test_the_prediction_is_the_sum_of_its_parts():
    """32 blocks of 48 lines, 720 lines between them. Packed: one line scattered, then a stream. Array: the
    first block and the first jump come without warning, the other jumps are regular. L = 67 ns, Q = 16, 10,
    5; no line is lost or evicted; a block of a vector takes 3 cycles."""
    profile = profiles.load("sc19-slingshot")
    said = core.load().predict_host_unpack(profile.native(), "hvector(32, 3072, 49152B, byte)", 1)
    assert (said["vector_blocks"], said["list_blocks"]) == (32, 0)
    assert said["lines_scattered"] == 1 + 2
    assert said["lines_strided"] == 30
    assert said["lines_streamed"] == 2 * 32 * 48 - 33
    assert said["lines_evicted"] == said["lines_refilled"] == 0
    lines_ns = 67 * (1 + said["lines_streamed"] / 16 + 30 / 10 + 3 / 5)
    assert said["lines_ps"] == pytest.approx(1000 * lines_ns, abs=3)
    assert said["blocks_ps"] == pytest.approx(1000 * 32 * 3 / 3.4, abs=1)
    assert said["time_ps"] == said["lines_ps"] + said["blocks_ps"]


def test_bad_input_is_an_error():
    engine = core.load()
    with pytest.raises(engine.SpinloomError, match="repetitions"):
        engine.measure_host_unpack("double", 1, 0)
    with pytest.raises(engine.SpinloomError, match="line 1"):
        engine.predict_host_unpack(profiles.load("sc19-slingshot").native(), "vector(", 1)
