"""Claims: predicates on both sides of their boundary, verdicts from invented numbers, explaining trials."""

from __future__ import annotations

import collections
import functools
import json
import math
from pathlib import Path

import pytest

from conftest import fake_claim_cell, needs_engine
from spinloom.common.bar import Bar
from spinloom.nics import strategies
from spinloom.papers import claims, lab, observe
from spinloom.papers.claims import EXPLAINED, FAILS, HOLDS, NOT_AVAILABLE, Observed, judge
from spinloom.papers.lab import Reading

CONDITIONS = [(claim.id, condition) for claim in claims.claims().values() for condition in claim.holds]
STEP = 1e-6


def numbers_for(claim, numbers):
    """Observations in the order of the claim's conditions."""
    return {condition.key: Observed(number) for condition, number in zip(claim.holds, numbers, strict=True)}


@pytest.mark.parametrize(("name", "condition"), CONDITIONS, ids=lambda value: str(value)[:60])
def test_every_condition_has_two_sides(name, condition):
    inside = {"at_least": 0, "at_most": 0, "above": STEP, "below": -STEP}[condition.limit]
    outside = {"at_least": -STEP, "at_most": STEP, "above": 0, "below": 0}[condition.limit]
    assert condition.true_of(condition.value + inside)
    assert not condition.true_of(condition.value + outside)
    assert condition.observation in observe.OBSERVATIONS


BOUNDARIES = {
    # claim: numbers that just hold, numbers that just do not, in the order of claims.toml
    "DDT-1": ([19, 29], [18.9, 29]),
    "DDT-2": ([0.95, 0.949], [0.949, 0.949]),
    "DDT-3": ([0.99] * 4, [0.99, 0.99, 1.0, 0.99]),
    "DDT-4": ([2.5] * 5 + [60, 95], [2.5, 2.5, 2.51, 2.5, 2.5, 60, 95]),
    "DDT-5": ([0.95, 0.94, 0.94, 0.94, 0.94], [0.95, 0.95, 0.94, 0.94, 0.94]),
    "DDT-6": ([0, 0, 1.1, 1.1, 1.1], [0, 1, 1.1, 1.1, 1.1]),
    "DDT-7": ([159, 159], [159, 160]),
    "DDT-8": ([8, 16, 1.1, 1.1], [8, 16.1, 1.1, 1.1]),
    "DDT-9": ([3.0, 4.6], [2.99, 4.6]),
    "DDT-10": ([60], [59.9]),
    "DDT-13": ([0.02, 0.16, 3 << 20], [0.02, 0.16, (3 << 20) + 1]),
    "RED-1": ([3.8, 3.5], [3.8, 3.49]),
    "RED-2": (
        [0.8, 0.5, 0.8, 0.35, 0.35, 0.35, 0.9, 1.1, 0.9, 1.1],
        [0.8, 0.5, 0.8, 0.35, 0.36, 0.35, 0.9, 1.1, 0.9, 1.1],
    ),
    "RED-3": ([30, 60, 10, 30, 0.98, 0.98], [30, 60, 10, 30.1, 0.98, 0.98]),
    "RED-4": ([930, 1395, 0.95, 641, 961, 0.95], [930, 1395, 0.95, 641, 961.1, 0.95]),
    "RED-5": ([92, 99], [92, 98.9]),
    "RED-6": ([0, 24.9, 0, 24.9], [0, 24.9, 0, 25]),
    "RED-7": ([10], [10.1]),
    "OE-1": ([5, 0.99, 0.99], [5.01, 0.99, 0.99]),
    "OE-2": ([0], [1]),
}


@pytest.mark.parametrize("name", BOUNDARIES)
def test_claims_on_both_sides_of_their_boundary(name):
    claim = claims.claims()[name]
    holding, failing = BOUNDARIES[name]
    # Two limits of one observation are tested by hand-made keys: each condition sees its own number.
    for numbers, verdict in ((holding, True), (failing, False)):
        true = [condition.true_of(number) for condition, number in zip(claim.holds, numbers, strict=True)]
        assert all(true) is verdict


