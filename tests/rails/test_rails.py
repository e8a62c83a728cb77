"""Several NICs of a simulated rank: all bytes, bandwidth, latency, rails of unequal speed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from conftest import needs_engine

HERE = Path(__file__).resolve().parent
BENCH = HERE.parents[1] / "bench/rails_bandwidth.c"
NIC = "sc17-discrete"

pytestmark = [
    needs_engine,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.mark.parametrize(("ranks", "rails"), [(2, 1), (2, 2), (3, 3), (4, 2), (2, 8)])
def test_simulated_ranks_exchange_bytes(sim, ranks, rails):
    code, ran, said = sim(ranks, "--rails", rails, HERE / "rails_traffic.c", 1, 60)
    assert code == 0, said + ran["output"]
    assert sorted(re.findall(r"rank (\d): \d+ answers", ran["output"])) == [
        str(rank) for rank in range(ranks)
    ]


def bandwidths(sim, rails: list, matching: str, window: int, sizes: list[int]) -> dict[int, float]:
    """GB/s by message length, of modelled time."""
    count = 1 + sum(rail == "--rail" for rail in rails)
    if "--rails" in rails:
        count = int(rails[rails.index("--rails") + 1])
    code, ran, said = sim(2, *rails, BENCH, count, matching, window, 1, *sizes)
    assert code == 0, said
    rows = [line.split(",") for line in ran["output"].splitlines()]
    return {int(row[3]): float(row[5]) for row in rows}


@pytest.mark.parametrize("matching", ["tag", "word"])
def test_four_rails_carry_four_times_as_much(sim, matching):
    """MPC's four rails above 1 MB (D4.7, section 2.5): 3.8 times with 64 in flight, 3.5 with one."""
    many, one = [1_572_864, 2_097_152], [16_777_216]
    for window, sizes, least in ((64, many, 3.8), (1, one, 3.5)):
        single = bandwidths(sim, [], matching, window, sizes)
        four = bandwidths(sim, ["--rails", 4], matching, window, sizes)
        for bytes_ in sizes:
            assert least <= four[bytes_] / single[bytes_] <= 4, (matching, window, bytes_)


def test_short_messages_take_no_longer_over_many_rails(sim):
    sizes = [8, 1024, 8192]
    single = bandwidths(sim, [], "tag", 1, sizes)
    assert bandwidths(sim, ["--rails", 4], "tag", 1, sizes) == pytest.approx(single, rel=0.01)


def test_rails_of_unequal_speed_carry_what_each_can(sim, tmp_path):
    """With a second rail of a quarter of the speed: 1.25 times as much, less one fragment at the end."""
    shipped = (HERE.parents[1] / f"data/nics/{NIC}.toml").read_text(encoding="utf-8")
    slow = tmp_path / "slow.toml"
    lines = shipped.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("byte_time") and "20" in line)
    lines[at] = lines[at].replace("20", "80", 1)
    slow.write_text("\n".join(lines) + "\n", encoding="utf-8")
    single = bandwidths(sim, [], "tag", 1, [33_554_432])
    both = bandwidths(sim, ["--rail", str(slow)], "tag", 1, [33_554_432])
    assert 1.15 <= both[33_554_432] / single[33_554_432] <= 1.25


def test_too_many_rails_are_refused(sim):
    code, _, said = sim(2, *["--rail", NIC] * 8, HERE / "rails_traffic.c")
    assert code != 0
    assert "at most 8" in said
