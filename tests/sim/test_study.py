"""`spinloom paper study`: the SC'17 sPIN paper's small experiments."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import core
from spinloom.nics import profiles
from spinloom.papers import studies
from spinloom.papers.lab import Lab
from study_cells import cell

pytestmark = needs_engine

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "studies.csv"
MESSAGES = [
    study
    for study in studies.studies().values()
    if not (
        study.applications
        or study.mixes
        or study.networks
        or study.recorded
        or study.operations
        or study.station
    )
]


def config(experiment: str, way: str, size_bytes: int, nic: str = "sc17-discrete", **more):
    return cell(profiles.load(nic), experiment, way, size_bytes, **more)


@pytest.fixture(scope="module")
def laboratory():
    lab = Lab(2)
    lab.run([probe for study in MESSAGES for probe in studies.probes(study)])
    return lab


def test_every_point_is_as_it_was(laboratory):
    """The golden table, of `spinloom paper study NAME --csv` for each study of messages."""
    rows = [row for study in MESSAGES for row in studies.rows(study, laboratory)]
    expected = list(csv.DictReader(io.StringIO(GOLDEN.read_text(encoding="utf-8"))))
    assert [{key: str(value) for key, value in row.items()} for row in rows] == expected


@pytest.mark.parametrize("nic", ["sc17-discrete", "sc17-integrated"])
def test_each_way_crosses_pcie_as_often_as_it_must(nic):
    engine = core.load()
    times = {way: engine.run_study(config("pingpong", way, 64, nic))["time_ps"] for way in studies.WAYS}
    latency = profiles.load(nic)["pcie.latency"]
    # Half a round trip: the host's way adds the counter's write to it and the command back, one latency each.
    assert times["rdma"] - times["portals4"] > latency
    assert times["stream"] < times["portals4"] < times["rdma"]
    assert times["store"] > times["stream"]


@pytest.mark.parametrize("way", list(studies.WAYS))
@pytest.mark.parametrize("size_bytes", [1, 7, 4095, 4096, 4097, 12289])
def test_ping_pong_returns_every_byte_at_odd_sizes(way, size_bytes):
    assert core.load().run_study(config("pingpong", way, size_bytes))["checked"]


@pytest.mark.parametrize("size_bytes", [16, 4080, 4096, 4112, 40960])
@pytest.mark.parametrize("hpus", [1, 3])
def test_accumulate_is_right_at_odd_sizes(size_bytes, hpus):
    result = core.load().run_study(config("accumulate", "stream", size_bytes, hpus=hpus))
    assert result["handlers"] == -(-size_bytes // 4096)


@pytest.mark.parametrize("field", ["a15.float_multiply", "a15.float_add"])
def test_the_latencies_of_floating_point_are_those_of_the_profile(field):
    profile = profiles.changed(profiles.load("sc17-discrete"), [(field, "40 cycles")])
    dear, plain = (
        core.load().run_study({**config("accumulate", "stream", 4096), **more})["handler_cycles"]
        for more in ({"profile": profile.native()}, {})
    )
    assert dear > 1.5 * plain


@pytest.mark.parametrize("way", list(studies.WAYS))
@pytest.mark.parametrize("ranks", [2, 3, 7, 13, 32])
@pytest.mark.parametrize("size_bytes", [1, 4097, 20000])
def test_a_broadcast_reaches_every_rank_whatever_their_number(way, ranks, size_bytes):
    assert core.load().run_study(config("broadcast", way, size_bytes, ranks=ranks))["checked"]


@pytest.mark.parametrize("way", ["rdma", "portals4", "stream"])
@pytest.mark.parametrize("size_bytes", [1, 3, 4, 30, 4096, 16385, 4 * 4096 + 12, 100003])
@pytest.mark.parametrize("offset", [0, 1, 4093])
def test_raid_stores_and_protects_every_byte_at_odd_sizes_and_places(way, size_bytes, offset):
    """Blocks and parity are compared; stream reads every piece back through handlers, too."""
    config_of = config("raid", way, size_bytes, offset=offset)
    assert core.load().run_study(config_of)["checked"]


@pytest.mark.parametrize("hpus", [1, 2, 16])
def test_raid_deltas_for_the_same_bytes_never_lose_one_another(hpus):
    """Pieces of less than a packet: the four deltas are at the parity node's handlers at the same time."""
    for size_bytes in (64, 4096, 16384, 65536):
        assert core.load().run_study(config("raid", "stream", size_bytes, hpus=hpus, offset=2000))["checked"]


