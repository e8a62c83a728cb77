"""Several NICs of a live rank: all bytes, rails that are unplugged, wrong settings."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import launchers
from machines import Machines, machines, why_not, why_not_shaped
from patience import seconds
from shaped_rails import BENCH, seconds_of_a_round
from test_live import answers_of, build, finished, pytestmark, run

__all__ = ["build", "pytestmark"]  # pytest finds them here

LIMIT_S = seconds(240)


@pytest.mark.parametrize(
    ("ranks", "rails"),
    [(2, ""), (2, "shm"), (3, "auto,auto"), (2, "shm,udp"), (3, "udp,udp,udp"), (2, ",".join(["auto"] * 8))],
)
def test_live_ranks_exchange_bytes(build, ranks, rails):
    settings = {"SPINLOOM_RAILS": rails} if rails else {}
    output = run("mpich", ranks, build("rails_traffic.c"), 5, 60, **settings)
    assert set(answers_of(output)) == set(range(ranks))


def test_live_ranks_exchange_bytes_over_lossy_rails(build):
    faults = "drop=0.01,duplicate=0.01,reorder=0.02,seed=3"
    output = run(
        "mpich", 2, build("rails_traffic.c"), 6, 40, SPINLOOM_RAILS="udp,udp", SPINLOOM_UDP_FAULTS=faults
    )
    assert set(answers_of(output)) == {0, 1}


@pytest.mark.parametrize("rails", ["", "udp,", "tcp", "udp=", "udp=nonsense", ",".join(["shm"] * 9)])
def test_wrong_lists_of_rails_are_told(build, rails):
    """One NIC then, as without the setting."""
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    done = finished(
        *launchers.available()["mpich"], "-n", 2, build("rails_traffic.c"), 5, 10, SPINLOOM_RAILS=rails
    )
    assert f"SPINLOOM_RAILS={rails}: it takes 1 to 8 of auto" in done.stderr
    assert set(answers_of(done.stdout)) == {0, 1}


def told(two: Machines, program: Path, said: dict[str, Callable[[], None]], *arguments: Path) -> list[str]:
    """What two ranks on two machines with two networks print; each line of `said` is answered by its deed."""
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    for index in range(2):
        two.cable(index, 1)
    started = subprocess.Popen(
        [*launchers.available()["mpich"], "-n", "2", two.rank_shell(1), program, *arguments],
        env={**os.environ, "SPINLOOM_RAILS": "udp=10.77.0.0/24,udp=10.77.1.0/24"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    for line in started.stdout:
        lines.append(line.rstrip("\n"))
        said.get(lines[-1], lambda: None)()
    assert started.wait(LIMIT_S) == 0, lines
    return lines


between_machines = pytest.mark.skipif(bool(why_not()), reason=why_not())


@between_machines
def test_fragments_of_an_unplugged_rail_go_by_the_other(build, tmp_path):
    with machines(tmp_path, 2) as two:
        lines = told(two, build("rails_loss.c"), {"going": lambda: two.unplug(1, 1)})
    assert "rank 0: 1 of 2 rails are left; fragments were not repeated" in lines
    assert "rank 1: 1 of 2 rails are left; fragments were repeated" in lines


@between_machines
def test_a_rail_that_comes_back_is_used_again(build, tmp_path):
    """A message waits for what was on it; nothing is repeated, and later ones use both rails."""

    there_again = tmp_path / "there-again"

    def pull_and_plug(two: Machines) -> None:
        two.ip("link", "set", "b1", "down")
        time.sleep(1.5)  # the time for which it is away
        two.ip("link", "set", "b1", "up")
        there_again.touch()

    with machines(tmp_path, 2) as two:
        lines = told(two, build("rails_return.c"), {"going": lambda: pull_and_plug(two)}, there_again)
    assert "back" in lines


@between_machines
def test_a_lost_rail_that_comes_back_is_used_again(build, tmp_path):
    with machines(tmp_path, 2) as two:
        deeds = {
            "going": lambda: two.unplug(1, 1),
            "lost": lambda: two.ip("link", "set", "b1", "up"),
        }
        lines = told(two, build("rails_again.c"), deeds)
    said = [line for line in lines if line in ("going", "lost", "again", "carried")]
    assert said == ["going", "lost", "again", "carried"]


@pytest.mark.skipif(bool(why_not_shaped()), reason=why_not_shaped())
def test_rails_add_up_the_speeds_of_their_networks(build):
    """Far slower networks than this machine: 2 and 1.5 times, less what begins and ends a message.

    A busy machine delays some rounds: one try of three within the bounds is enough.
    """
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    program = build(str(BENCH))
    tries = []
    for _ in range(3):
        alone, twice, unequal = (
            seconds_of_a_round(program, rates, 1, 3, 8 << 20) for rates in ((200,), (200, 200), (200, 100))
        )
        tries.append((alone / twice, alone / unequal))
        if 1.7 <= alone / twice <= 2.1 and 1.25 <= alone / unequal <= 1.6:
            return
    pytest.fail(f"times as quick over 200 + 200 and 200 + 100 Mbit/s as over 200, thrice: {tries}")
