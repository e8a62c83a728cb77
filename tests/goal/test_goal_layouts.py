"""`spinloom goal --layout STRATEGY`: handlers on NICs move layouts, at a price found once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spinloom.common import core
from spinloom.nics import layout_prices, machines
from spinloom.predict import goal_layouts

JACOBI = Path(__file__).parents[1] / "predict" / "jacobi"
NIC = ("--nic", "sc19-slingshot")


@pytest.fixture(scope="module")
def machine():
    return machines.machine("sc19-slingshot")


@pytest.fixture
def jacobi(spinloom, tmp_path):
    path = tmp_path / "jacobi.spl"
    assert spinloom("predict", str(JACOBI), "--goal", str(path)).code == 0
    return path


def ends(spinloom, path, *options):
    ran = spinloom("goal", str(path), *NIC, *options, "--json")
    assert ran.code == 0, ran.err
    return [row["finish_ps"] for row in json.loads(ran.out)]


def test_each_message_pays_the_price_of_a_simulated_one(spinloom, jacobi, machine):
    # One send and one receive of the schedule's own layouts: T = T(no layout) + gather + scatter.
    schedule = core.load().read_goal(jacobi.read_bytes())
    uses = core.load().layout_uses(schedule)
    assert uses
    made = goal_layouts.on_nics(schedule, machine, "rw-cp", 1000)
    assert made.simulated > 0
    cells = layout_prices.Cells(machine, layout_prices.ResultStore(None))
    wanted = [
        layout_prices.Use(one["layout"], one["count"], one["side"], one["type"], one["bytes"], 1, 0)
        for one in uses
    ]
    prices = layout_prices.price(wanted, cells, ["rw-cp"], 1000, 1, lambda: None).nic["rw-cp"]
    received = [prices[use].nic_ps for use in wanted if use.side == "receive"]
    assert max(received) > 0
    plain = ends(spinloom, jacobi)
    with_handlers = ends(spinloom, jacobi, "--layout", "rw-cp")
    assert max(with_handlers) >= max(plain) + max(received)


def test_what_repeats_uses_its_layouts_each_time(jacobi):
    # messages(n passes) = n messages(one pass)
    once = core.load().read_goal(jacobi.read_bytes())
    uses = core.load().layout_uses(once)
    again = core.load().layout_uses(once.repeated(3))
    assert [one["messages"] for one in again] == [3 * one["messages"] for one in uses]


@pytest.mark.parametrize("fidelity", ["message", "nic", "full"])
def test_prices_are_remembered(spinloom, jacobi, tmp_path, fidelity):
    options = ("--layout", "specialised", "--prices", str(tmp_path / "prices.json"), "--fidelity", fidelity)
    first = spinloom("goal", str(jacobi), *NIC, *options)
    assert first.code == 0, first.err
    assert "0 remembered" in first.out
    again = spinloom("goal", str(jacobi), *NIC, *options)
    assert " 0 messages simulated" in again.out
    assert ends(spinloom, jacobi, *options) == ends(
        spinloom, jacobi, "--layout", "specialised", "--fidelity", fidelity
    )


def test_nobody_computes_for_what_nics_do(spinloom, jacobi):
    # Of the CPUs' time only computations of the file count, at whatever price.
    def computed(*options):
        ran = spinloom("goal", str(jacobi), *NIC, *options, "--json")
        return [row["compute_ps"] for row in json.loads(ran.out)]

    assert computed("--layout", "seek") == computed()


def test_handlers_are_for_ranks_of_two_fidelities_too(spinloom, jacobi):
    assert ends(spinloom, jacobi, "--layout", "rw-cp", "--full-ranks", "0-3") == ends(
        spinloom, jacobi, "--layout", "rw-cp", "--fidelity", "full"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--layout", "rw-cp"), "--layout rw-cp: name the NIC"),
        ((*NIC, "--layout", "rw-cp", "--noise", "1us/1ms"), "--noise does not know of NICs' work"),
        ((*NIC, "--prices", "p.json"), "--prices: name a strategy"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(spinloom, jacobi, options, said):
    ran = spinloom("goal", str(jacobi), *options)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_schedule_without_layouts_has_no_use_for_handlers(spinloom, tmp_path):
    path = tmp_path / "one.goal"
    path.write_text("num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n")
    ran = spinloom("goal", str(path), *NIC, "--layout", "seek")
    assert ran.code == 2
    assert "has no layouts" in ran.err
