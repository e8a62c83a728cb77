"""Claims: the papers' measurements as conditions on observations, and the verdict on each.

Contract: claims() reads claims.toml. judge() is pure: conditions and observed numbers in, a Verdict out.
assess() runs the cells that a claim needs in a Lab and, when it does not hold, its sensitivities: the first
trial value of one number of the profile that makes the whole claim hold, and ends no other claim of its NIC,
explains it. So does a reason whose own conditions hold. Values are tried in a plausible range only. Every
claim that can be judged is tried with the alternatives of the model that concern its NIC, too. Where a
paper's words leave open what is counted, a claim has several measures, and statements that are judged under
each of them; verdicts on claims do not depend on these.
"""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from spinloom.common.bar import Bar
from spinloom.common.errors import Trouble
from spinloom.papers import frame_tables, lab, observe_programs
from spinloom.papers.lab import Lab, Probe
from spinloom.papers.observe import OBSERVATIONS, queue_cells
from spinloom.papers.trial import Trial

LIMITS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "at_least": (">=", operator.ge),
    "at_most": ("<=", operator.le),
    "above": (">", operator.gt),
    "below": ("<", operator.lt),
}
TABLES = observe_programs.TABLES | frame_tables.TABLES
INPUT = "input."
A_PACKET = " a packet"  # the end of a column's name whose numbers are at so many blocks a packet
HOLDS, EXPLAINED, FAILS, NOT_AVAILABLE = "holds", "explained", "fails", "not available"


