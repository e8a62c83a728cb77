"""Claims: what the papers measured, as conditions on observations, and the verdict on each.

Contract: claims() reads claims.toml. judge() is pure: conditions and observed numbers in, a Verdict out.
assess() runs what a claim needs in a Lab and, when it does not hold, its sensitivities: the first trial value
of a profile's number that makes every failed condition true explains the claim.
"""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from spinloom import lab
from spinloom.bar import Bar
from spinloom.errors import Trouble
from spinloom.lab import Lab, Probe
from spinloom.observe import OBSERVATIONS, Trial

LIMITS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "at_least": (">=", operator.ge),
    "at_most": ("<=", operator.le),
    "above": (">", operator.gt),
    "below": ("<", operator.lt),
}
INPUT = "input."
HOLDS, EXPLAINED, FAILS, NOT_AVAILABLE = "holds", "explained", "fails", "not available"


@dataclass(frozen=True)
class Condition:
    """One comparison: an observation with its arguments, and the limit that it must keep."""

    of: str
    arguments: tuple[tuple[str, Any], ...]
    limit: str
    value: float

    def true_of(self, observed: float) -> bool:
        return LIMITS[self.limit][1](observed, self.value)

    def __str__(self) -> str:
        told = ", ".join(_short(value) for _, value in self.arguments)
        return f"{self.of}({told}) {LIMITS[self.limit][0]} {self.value:g}"

    @property
    def what(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        return self.of, self.arguments


def _short(value: Any) -> str:
    return "+".join(str(each) for each in value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class Sensitivity:
    field: str
    values: tuple[str, ...]
    why: str
    of: str = ""  # for "input.NAME": the observation whose argument NAME is changed


@dataclass(frozen=True)
class Claim:
    id: str
    says: str
    source: str
    paper: str
    nic: str
    holds: tuple[Condition, ...]
    sensitivities: tuple[Sensitivity, ...]


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


def read_condition(table: dict[str, Any]) -> Condition:
    table = dict(table)
    of = table.pop("of")
    (limit,) = [name for name in LIMITS if name in table]
    value = float(table.pop(limit))
    frozen = {key: tuple(item) if isinstance(item, list) else item for key, item in table.items()}
    return Condition(of, tuple(sorted(frozen.items())), limit, value)


@cache
def claims() -> dict[str, Claim]:
    tables = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))["claim"]
    listed = [
        Claim(
            id=table["id"],
            says=table["says"],
            source=table["source"],
            paper=table["paper"],
            nic=table.get("nic", lab.NIC),
            holds=tuple(read_condition(condition) for condition in table["holds"]),
            sensitivities=tuple(
                Sensitivity(entry["field"], tuple(entry["values"]), entry["why"], entry.get("of", ""))
                for entry in table.get("sensitivity", [])
            ),
        )
        for table in tables
    ]
    return {claim.id: claim for claim in listed}


# ---- pure ----


def judge(conditions: Iterable[Condition], observed: dict[Any, Observed]) -> Verdict:
    """`observed` by Condition.what. A condition that is false weighs more than one that cannot be tested."""
    conditions = tuple(conditions)
    failed, reasons, ours = [], [], []
    for condition in conditions:
        found = observed[condition.what]
        if found.value is None:
            reasons.append(f"{condition}: {found.reason}")
            continue
        if not condition.true_of(found.value):
            failed.append(condition)
        shown = f"{found.value:.3g}" if found.value < 1e5 else f"{found.value:,.0f}"
        ours.append(f"{shown}{' (!)' if condition in failed else ''}")
    if failed:
        remark = "not: " + "; ".join(f"{each} ({observed[each.what].value:.4g})" for each in failed)
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
    found: list[Probe] = []
    for condition in conditions:
        found += OBSERVATIONS[condition.of].probes(trial, **dict(condition.arguments))
    return list(dict.fromkeys(found))


