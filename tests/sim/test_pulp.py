"""Clustered NICs: section 4.3 of the SC'19 datatypes paper, slices, and cycles by function."""

from __future__ import annotations

import pytest

from conftest import needs_engine
from spinloom.common import core, data
from spinloom.nics import profiles

pytestmark = needs_engine

MESSAGE_BYTES = 1 << 20
HPUS = 32


@pytest.fixture(scope="module")
def engine():
    return core.load()


def config(profile: str, block_bytes: int, **changes):
    """1 MiB of blocks with a stride of two blocks."""
    return {
        "type": f"hvector({MESSAGE_BYTES // block_bytes}, {block_bytes}, {2 * block_bytes}B, byte)",
        "count": 1,
        "strategy": "rw-cp",
        "profile": profiles.load(profile).native(),
        "images": data.handler_images(),
        "hpus": HPUS,
        "mtu": 2048,
        "order": "in",
        "seed": 1,
        "inject": "none",
        **changes,
    }


def gbit_per_s(transferred: int, time_ps: int) -> float:
    return transferred * 8 * 1000 / time_ps


@pytest.mark.parametrize(
    ("block_bytes", "least", "most"), [(256, 180, 200), (512, 200, 256), (4096, 200, 256), (131072, 200, 256)]
)
def test_blocks_reach_the_host_as_fast_as_in_figure_9c(engine, block_bytes, least, most):
    """192 Gbit/s at 256 B, above line rate from there; never more than four engines of 64 bit a cycle."""
    row = engine.nic_bandwidth(profiles.load("pulp-22nm").native(), block_bytes)
    assert row["checked"]
    assert least <= gbit_per_s(row["bytes"], row["time_ps"]) <= most


def test_pspin_is_bound_by_its_port(engine):
    """512 bit a cycle at 1 GHz (public PsPIN RTL: 512 Gbit/s from 512 B)."""
    row = engine.nic_bandwidth(profiles.load("pspin-rtl").native(), 1024)
    assert 500 <= gbit_per_s(row["bytes"], row["time_ps"]) <= 512


def test_bandwidth_needs_clusters(engine):
    with pytest.raises(engine.SpinloomError, match=r"pulp\.packets L1"):
        engine.nic_bandwidth(profiles.load("sc19-slingshot").native(), 256)


def preloaded_row(engine, block_bytes: int):
    return engine.run_cell(config("pulp-22nm", block_bytes, preloaded=True, interval_packets=4))


@pytest.mark.parametrize("block_bytes", [512, 1024, 2048])
def test_rw_cp_is_at_line_rate_above_256_byte_blocks(engine, block_bytes):
    """Figure 10: packets wait in L2, four in a row on a core; the line does not cap the rate."""
    row = preloaded_row(engine, block_bytes)
    assert row["interval_packets"] == 4
    assert row["processing_time_ps"] <= row["line_time_ps"]


def test_rw_cp_falls_behind_with_small_blocks(engine):
    """Figure 10: below 256 B blocks the engines and the handlers are slower than the line."""
    times = [
        preloaded_row(engine, block_bytes)["processing_time_ps"] for block_bytes in (32, 64, 128, 256, 512)
    ]
    assert times == sorted(times, reverse=True)
    assert times[2] > preloaded_row(engine, 128)["line_time_ps"]


@pytest.mark.parametrize("profile", ["pulp-22nm", "pspin-rtl"])
@pytest.mark.parametrize("strategy", ["specialised", "rw-cp", "seek"])
def test_results_do_not_depend_on_the_slice(engine, profile, strategy):
    rows = [
        engine.run_cell(config(profile, 64, strategy=strategy, order=8, slice_cycles=cycles, type=datatype))
        for datatype in ("indexed([3 x 2, 0 x 1, 40 x 9, 17 x 5], int)", "vector(64, 3, 7, double)")
        for cycles in (64, 256, 1024)
    ]
    assert rows[0] == rows[1] == rows[2]
    assert rows[3] == rows[4] == rows[5]


@pytest.mark.parametrize("profile", ["sc19-slingshot", "pulp-22nm"])
def test_cycles_by_function_add_up(engine, profile):
    plain = engine.run_cell(config(profile, 128))
    row = engine.run_cell(config(profile, 128, profile_handlers=True))
    functions = row.pop("function_cycles")
    assert row == plain, "counting changes nothing"
    completion = functions.pop("completion_handler")
    assert completion > 0
    assert sum(functions.values()) == round(row["handler_cycles_per_packet"] * row["packets"])


@pytest.mark.parametrize("profile", profiles.names())
def test_every_profile_runs_every_strategy(engine, profile):
    native = profiles.load(profile).native()
    nic = {"hpus": native["hpu.count"], "mtu": native["link.payload"]}
    for strategy in ("host-mpitypes", "specialised", "rw-cp", "seek"):
        row = engine.run_cell(config(profile, 512, strategy=strategy, **nic))
        assert row["checked"]
        assert row["time_ps"] > row["line_time_ps"]
