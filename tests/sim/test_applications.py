"""Whole programs as skeletons: `spinloom paper study applications` and `fft2d`."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics.machines import machine
from spinloom.papers import studies
from spinloom.papers.lab import Lab
from spinloom.predict import applications

pytestmark = needs_engine

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "applications.csv"


def test_every_program_is_as_it_was():
    """The golden table, of spinloom paper study applications --csv."""
    study = studies.studies()["applications"]
    lab = Lab(2)
    lab.run(studies.probes(study))
    rows = studies.rows(study, lab)
    expected = list(csv.DictReader(io.StringIO(GOLDEN.read_text(encoding="utf-8"))))
    told = [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]
    assert told == expected
    assert all(row["input"] == "generated" for row in rows)


@pytest.mark.parametrize("name", list(applications.all_applications()))
def test_messages_have_the_share_that_the_paper_states(name):
    # T = compute + messages + all-reduces; share = messages / T: within the rounding of the last guess
    bench = applications.Bench(machine("sc17-discrete"))
    made = applications.program(name)
    share = applications.all_applications()[name].share
    compute_ns = bench.compute_ns(made, share)
    host = (applications.BASELINE,)
    (only,) = bench.run(made.ranks, made.messages_only(compute_ns), made.steps, host)
    (whole,) = bench.run(made.ranks, made.step(compute_ns), made.steps, host)
    messages = Fraction(only.time_ps - compute_ns * 1000 * made.steps, whole.time_ps)
    assert abs(messages - share) < share / 50


def test_an_fft_moves_its_matrix_twice():
    # each rank sends all but its own part of its rows, in each of two transpositions
    ranks = 32
    recording = core.load().skeleton_recording(ranks, applications.fft2d_step(ranks, 0), 1, [])
    uses = recording.layouts()
    rows = applications.FFT2D_SIDE // ranks
    assert {use["bytes"] for use in uses} == {16 * rows * rows}
    assert {use["messages"] for use in uses} == {2 * ranks * (ranks - 1)}
    assert {use["copies"] for use in uses} == {2 * ranks}


def test_an_fft_is_faster_where_the_nic_transposes_and_less_so_on_more_ranks():
    study = replace(studies.studies()["fft2d"], ranks=(64, 256))
    lab = Lab(2)
    lab.run(studies.probes(study))
    gains = [row["gain_percent"] for row in studies.rows(study, lab) if row["way"] == study.ways[-1]]
    assert 15 < gains[0] < 40
    assert 0 < gains[1] < gains[0]


def test_what_is_no_program_is_told():
    with pytest.raises(Trouble, match="there is no application 'MILK'; did you mean 'MILC'"):
        applications.program("MILK")
    with pytest.raises(Trouble, match="20480 rows are not divided"):
        applications.fft2d_step(7, 0)
    with pytest.raises(Trouble, match="MILC has 64 ranks here, not 8"):
        applications.program("MILC", 8)
    with pytest.raises(core.load().SpinloomError, match="there is no step 'sleep'"):
        core.load().skeleton_recording(2, [{"kind": "sleep"}], 1, [])