def test_a_binomial_tree_is_logarithmic():
    """T(p) grows by one forward a doubling: from 4 to 16 ranks (one switch) as much as twice from 2 to 4."""
    engine = core.load()
    times = {
        ranks: engine.run_study(config("broadcast", "stream", 8, ranks=ranks))["time_ps"]
        for ranks in (4, 8, 16)
    }
    assert times[16] - times[8] == pytest.approx(times[8] - times[4], rel=0.1)


def test_packets_out_of_order_change_no_byte():
    for way in ("store", "stream"):
        assert core.load().run_study(config("pingpong", way, 1 << 16, order="all:8"))["checked"]
        assert core.load().run_study(config("broadcast", way, 1 << 16, order="all:8", ranks=6))["checked"]
    assert core.load().run_study(config("accumulate", "stream", 1 << 16, order="all:8"))["checked"]
    assert core.load().run_study(config("raid", "stream", 1 << 18, order="all:8", offset=7))["checked"]


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"bytes": 0}, "unsupported", "zero bytes"),
        ({"experiment": "accumulate", "bytes": 24}, "invalid", "16 B"),
        ({"experiment": "accumulate", "way": "store", "bytes": 16}, "unsupported", "rdma or stream"),
        ({"experiment": "juggle"}, "invalid", "broadcast, raid and raid-read"),
        ({"way": "pigeon"}, "invalid", "rdma, portals4"),
        ({"experiment": "broadcast", "ranks": 1}, "invalid", "2 to"),
        ({"experiment": "broadcast", "ranks": 5000}, "invalid", "4096"),
        ({"images": {}, "way": "stream"}, "environment", "pingpong"),
        ({"experiment": "raid", "way": "store"}, "unsupported", "portals4 or stream"),
    ],
)
def test_what_cannot_be_is_an_error(changes, code, message):
    engine = core.load()
    with pytest.raises(engine.SpinloomError, match=message) as raised:
        engine.run_study({**config("pingpong", "rdma", 8), **changes})
    assert raised.value.code == code


def test_a_nic_without_floating_point_refuses_to_accumulate():
    """Its other handlers run: an image is refused where a context asks for it."""
    engine = core.load()
    with pytest.raises(engine.SpinloomError, match=r"cores with floating point.*a15") as raised:
        engine.run_study(config("accumulate", "stream", 4096, nic="pulp-22nm"))
    assert raised.value.code == "unsupported"
    assert engine.run_study(config("pingpong", "stream", 4096, nic="pulp-22nm"))["checked"]


def test_the_command_writes_a_table_and_a_plot(spinloom, tmp_path):
    ran = spinloom("paper", "study", "accumulate", "--json", "--out", str(tmp_path), "--quiet")
    assert ran.code == 0, ran.err
    printed = json.loads(ran.out)
    written = list(csv.DictReader((tmp_path / "accumulate.csv").open(encoding="utf-8")))
    assert [{key: str(value) for key, value in row.items()} for row in printed] == written
    assert (tmp_path / "accumulate.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    "verb", [("paper", "study", "pingpong"), ("paper", "figure", "8", "--out", "nowhere")]
)
def test_the_papers_nics_stay(spinloom, verb):
    ran = spinloom(*verb, "--nic", "sc19-slingshot")
    assert ran.code == 2
    assert f"spinloom paper {verb[1]} has no --nic: its NICs are the papers'" in ran.err


def test_an_unknown_study_names_the_nearest(spinloom):
    ran = spinloom("paper", "study", "pingpon")
    assert ran.code == 2
    assert "pingpong" in ran.err