def observe(trial: Trial, conditions: Iterable[Condition], laboratory: Lab) -> dict[Any, Observed]:
    """From readings that are there; a strategy or profile that is not gives its reason."""
    observed: dict[Any, Observed] = {}
    for condition in conditions:
        if condition.what in observed:
            continue
        arguments = dict(condition.arguments)
        observation = OBSERVATIONS[condition.of]
        try:
            readings = [laboratory[probe] for probe in observation.probes(trial, **arguments)]
            observed[condition.what] = Observed(observation.value(trial, readings, **arguments))
        except Trouble as trouble:
            observed[condition.what] = Observed(reason=trouble.message)
    return observed


def assess(claim: Claim, laboratory: Lab, bar: Bar | None = None) -> Verdict:
    trial = Trial(claim.nic)
    laboratory.run(probes_of(trial, claim.holds), bar)
    verdict = judge(claim.holds, observe(trial, claim.holds, laboratory))
    return explain(claim, verdict, laboratory, bar) if verdict.verdict == FAILS else verdict


def explain(claim: Claim, verdict: Verdict, laboratory: Lab, bar: Bar | None) -> Verdict:
    """Tries the sensitivities one after the other on the failed conditions."""
    tried: list[str] = []
    alone: dict[Condition, str] = {}  # what makes each failed condition true, by itself
    for sensitivity in claim.sensitivities:
        was = origin_of(claim, sensitivity)
        if was is None:
            continue
        best = (0, "", "")
        for value in sensitivity.values:
            trial, change = trial_of(claim, sensitivity, value)
            failed, whole = change(verdict.failed), change(claim.holds)
            laboratory.run(probes_of(trial, failed), bar)
            seen = judge(failed, observe(trial, failed, laboratory))
            mended = len(failed) - len(seen.failed)
            for condition, changed in zip(verdict.failed, failed, strict=True):
                if changed not in seen.failed and seen.verdict != NOT_AVAILABLE:
                    alone.setdefault(
                        condition,
                        f"{condition} with {sensitivity.field} = {value} instead of {was}: {sensitivity.why}",
                    )
            if seen.verdict == HOLDS and not still_fails(whole, trial, laboratory, bar):
                reason = (
                    f"{verdict.remark}. It would hold with {sensitivity.field} = {value} instead of "
                    f"{was}: {sensitivity.why}"
                )
                return replace(verdict, verdict=EXPLAINED, remark=reason)
            best = max(best, (mended, value, seen.ours))
        told = f"{sensitivity.field} from {was} to {sensitivity.values[-1]} does not make it hold"
        if best[0]:
            told += f" ({best[1]} mends {best[0]} of {len(verdict.failed)}: {best[2]})"
        tried.append(told)
    if len(alone) == len(verdict.failed):
        return replace(
            verdict,
            verdict=EXPLAINED,
            remark=". ".join([verdict.remark, "Each would hold by a change of its own", *alone.values()]),
        )
    return replace(verdict, remark=". ".join([verdict.remark, *tried]))


def origin_of(claim: Claim, sensitivity: Sensitivity) -> str | None:
    """What the number is in the model and why; None when the profile has no such number."""
    if sensitivity.field.startswith(INPUT):
        return "no bound (every datatype of workloads/paper.toml)"
    entry = lab.profile_of(claim.nic).entries.get(sensitivity.field)
    return None if entry is None else f"{entry.text} ({entry.label}: {entry.source})"


Change = Callable[[tuple[Condition, ...]], tuple[Condition, ...]]


def trial_of(claim: Claim, sensitivity: Sensitivity, value: str) -> tuple[Trial, Change]:
    """A changed profile, or ("input.NAME") the same one with another argument of the observations."""
    if not sensitivity.field.startswith(INPUT):
        return Trial(claim.nic, ((sensitivity.field, value),)), lambda conditions: conditions
    name = sensitivity.field.removeprefix(INPUT)

    def change(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        return tuple(
            replace(each, arguments=tuple(sorted({**dict(each.arguments), name: float(value)}.items())))
            if each.of == sensitivity.of
            else each
            for each in conditions
        )

    return Trial(claim.nic), change


def still_fails(conditions: tuple[Condition, ...], trial: Trial, laboratory: Lab, bar: Bar | None) -> bool:
    """Whether a condition that was true before is false in the trial."""
    laboratory.run(probes_of(trial, conditions), bar)
    return bool(judge(conditions, observe(trial, conditions, laboratory)).failed)
