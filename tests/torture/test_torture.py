"""Deterministic simulation testing: a slice of every scenario, replay, and what the verb says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mutants
from conftest import needs_engine
from patience import seconds
from spinloom.common import core
from spinloom.nics import torture

pytestmark = needs_engine

SEEDS = 200  # mutants are found by then; the long run is `spinloom torture --seeds 1..100000`
SCENARIOS = list(torture.all_scenarios())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_slice_of_every_scenario(name):
    done = torture.run(torture.scenario_named(name), 1, SEEDS)
    assert done.runs == SEEDS
    assert done.violations == []
    assert not done.weak, f"{done.messages_min} messages, {done.faults_min} faults"


def test_scenarios_cover_everything():
    numbers = [scenario.numbers for scenario in torture.all_scenarios().values()]
    assert len(numbers) >= 12
    assert max(each["ranks"] for each in numbers) == 8
    with pytest.raises(Exception, match="there are: ranks") as refused:
        core.load().run_torture({"work.nonsense": 1}, 1, 1)
    known = [name.strip() for name in str(refused.value).split("there are:")[1].split(",")]
    for name in known:
        if name.startswith(("work.", "faults.", "engine.")):
            assert any(each.get(name) for each in numbers), f"no scenario has {name}"


def test_the_same_seed_is_the_same_run():
    everything = torture.scenario_named("everything")
    once = torture.run(everything, 1, 120, jobs=1)
    again = torture.run(everything, 1, 120, jobs=2)
    assert once.hashes == again.hashes
    assert len(set(once.hashes)) == 120, "different seeds are different runs"


def test_the_verb_prints_a_table(spinloom):
    ran = spinloom("torture", "puts", "--seeds", "1..20", "--json")
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)
    assert row["runs"] == 20
    assert row["messages"] >= 20 * 50
    assert row["drop_faults"] > 0
    assert row["violations"] == 0


def test_a_scenario_in_which_nothing_goes_wrong_does_not_count(spinloom, tmp_path):
    calm = tmp_path / "calm.toml"
    calm.write_text('title = "calm"\n[work]\nput = 1\n', encoding="utf-8")
    ran = spinloom("torture", str(calm), "--seeds", "1..3")
    assert ran.code == 1
    assert "make it count" in ran.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nosuch"], "there is no scenario 'nosuch'"),
        (["puts", "--seeds", "9..3"], "accepted form: A..B"),
        (["puts", "--verbose"], "name one scenario and one seed"),
    ],
)
def test_what_cannot_be_run_is_refused(spinloom, arguments, complaint):
    ran = spinloom("torture", *arguments)
    assert ran.code == 2
    assert complaint in ran.err


def test_a_trace_shows_datagrams_and_events():
    command = [sys.executable, "-m", "spinloom.cli", "torture", "order", "--seeds", "3..3", "--verbose"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds(60))
    assert ran.returncode == 0, ran.stderr
    assert "link: datagram 0 of" in ran.stdout
    assert "auto_unlink" in ran.stdout


@pytest.mark.parametrize("mutant", mutants.mutants(), ids=lambda one: one.name)
def test_mutants_still_apply(mutant):
    source = (mutants.ROOT / mutant.file).read_text(encoding="utf-8")
    assert mutant.applied(source) != source
