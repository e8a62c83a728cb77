"""Pings and SLMP messages to a simulated Ethernet NIC: every input has a source, results follow from it."""

from __future__ import annotations

import pytest

from conftest import needs_engine
from spinloom.common import core, data
from spinloom.common.errors import Trouble
from spinloom.nics import profiles
from spinloom.papers import lab, observe_frames, stations
from spinloom.papers.observe_frames import COMPLEX, SEEK, SEGMENT, SIMPLE

NIC = "fpspin-vcu1525"


@pytest.fixture(scope="module")
def bench():
    return stations.Bench(core.load(), lab.profile_of(NIC), data.handler_images())


def test_every_number_has_a_label_and_a_source():
    for name, number in stations.numbers().items():
        assert number.label in profiles.LABELS, name
        assert number.source.strip(), name
        assert number.value > 0, name


@needs_engine
def test_the_host_answers_in_the_measured_time(bench):
    # T = measured + two cables, matching, two crossings of PCIe and a read by the NIC.
    for protocol in ("icmp", "udp"):
        beyond = bench.ping(protocol, "host", 16)["round_trip_ps"] - stations.station(f"ping.{protocol}")
        assert 0 < beyond < 1_500_000


@needs_engine
@pytest.mark.parametrize("nic", [NIC, "pspin-rtl"])
def test_the_nic_answers_before_the_host_and_with_its_help_between(nic):
    bench = stations.Bench(core.load(), lab.profile_of(nic), data.handler_images())
    host, alone, both = (bench.ping("udp", way, 16)["round_trip_ps"] for way in ("host", "nic", "both"))
    assert alone < both < host


@needs_engine
def test_the_same_ping_twice_takes_the_same_time(bench):
    assert bench.ping("icmp", "both", 516) == bench.ping("icmp", "both", 516)


@needs_engine
def test_an_unknown_way_is_told(bench):
    with pytest.raises(Trouble, match="there are host, nic and both"):
        bench.ping("udp", "nobody", 16)


@needs_engine
@pytest.mark.parametrize("image", [SEGMENT, SEEK])
@pytest.mark.parametrize("type_text", [SIMPLE, COMPLEX])
def test_throughput_grows_with_the_messages(bench, type_text, image):
    one, four = (bench.slmp(type_text, 1, messages, image) for messages in (1, 4))
    assert one["compared"]
    assert four["compared"]
    assert four["packets"] == 4 * one["packets"]
    assert four["time_ps"] < 1.1 * one["time_ps"]


@needs_engine
def test_a_host_that_computes_polls_few_times(bench):
    ran = bench.overlapped(SIMPLE, 1, 4, SEGMENT)
    assert ran["compared"]
    assert ran["alone_ps"] <= ran["time_ps"] < 1.2 * ran["alone_ps"]
    assert ran["polls"] <= stations.station("host.polls") + 2
    assert observe_frames.overlap_percent(ran) > 92


@needs_engine
def test_lost_packets_leave_no_time(bench):
    lost = bench.slmp(SIMPLE, 8, 1, SEEK, window=600, send=500_000)
    assert lost["lost"] > 0
    assert lost["time_ps"] is None
    assert not lost["compared"]
