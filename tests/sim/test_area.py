"""Area and power: the paper's own numbers for its own configuration, scaled for others."""

from __future__ import annotations

import json

import pytest

from spinloom.common.errors import Trouble
from spinloom.nics import area, profiles


def test_the_papers_configuration_has_the_papers_numbers():
    found = area.estimate(profiles.load("pulp-22nm"))
    assert found.mge == pytest.approx(100, rel=0.001)
    assert found.mm2 == pytest.approx(23.5, rel=0.01)
    assert found.watts == pytest.approx(6, rel=0.001)
    by_name = {part.name: part.mge for part in found.parts}
    assert by_name["L2"] == pytest.approx(59)
    clusters = sum(by_name[name] for name in ("cores", "L1", "instruction caches", "DMA engines"))
    assert clusters == pytest.approx(39)
    assert found.mm2 / area.OTHER_NIC_MM2 == pytest.approx(0.45, abs=0.02)


def test_twice_the_clusters_and_memory_fit_the_other_nics_area():
    """The paper: 64 cores and 18 MiB with a similar budget as on the other NIC's processors, 51 mm^2."""
    profile = profiles.changed(
        profiles.load("pulp-22nm"),
        [
            ("pulp.clusters", "8"),
            ("hpu.count", "64"),
            ("memory.state_bytes", "5 MiB"),
            ("memory.packet_buffer_bytes", "5 MiB"),
        ],
    )
    found = area.estimate(profile)
    assert 18 == 8 + 10  # MiB: L1 of eight clusters, and L2
    assert 35 < found.mm2 <= area.OTHER_NIC_MM2


def test_half_the_clock_is_half_the_power():
    slow = area.estimate(profiles.changed(profiles.load("pulp-22nm"), [("hpu.clock", "500 MHz")]))
    assert slow.watts == pytest.approx(3, rel=0.001)
    assert slow.mm2 == area.estimate(profiles.load("pulp-22nm")).mm2


def test_nics_prints_it_as_an_estimate(spinloom):
    ran = spinloom("info", "nics", "pulp-22nm", "--area")
    assert ran.code == 0
    assert "estimate" in ran.out
    assert "23.4 mm2" in ran.out
    assert "6.0 W" in ran.out
    rows = json.loads(spinloom("info", "nics", "pulp-22nm", "--area", "--json").out)
    assert sum(row["mge"] for row in rows) == pytest.approx(100, rel=0.001)


def test_other_cores_have_none(spinloom):
    with pytest.raises(Trouble, match="a15 cores"):
        area.estimate(profiles.load("sc19-slingshot"))
    ran = spinloom("info", "nics", "sc19-slingshot", "--area")
    assert ran.code == 2
    assert "such as those of pulp-22nm" in ran.err
    assert spinloom("info", "nics", "--area").code == 2