def test_a_false_condition_weighs_more_than_a_missing_one():
    claim = claims.claims()["DDT-2"]
    first, second = claim.holds
    missing = Observed(reason="there is no such strategy")
    assert judge(claim.holds, {first.key: Observed(0.99), second.key: Observed(0.5)}).verdict == HOLDS
    assert judge(claim.holds, {first.key: Observed(0.99), second.key: missing}).verdict == NOT_AVAILABLE
    both = judge(claim.holds, {first.key: Observed(0.5), second.key: missing})
    assert both.verdict == FAILS
    assert both.failed == (first,)
    assert "no such strategy" in both.remark


def test_every_claim_names_profiles_fields_and_strategies_that_exist():
    for claim in claims.claims().values():
        for sensitivity in claim.sensitivities:
            if not sensitivity.field.startswith(claims.INPUT):
                assert claims.lab.profile_of("sc19-slingshot").entries[sensitivity.field]
                for value in sensitivity.values:
                    lab.profile_of("sc19-slingshot", ((sensitivity.field, value),))
        for condition in claim.holds:
            arguments = dict(condition.arguments)
            for strategy in (arguments.get("strategy", "seek"), *arguments.get("strategies", ())):
                assert strategy in strategies.STRATEGIES


# ---- observations on invented readings ----


def reading(**columns):
    return Reading(columns)


def test_reuses_are_preparation_over_gain():
    profile = lab.profile_of("sc19-slingshot")
    host, offloaded = (
        reading(time_ps=3_000_000),
        reading(time_ps=1_000_000, prepared_blocks=3400, nic_memory_bytes=0),
    )
    # 3400 blocks * 2 cycles / 3.4 GHz = 2 us, and an empty PCIe write of 24 B * 15.87 ps + 250 ns
    cycles_ps = 3400 * profile["host.segment_block_cycles"] * 10**12 / profile["host.clock"]
    expected = math.ceil((float(cycles_ps) + 381 + 250_000) / 2_000_000)
    assert observe.reuses(profile, host, offloaded) == expected
    assert (
        observe.reuses(profile, offloaded, reading(**{**offloaded.columns, "time_ps": 1_000_000})) == math.inf
    )


def test_throughput_counts_from_ready_to_receive():
    profile = lab.profile_of("sc19-slingshot")
    way = 2 * (50_000 + 33_400) + 250_000 + 30_000 + 2 * 250_000
    assert observe.ready_to_receive_ps(profile) == way
    cell = reading(size_bytes=4 << 20, time_ps=10**9, data_time_ps=10**8)
    assert observe.throughput_gbit_s(profile, "rw-cp", cell) == (4 << 20) * 8000 / (way + 10**8)
    assert observe.throughput_gbit_s(profile, "host-best", cell) == (4 << 20) * 8000 / (way + 10**9)


def test_volume_adds_the_lines_that_the_host_fetches():
    profile = lab.profile_of("sc19-slingshot")
    cell = reading(size_bytes=1000, host_line_fetches=10)
    assert observe.volume_bytes(profile, "host-mpitypes", cell) == 1640
    assert observe.volume_bytes(profile, "rw-cp", cell) == 1000


def test_catch_up_is_what_the_least_handler_does_not_need():
    cell = reading(
        handler_first_call_cycles_per_packet=90.0,
        handler_first_call_cycles_min=10,
        handler_cycles_per_packet=100.0,
    )
    assert observe.catch_up_percent(cell) == 80


def test_rails_gain_is_the_least_over_sizes():
    times = [reading(time_ps=time) for time in (400, 100, 300, 100)]
    arguments = {"rails": 4, "window": 64, "size_bytes": (10, 20)}
    observation = observe.OBSERVATIONS["least_rails_gain"]
    assert observation.value(claims.Trial(), times, **arguments) == 3
    probes = observation.probes(claims.Trial("sc17-discrete"), **arguments)
    assert [(probe.count, probe.size_bytes, probe.window) for probe in probes] == [
        (1, 10, 64),
        (4, 10, 64),
        (1, 20, 64),
        (4, 20, 64),
    ]


