"""Application rows against the engine's own description of their datatypes."""

import math

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import workloads

ROWS = [row for application in workloads.applications() for row in application.rows]
PACKET_BYTES = 2048


def name(row):
    return f"{row.application}-{row.datatype}".replace(" ", "_")


def test_rows_have_one_name_each():
    names = [name(row) for row in ROWS]
    assert len(names) == len(set(names))


def test_the_demo_names_rows_that_exist():
    assert len({row.application for row in workloads.demo()}) == len(workloads.demo()) == 13


def test_the_demo_follows_its_rule():
    """Each application's size that is nearest to 256 KiB (the first or the larger N of equally near ones)."""
    for row in workloads.demo():
        sizes = [abs(other.size_bytes - (256 << 10)) for other in workloads.application(row.application).rows]
        assert abs(row.size_bytes - (256 << 10)) == min(sizes)


def test_the_papers_rows_are_all_rows():
    every = [row for application in workloads.applications() for row in application.rows]
    assert workloads.paper() == every


@pytest.mark.parametrize("text", ["MLIC", "WRF", "lammps_fulll"])
def test_an_unknown_application_is_answered_with_the_nearest(text):
    with pytest.raises(Trouble, match="did you mean"):
        workloads.application(text)


@needs_engine
@pytest.mark.parametrize("row", ROWS, ids=name)
def test_row_is_what_its_source_says(row):
    described = core.load().describe(row.type)
    size, blocks = described["size_bytes"] * row.count, described["blocks"] * row.count
    assert size == row.size_bytes
    # Every cut between two packets adds one block to the sum over packets, or none when it falls
    # between two blocks. Lists of random indices merge a little, differently for each seed.
    packets = math.ceil(size / PACKET_BYTES)
    slack = 0.01 if "rand(" in row.type else 0.0
    low, high = blocks / packets, (blocks + packets - 1) / packets
    assert low * (1 - slack) - 0.005 <= row.blocks_per_packet <= high * (1 + slack) + 0.005


@needs_engine
@pytest.mark.parametrize("row", workloads.demo(), ids=name)
def test_the_printed_text_is_the_same_type(row):
    described = core.load().describe(row.type)
    assert core.load().describe(described["text"]) == described