@dataclass(frozen=True)
class Condition:
    """One comparison: an observation with its arguments, and the limit that it must keep."""

    observation: str
    arguments: tuple[tuple[str, Any], ...]
    limit: str
    value: float

    def true_of(self, observed: float) -> bool:
        return LIMITS[self.limit][1](observed, self.value)

    def __str__(self) -> str:
        arguments = ", ".join(_short(value) for _, value in self.arguments)
        return f"{self.observation}({arguments}) {LIMITS[self.limit][0]} {self.value:g}"

    @property
    def key(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        return self.observation, self.arguments


def _short(value: Any) -> str:
    return "+".join(str(each) for each in value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Sensitivity:
    field: str
    values: tuple[str, ...]
    why: str
    plausible: tuple[str, str]  # the range in which values are tried
    because: str  # the reason for that range
    observation: str = ""  # the observation whose argument NAME is changed, for "input.NAME"


@dataclass(frozen=True)
class Alternative:
    """Numbers for a part of the model that the papers leave open."""

    name: str
    because: str
    changes: tuple[tuple[str, str], ...]

    def concerns(self, nic: str) -> bool:
        return all(field in lab.profile_of(nic).entries for field, _ in self.changes)


@dataclass(frozen=True)
class Statement:
    """A statement of a paper about something that can be measured in several ways, under one of these
    measures: the claim's, or one that the conditions' arguments and the changes make."""

    says: str
    measure: str
    holds: tuple[Condition, ...]
    changes: tuple[tuple[str, str], ...] = ()  # changes of the profile

    def trial(self, nic: str) -> Trial:
        return Trial(nic, self.changes)


@dataclass(frozen=True)
class Measure:
    """A column of the results, printed beside a claim for each strategy and number of blocks a packet."""

    name: str
    column: str
    strategies: tuple[str, ...]
    gammas: tuple[int, ...]

    def probes(self, trial: Trial) -> list[Probe]:
        return queue_cells(trial, list(self.strategies), list(self.gammas))


@dataclass(frozen=True)
class Reason:
    """A reason why a claim does not hold; the numbers show it when these conditions are true."""

    why: str
    holds: tuple[Condition, ...]


@dataclass(frozen=True)
class Claim:
    id: str
    says: str
    source: str
    paper: str
    nic: str
    holds: tuple[Condition, ...]
    sensitivities: tuple[Sensitivity, ...]
    statements: tuple[Statement, ...] = ()  # judged and printed; the claim's verdict does not depend on them
    measures: tuple[Measure, ...] = ()
    reasons: tuple[Reason, ...] = ()
    table: str = ""  # one of TABLES, with the arguments of the first condition, printed beside the claim
    note: str = ""


@dataclass(frozen=True)
class Observed:
    """A number, or the reason why there is none."""

    value: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    verdict: str
    ours: str
    remark: str
    failed: tuple[Condition, ...] = ()
    otherwise: str = ""  # our numbers with the alternatives


def read_condition(table: dict[str, Any]) -> Condition:
    table = dict(table)
    observation = table.pop("of")
    (limit,) = [name for name in LIMITS if name in table]
    value = float(table.pop(limit))
    frozen = {key: tuple(item) if isinstance(item, list) else item for key, item in table.items()}
    return Condition(observation, tuple(sorted(frozen.items())), limit, value)


def tables() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


@cache
def alternatives() -> tuple[Alternative, ...]:
    return tuple(
        Alternative(table["name"], table["because"], tuple(table["changes"].items()))
        for table in tables()["alternative"]
    )


@cache
def absent() -> dict[str, str]:
    """The papers' claims that are not tested, with the reasons."""
    return {table["id"]: f"{table['says']}: {table['reason']}" for table in tables()["absent"]}


@cache
def claims() -> dict[str, Claim]:
    all_claims = [
        Claim(
            id=table["id"],
            says=table["says"],
            source=table["source"],
            paper=table["paper"],
            nic=table.get("nic", lab.NIC),
            holds=tuple(read_condition(condition) for condition in table["holds"]),
            sensitivities=tuple(
                Sensitivity(
                    entry["field"],
                    tuple(entry["values"]),
                    entry["why"],
                    tuple(entry["plausible"]),
                    entry["because"],
                    entry.get("of", ""),
                )
                for entry in table.get("sensitivity", [])
            ),
            statements=tuple(
                Statement(
                    entry["says"],
                    entry["measure"],
                    tuple(map(read_condition, entry["holds"])),
                    tuple(entry.get("set", {}).items()),
                )
                for entry in table.get("statement", [])
            ),
            measures=tuple(
                Measure(entry["name"], entry["column"], tuple(entry["strategies"]), tuple(entry["gammas"]))
                for entry in table.get("measure", [])
            ),
            reasons=tuple(
                Reason(entry["why"], tuple(map(read_condition, entry["holds"])))
                for entry in table.get("reason", [])
            ),
            table=table.get("table", ""),
            note=table.get("note", ""),
        )
        for table in tables()["claim"]
    ]
    return {claim.id: claim for claim in all_claims}


# ---- pure ----


def judge(conditions: Iterable[Condition], observed: dict[Any, Observed]) -> Verdict:
    """`observed` by Condition.key. A condition that is false weighs more than one that cannot be tested."""
    conditions = tuple(conditions)
    failed, reasons, ours = [], [], []
    for condition in conditions:
        observation = observed[condition.key]
        if observation.value is None:
            reasons.append(f"{condition}: {observation.reason}")
            continue
        if not condition.true_of(observation.value):
            failed.append(condition)
        shown = f"{observation.value:.3g}" if observation.value < 1e5 else f"{observation.value:,.0f}"
        ours.append(f"{shown}{' (!)' if condition in failed else ''}")
    if failed:
        remark = "not: " + "; ".join(f"{each} ({observed[each.key].value:.4g})" for each in failed)
        verdict = FAILS
    elif reasons:
        verdict, remark = NOT_AVAILABLE, reasons[0]
    else:
        verdict, remark = HOLDS, ""
    if reasons and failed:
        remark += f"; not tested: {len(reasons)} of {len(conditions)} ({reasons[0]})"
    return Verdict(verdict, ", ".join(dict.fromkeys(ours)) or "-", remark, tuple(failed))


# ---- running ----


def probes_of(trial: Trial, conditions: Iterable[Condition]) -> list[Probe]:
    probes: list[Probe] = []
    for condition in conditions:
        probes += OBSERVATIONS[condition.observation].probes(trial, **dict(condition.arguments))
    return list(dict.fromkeys(probes))


def observe(trial: Trial, conditions: Iterable[Condition], laboratory: Lab) -> dict[Any, Observed]:
    """Observes from existing readings; a missing strategy or profile gives its reason."""
    observed: dict[Any, Observed] = {}
    for condition in conditions:
        if condition.key in observed:
            continue
        arguments = dict(condition.arguments)
        observation = OBSERVATIONS[condition.observation]
        try:
            readings = [laboratory[probe] for probe in observation.probes(trial, **arguments)]
            observed[condition.key] = Observed(observation.value(trial, readings, **arguments))
        except Trouble as trouble:
            observed[condition.key] = Observed(reason=trouble.message)
    return observed


def assess(claim: Claim, laboratory: Lab, bar: Bar | None = None) -> Verdict:
    trial = Trial(claim.nic)
    verdict = judged(claim, trial, laboratory, bar)
    laboratory.run(further_probes(claim), bar)
    if verdict.verdict == FAILS:
        verdict = explain(claim, verdict, laboratory, bar)
    return with_alternatives(claim, verdict, laboratory, bar)


def further_probes(claim: Claim) -> list[Probe]:
    """Returns what a claim's measures and statements need."""
    trial = Trial(claim.nic)
    probes = [probe for measure in claim.measures for probe in measure.probes(trial)]
    return probes + [
        probe for each in claim.statements for probe in probes_of(each.trial(claim.nic), each.holds)
    ]


def measure_rows(claim: Claim, laboratory: Lab) -> list[dict[str, Any]]:
    """A row for each measure and strategy: its numbers by blocks a packet."""
    trial, rows = Trial(claim.nic), []
    for measure in claim.measures:
        probes = iter(measure.probes(trial))
        for strategy in measure.strategies:
            numbers = {
                f"{gamma}{A_PACKET}": laboratory[next(probes)][measure.column] for gamma in measure.gammas
            }
            rows.append({"measure": measure.name, "strategy": strategy, **numbers})
    return rows


def table_rows(claim: Claim, laboratory: Lab) -> list[dict[str, str]]:
    """The rows of the claim's table, if it has one."""
    if not claim.table:
        return []
    first = claim.holds[0]
    arguments = dict(first.arguments)
    probes = OBSERVATIONS[first.observation].probes(Trial(claim.nic), **arguments)
    return TABLES[claim.table]([laboratory[probe] for probe in probes], **arguments)


def statement_rows(claim: Claim, laboratory: Lab) -> list[dict[str, str]]:
    """A row for each statement and measure: whether it holds."""
    rows = []
    for statement in claim.statements:
        trial = statement.trial(claim.nic)
        verdict = judge(statement.holds, observe(trial, statement.holds, laboratory))
        rows.append(
            {
                "statement": statement.says,
                "measure": statement.measure,
                "ours": verdict.ours,
                "verdict": verdict.verdict,
            }
        )
    return rows


def judged(claim: Claim, trial: Trial, laboratory: Lab, bar: Bar | None) -> Verdict:
    """The verdict on a claim, without a search for explanations."""
    laboratory.run(probes_of(trial, claim.holds), bar)
    return judge(claim.holds, observe(trial, claim.holds, laboratory))


def with_alternatives(claim: Claim, verdict: Verdict, laboratory: Lab, bar: Bar | None) -> Verdict:
    """Adds our numbers with each alternative of the model, and whether the verdict changes."""
    if verdict.verdict == NOT_AVAILABLE:
        return verdict
    for alternative in alternatives():
        if not alternative.concerns(claim.nic):
            continue
        other = judged(claim, Trial(claim.nic, alternative.changes), laboratory, bar)
        note = f"{alternative.name}: {other.ours}"
        verdict = replace(verdict, otherwise="; ".join(filter(None, [verdict.otherwise, note])))
        if (other.verdict == HOLDS) != (verdict.verdict == HOLDS):
            does = "holds" if other.verdict == HOLDS else "does not hold"
            note = f"With {alternative.name} it {does} ({other.ours}): {alternative.because}"
            verdict = replace(verdict, remark=". ".join(filter(None, [verdict.remark, note])))
    return verdict


def explain(claim: Claim, verdict: Verdict, laboratory: Lab, bar: Bar | None) -> Verdict:
    """Looks at the reasons; then tries the sensitivities one after the other, each value by itself."""
    for reason in claim.reasons:
        if judged(replace(claim, holds=reason.holds), Trial(claim.nic), laboratory, bar).verdict == HOLDS:
            return replace(verdict, verdict=EXPLAINED, remark=f"{verdict.remark}. {reason.why}")
    tried: list[str] = []
    for sensitivity in claim.sensitivities:
        origin = origin_of(claim, sensitivity)
        if origin is None:
            continue
        best = (0, "", "")
        ended = ""
        for value in sensitivity.values:
            trial, change = trial_of(claim, sensitivity, value)
            changed = replace(claim, holds=change(claim.holds))
            seen = judged(changed, trial, laboratory, bar)
            if seen.verdict == HOLDS:
                ended = broken_by(claim, trial, laboratory, bar)
                if not ended:
                    reason = (
                        f"{verdict.remark}. It would hold with {sensitivity.field} = {value} instead of "
                        f"{origin}: {sensitivity.why}"
                    )
                    return replace(verdict, verdict=EXPLAINED, remark=reason)
                ended = f" ({value} would, and ends {ended})"
            mended = len(verdict.failed) - len(seen.failed)
            best = max(best, (mended, value, seen.ours))
        note = f"{sensitivity.field} from {origin} to {sensitivity.values[-1]} does not explain it"
        if ended:
            note += ended
        elif best[0] > 0:
            note += f" ({best[1]} mends {best[0]} of {len(verdict.failed)}: {best[2]})"
        tried.append(note)
    return replace(verdict, remark=". ".join([verdict.remark, *tried]))


def broken_by(claim: Claim, trial: Trial, laboratory: Lab, bar: Bar | None) -> str:
    """The first other claim of the NIC that holds, but would not with the trial's numbers; "" if none."""
    if not trial.changes:
        return ""
    for other in claims().values():
        if other.id == claim.id or other.nic != claim.nic:
            continue
        if judged(other, Trial(other.nic), laboratory, bar).verdict != HOLDS:
            continue
        if judged(other, trial, laboratory, bar).verdict == FAILS:
            return other.id
    return ""


def origin_of(claim: Claim, sensitivity: Sensitivity) -> str | None:
    """The number in the model and its source; None if the profile has no such number."""
    if sensitivity.field.startswith(INPUT):
        return "no bound (every datatype of workloads/paper.toml)"
    entry = lab.profile_of(claim.nic).entries.get(sensitivity.field)
    return None if entry is None else f"{entry.text} ({entry.label}: {entry.source})"


Change = Callable[[tuple[Condition, ...]], tuple[Condition, ...]]


def trial_of(claim: Claim, sensitivity: Sensitivity, value: str) -> tuple[Trial, Change]:
    """A changed profile, or ("input.NAME") the same profile with another argument of the observations."""
    if not sensitivity.field.startswith(INPUT):
        return Trial(claim.nic, ((sensitivity.field, value),)), lambda conditions: conditions
    name = sensitivity.field.removeprefix(INPUT)

    def change(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(
            replace(each, arguments=tuple(sorted({**dict(each.arguments), name: float(value)}.items())))
            if each.observation == sensitivity.observation
            else each
            for each in conditions
        )

    return Trial(claim.nic), change