def test_one_sided_ratio_is_of_one_operation_between_two_sizes():
    ways = (("put", 8, 5), ("put", 16, 6), ("put", 32, 10), ("put", 64, 90), ("get", 16, 80))
    rows = {(name, size): {"native": native, "emulated": 10} for name, size, native in ways}
    ratio = functools.partial(
        observe.OBSERVATIONS["one_sided_ratio"].value,
        claims.Trial(),
        [reading(rows=rows)],
        operation="put",
        size_bytes=(8, 32),
    )
    assert (ratio(), ratio(over_sizes="least"), ratio(over_sizes="greatest")) == (0.6, 0.5, 1.0)


def test_memory_growth_is_zero_when_it_falls_between():
    held = [reading(nic_memory_bytes=size) for size in (10, 30, 20, 40)]
    assert observe.memory_growth(None, held) == 0
    assert observe.memory_growth(None, [held[0], held[2], held[3]]) == 4
    assert observe.memory_spread(None, held) == 30


# ---- trials over the stand-in engine: a profile's number that makes a claim hold ----


def test_validate_compares_with_the_checked_in_table(spinloom, fake_engine, tmp_path):
    fake_engine.run_cell = fake_claim_cell
    fake_engine.run_study = lambda config: {"time_ps": 1000}  # the time of another claim of this NIC
    table = tmp_path / "validate.json"
    options = ["--only", "DDT-2", "--quiet", "--golden", str(table)]
    ran = spinloom("paper", "validate", *options, "--json", "--update")
    (row,) = json.loads(ran.out)
    assert (ran.code, row["verdict"]) == (0, HOLDS)
    assert spinloom("paper", "validate", *options).code == 0
    assert "1 hold" in spinloom("paper", "validate", "--last", "--golden", str(table)).out

    def slower(config):
        found = fake_claim_cell(config)
        return {**found, "time_ps": found["time_ps"] * 5 // 4}

    fake_engine.run_cell = slower
    ran = spinloom("paper", "validate", *options, "--json")
    (row,) = json.loads(ran.out)
    assert ran.code == 1
    assert row["verdict"] == EXPLAINED
    assert "hpu.clock = 1000 MHz instead of 800 MHz (given:" in row["remark"]
    assert row["otherwise"].startswith("DMA calls without a crossbar: ")
    assert "DDT-2: 'holds'" in ran.err
    assert "--update" in ran.err


def test_values_are_tried_in_their_plausible_range_only():
    for claim in claims.claims().values():
        for one in claim.sensitivities:
            assert one.because
            if one.field.startswith(claims.INPUT):
                low, high, *values = (float(text) for text in (*one.plausible, *one.values))
            else:
                low, high, *values = (
                    lab.profile_of(claim.nic, ((one.field, text),))[one.field]
                    for text in (*one.plausible, *one.values)
                )
            assert all(low <= value <= high for value in values), (claim.id, one.field)


class Invented:
    """A laboratory whose readings nobody asks: judged() is replaced."""

    def run(self, probes, bar):
        pass


def invented(monkeypatch, verdicts):
    """Verdicts by claim and changes; everything else holds."""

    def judged(claim, trial, laboratory, bar):
        verdict = verdicts.get((claim.id, dict(trial.changes).get("hpu.clock", "")), HOLDS)
        return claims.Verdict(verdict, "1", "not: invented", claim.holds[:1] if verdict == FAILS else ())

    monkeypatch.setattr(claims, "judged", judged)


def test_a_change_that_ends_another_claim_explains_nothing(monkeypatch):
    claim = claims.claims()["DDT-5"]
    failing = {("DDT-5", ""): FAILS, ("DDT-5", "700 MHz"): FAILS}
    invented(monkeypatch, failing)
    verdict = claims.assess(claim, Invented())
    assert verdict.verdict == EXPLAINED
    assert "hpu.clock = 600 MHz" in verdict.remark
    invented(monkeypatch, {**failing, ("DDT-2", "600 MHz"): FAILS})
    verdict = claims.assess(claim, Invented())
    assert verdict.verdict == FAILS
    assert "600 MHz would, and ends DDT-2" in verdict.remark
    invented(monkeypatch, {**failing, ("DDT-2", ""): FAILS, ("DDT-2", "600 MHz"): FAILS})
    assert claims.assess(claim, Invented()).verdict == EXPLAINED  # it had not held before


def test_a_claim_that_turns_with_an_alternative_says_so(monkeypatch):
    (alternative,) = claims.alternatives()

    def judged(claim, trial, laboratory, bar):
        otherwise = trial.changes == alternative.changes
        return claims.Verdict(FAILS if otherwise else HOLDS, "2" if otherwise else "1", "")

    monkeypatch.setattr(claims, "judged", judged)
    verdict = claims.assess(claims.claims()["DDT-1"], Invented())
    assert verdict.verdict == HOLDS
    assert verdict.otherwise == "DMA calls without a crossbar: 2"
    assert verdict.remark.startswith("With DMA calls without a crossbar it does not hold (2): neither paper")
    assert claims.assess(claims.claims()["DDT-12"], Invented()).otherwise == ""  # it has no such cores


def test_claims_that_are_not_tested_say_why(spinloom):
    assert set(claims.absent()) == {"DDT-14"}
    ran = spinloom("paper", "validate", "--only", "DDT-14")
    assert ran.code == 2
    assert "a result of synthesis" in ran.err


class CountingBar(Bar):
    def __init__(self):
        self.expected = self.ended = 0
        self.expected_at_first_end = 0

    def __call__(self):
        self.expected_at_first_end = self.expected_at_first_end or self.expected
        self.ended += 1
        assert self.ended <= self.expected

    def expect(self, cells):
        self.expected += cells


def test_the_bar_counts_trials_too(fake_engine):
    fake_engine.run_cell = lambda config: {**fake_claim_cell(config), "time_ps": 10**10}
    claim, bar = claims.claims()["DDT-2"], CountingBar()
    laboratory = lab.Lab(2)
    assert claims.assess(claim, laboratory, bar).verdict == FAILS
    assert bar.ended == bar.expected == len(laboratory.readings)
    assert (
        bar.expected
        > bar.expected_at_first_end
        == len(claims.probes_of(claims.Trial(claim.nic), claim.holds))
    )


def test_what_no_trial_mends_fails(spinloom, fake_engine, tmp_path, monkeypatch):
    fake_engine.run_cell = lambda config: {**fake_claim_cell(config), "time_ps": 10**10}
    monkeypatch.chdir(tmp_path)  # no checked-in table here
    ran = spinloom("paper", "validate", "--only", "DDT-2", "--quiet", "--json")
    (row,) = json.loads(ran.out)
    assert (ran.code, row["verdict"]) == (0, FAILS)
    assert "does not explain it" in row["remark"]


def test_a_table_that_was_named_must_be_there(spinloom, fake_engine, tmp_path):
    ran = spinloom("paper", "validate", "--only", "DDT-2", "--golden", str(tmp_path / "none.json"))
    assert ran.code == 2
    assert "there is no such table" in ran.err


def test_the_page_counts_the_claims_of_the_checked_in_table():
    root = Path(__file__).resolve().parents[2]
    table = json.loads((root / "tests/golden/validate.json").read_text(encoding="utf-8"))["claims"]
    assert list(table) == list(claims.claims())
    count = collections.Counter(row["verdict"] for row in table.values())
    told = f"Of {len(table)} claims {count[HOLDS]} hold, {count[EXPLAINED]} are explained and "
    told += f"{count[FAILS]} fail;"
    assert told in " ".join((root / "docs/papers.md").read_text(encoding="utf-8").split())


def test_results_are_not_overwritten(spinloom, fake_engine, tmp_path):
    (tmp_path / "validate.csv").write_text("mine")
    ran = spinloom("paper", "validate", "--only", "DDT-2", "--out", str(tmp_path))
    assert ran.code == 2
    assert (tmp_path / "validate.csv").read_text() == "mine"


def test_a_missing_profile_is_not_available(spinloom, fake_engine, tmp_path, monkeypatch):
    monkeypatch.setattr(claims.lab, "profile_of", lab.profile_of)
    claim = claims.claims()["DDT-2"]
    elsewhere = claims.replace(claim, nic="no-such-nic")
    verdict = claims.assess(elsewhere, lab.Lab(1))
    assert verdict.verdict == NOT_AVAILABLE
    assert "no-such-nic" in verdict.remark


def test_an_unknown_claim_is_answered_with_the_nearest(spinloom):
    ran = spinloom("paper", "validate", "--only", "DDT-22")
    assert ran.code == 2
    assert "did you mean 'DDT-2'" in ran.err


# ---- what is counted: measures and statements ----


def test_the_lead_is_the_least_over_the_most_of_the_others():
    readings = [reading(column=count) for count in (57, 60, 40, 50, 30, 20)]
    arguments = {"measure": "column", "strategies": ["a", "b"], "over": ["c"], "gammas": [16, 32]}
    assert observe.lead(None, readings, **arguments) == 40 / 30


def depths(config):
    """Writes under way as the strategy says; writes waiting: always 5."""
    found = {"specialised": 100, "rw-cp": 90, "hpu-local": 50, "ro-cp": 120}[config["strategy"]]
    slow = config["profile"]["hpu.clock"] == 600_000_000 and config["strategy"] == "ro-cp"
    under_way = {"writes_under_way_peak": 60 if slow else found, "writes_under_way_mean": found / 3}
    return {**fake_claim_cell(config), "dma_queue_peak": 5, **under_way}


def test_validate_prints_each_measure_and_what_holds_under_it(spinloom, fake_engine, tmp_path):
    fake_engine.run_cell = depths
    table = tmp_path / "validate.json"
    options = ["--only", "DDT-7", "--quiet", "--golden", str(table)]
    ran = spinloom("paper", "validate", *options, "--update")
    assert ran.code == 0
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "writes waiting for PCIe, peak specialised 5 5 5 5 5 5" in lines
    assert "writes under way, peak ro-cp 120 120 120 120 120 120" in lines
    assert "writes under way, mean rw-cp 30 30 30 30 30 30" in lines
    assert "(Little's law)" in " ".join(lines)
    (row,) = json.loads(spinloom("paper", "validate", *options, "--json").out)
    assert row["verdict"] == HOLDS  # the verdict does not depend on the statements
    told = [line.rsplit(": ", 1) for line in row["statements"].split("; ")]
    verdicts = {(line.split(": ")[0][:12], line.split(": ")[1]): verdict for line, verdict in told}
    assert verdicts["fewer than 1", "writes waiting for PCIe, peak"] == HOLDS
    assert verdicts["fewer than 1", "writes under way, peak"] == HOLDS
    assert verdicts["specialised ", "writes waiting for PCIe, peak"] == FAILS
    assert verdicts["specialised ", "writes under way, peak"] == FAILS
    assert [verdict for line, verdict in told if "600 MHz" in line] == [HOLDS]

    fake_engine.run_cell = lambda config: {**depths(config), "writes_under_way_peak": 160}
    ran = spinloom("paper", "validate", *options, "--json")
    assert ran.code == 1
    assert "writes under way, peak: 160 (!): fails" in ran.err


def test_every_measure_and_statement_names_what_exists():
    for claim in claims.claims().values():
        named = {measure.name for measure in claim.measures}
        if named:  # otherwise a statement's measure is in its conditions' arguments
            assert {statement.measure for statement in claim.statements} <= named
        for statement in claim.statements:
            assert lab.profile_of(claim.nic, statement.changes)
            for condition in statement.holds:
                assert condition.observation in observe.OBSERVATIONS
        assert bool(claim.statements or claim.table) == bool(claim.note)


@needs_engine
def test_one_write_is_under_way_until_its_last_byte_is_in_host_memory():
    laboratory, trial = lab.Lab(1), claims.Trial()
    (found,) = (laboratory[probe] for probe in [trial.probe("contig(1000, byte)", "specialised")])
    on_pcie = math.ceil((1000 + 4 * 24) * 8125 / 512)  # four packets
    under_way = found["writes_under_way_mean"] * found["data_time_ps"]
    assert found["writes_under_way_peak"] == 1
    assert 250_000 + on_pcie <= under_way < 250_000 + on_pcie + 100_000  # NIC memory is read before
