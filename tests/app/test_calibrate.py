"""`spinloom calibrate` over a stand-in for the measurements: kept passes, time, noise."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from conftest import needs_engine
from spinloom.accelerate import calibration, copy_model
from spinloom.common import core

pytestmark = needs_engine


@pytest.fixture(autouse=True)
def few_benches(tmp_path, monkeypatch):
    """A cache of its own, and enough datatypes for prices of every shape."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    every = list(calibration.benches(calibration.caches()))
    chosen = [bench for bench in every if bench.price is not None and bench.price[1] in (16, 64)]
    monkeypatch.setattr(calibration, "benches", lambda levels: iter(chosen))


class Machine:
    """Answers each measurement at once, in the time that pass(number) says; remembers what was asked."""

    def __init__(self, monkeypatch, speed=lambda number: 1.0) -> None:
        self.asked, self.checked, self.speed, self.dies_at = 0, 0, speed, None
        monkeypatch.setattr(core.load(), "probe_copy", self.probe)

    @property
    def a_pass(self) -> int:
        return calibration.step_count(1) * len(copy_model.MOVEMENTS)

    def probe(self, text, elements, movement, samples, checked):
        if self.asked == self.dies_at:
            raise KeyboardInterrupt
        self.asked += 1
        self.checked += checked
        fastest = (100.0 + len(text)) * self.speed((self.asked - 1) // self.a_pass)
        return [fastest * (1 + i) for i in range(samples)]


def kept() -> calibration.Passes:
    chosen = list(calibration.benches(calibration.caches()))
    where = calibration.partial_path(calibration.path())
    return calibration.Passes(copy_model.MOVEMENTS, calibration.messages_of(chosen), where)


def test_what_was_measured_is_kept_and_gone_on_behind(spinloom, monkeypatch):
    machine = Machine(monkeypatch)
    machine.dies_at = 2 * machine.a_pass + 5
    with pytest.raises(KeyboardInterrupt):
        calibration.measure(5, partial=calibration.partial_path(calibration.path()))
    assert kept().done == 2
    machine.dies_at = None
    ran = spinloom("calibrate", "--json")
    assert ran.code == 0, ran.err
    assert "2 rounds of an earlier call" in ran.err
    assert machine.asked == 5 * machine.a_pass + 5  # the third round began anew
    assert machine.checked == machine.a_pass  # the bytes, once
    assert calibration.load()[1] == ""
    assert not calibration.partial_path(calibration.path()).exists()


def test_passes_of_another_machine_or_other_types_are_not_used(monkeypatch):
    machine = Machine(monkeypatch)
    where = calibration.partial_path(calibration.path())
    calibration.Passes(["pack"], [("int", 1)], where).run(1, None, lambda: None)
    assert calibration.Passes(["pack"], [("int", 1)], where).done == 1
    assert calibration.Passes(["pack"], [("int", 2)], where).done == 0
    monkeypatch.setattr(calibration, "processor", lambda: "another")
    assert calibration.Passes(["pack"], [("int", 1)], where).done == 0
    where.write_text("{}")
    assert calibration.Passes(["pack"], [("int", 1)], where).done == 0
    assert machine.asked == 1


def test_it_ends_when_the_processor_time_is_spent(spinloom, monkeypatch):
    machine = Machine(monkeypatch)
    clock = itertools.count(0, calibration.CPU_SECONDS / 2)  # half of it between two looks
    monkeypatch.setattr(calibration.time, "process_time", lambda: float(next(clock)))
    ran = spinloom("calibrate", "--passes", "50", "--json")
    assert ran.code == 0, ran.err
    assert re.search(r"a round takes \d+ s here: at most \d+ s more", ran.err)
    assert 2 * machine.a_pass <= machine.asked < 6 * machine.a_pass


def test_a_noisy_machine_gets_no_prices(spinloom, monkeypatch):
    machine = Machine(monkeypatch, speed=lambda number: 1.5**number)
    ran = spinloom("calibrate", "--passes", "2")
    assert ran.code == 1
    assert "too noisy" in ran.err
    assert "differ by 50% in the median" in ran.err
    assert not calibration.path().exists()
    machine.speed = lambda number: 1.0
    ran = spinloom("calibrate", "--passes", "2", "--json")  # adds passes to those
    assert ran.code == 0, ran.err
    assert machine.asked == 4 * machine.a_pass
    price = next(row["ns"] for row in json.loads(ran.out) if row["price"] == "call")
    assert price == 104  # the fastest of all


def test_one_pass_says_nothing_of_noise(monkeypatch):
    Machine(monkeypatch)
    assert calibration.measure(1).prices.keys() == set(copy_model.MOVEMENTS)
