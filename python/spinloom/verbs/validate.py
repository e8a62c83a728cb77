"""`spinloom validate`: the papers' claims, tested on fresh simulations."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from spinloom import claims, files, live_claims, output, results
from spinloom.bar import Bar
from spinloom.bench import jobs
from spinloom.claims import Claim, Verdict
from spinloom.errors import EXIT_NEGATIVE, Trouble, nearest
from spinloom.lab import Lab
from spinloom.verbs.options import form_options, quiet_option, threads_option
from spinloom.verbs.progress import progress
from spinloom.verbs.stopping import stoppable

FILES = ("validate.csv", "validate.json")
TABLE = Path("tests/golden/validate.json")  # of a checkout, from its root


@click.command(epilog="Examples: spinloom validate; spinloom validate --only DDT-2,DDT-7 --json")
@click.option("--only", metavar="ID,...", help="Only these claims.")
@click.option(
    "--last", is_flag=True, help="Print the checked-in table's verdicts in one line; simulate nothing."
)
@click.option("--update", is_flag=True, help="Write what comes out into the checked-in table.")
@click.option(
    "--golden",
    "table_path",
    type=click.Path(path_type=Path),
    default=TABLE,
    show_default=True,
    help="The checked-in table that verdicts are compared with.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write validate.csv and .json here."
)
@click.option(
    "--live",
    is_flag=True,
    help="Measure the claims about real processes on this machine instead (host time, a minute).",
)
@threads_option
@click.option("--force", is_flag=True, help="Let --out overwrite.")
@quiet_option
@form_options
@click.pass_context
def validate(
    ctx: click.Context,
    only: str | None,
    last: bool,
    update: bool,
    table_path: Path,
    out: Path | None,
    live: bool,
    threads: int,
    force: bool,
    quiet: bool,
    form: str,
) -> None:
    """Test what the papers measured: each claim's predicate, the paper's number and ours.

    A claim that does not hold is 'explained' when one changed number of the NIC profile, in a plausible
    range, makes all of it hold and ends no other claim of that NIC, or when it differs for a reason that the
    numbers show; otherwise it 'fails'. Where the papers leave a part of the model open, claims are tried with
    the alternative, too. Exits with 1 when a verdict differs from the checked-in table.
    """
    if last:
        click.echo(summary(read_table(table_path)))
        return
    if live:
        validate_live(only, out, force, quiet, form)
        return
    wanted = select(only)
    chosen = ctx.get_parameter_source("table_path") is not ParameterSource.DEFAULT
    if not update and not table_path.exists():
        if chosen:
            raise Trouble("invalid", f"--golden {table_path}: there is no such table; --update writes one")
        output.say(f"no table {table_path} here: verdicts are compared with nothing")
    check_free(out, force)
    laboratory = Lab(threads or os.cpu_count() or 1)
    began = time.monotonic()
    verdicts: dict[Claim, Verdict] = {}
    with stoppable() as stop, progress(0, quiet) as bar:
        for claim, verdict in assessed(wanted, laboratory, bar, quiet):
            verdicts[claim] = verdict
    if stop.told:
        verdicts |= settled([claim for claim in wanted if claim not in verdicts], laboratory)
    rows = [row_of(claim, verdict, laboratory) for claim, verdict in verdicts.items()]
    output.emit(rows, form, lambda: shown(rows))
    if form == "table":
        for claim in verdicts:
            show_measures(claim, laboratory)
        for name, why in claims.absent().items() if only is None else ():
            click.echo(f"{name} is not tested: {why}")
        click.echo(f"{len(laboratory.readings)} cells; host time {time.monotonic() - began:.1f} s")
    if out is not None and rows:
        write(out / "partial" if stop.told else out, rows)
    if stop.told:
        kept = f" and stand in {out / 'partial'}" if out is not None and rows else ""
        stop.leave(f"{len(rows)} of {len(wanted)} claims were tested{kept}; no table is compared or updated")
    if update:
        update_table(table_path, rows, laboratory)
    elif changed := differences(rows, table_path, laboratory):
        for line in changed:
            output.say(line)
        ctx.exit(EXIT_NEGATIVE)


def check_free(out: Path | None, force: bool) -> None:
    if out is None:
        return
    there = [name for name in FILES if (out / name).exists()]
    if there and not force:
        raise Trouble("invalid", f"{out} holds {', '.join(there)} already; --force overwrites")
    results.check_writable(out)


def validate_live(only: str | None, out: Path | None, force: bool, quiet: bool, form: str) -> None:
    """The claims that are measured here: nothing is compared with a table, because machines differ."""
    known = live_claims.live_claims()
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise Trouble("invalid", f"there is no live claim '{name}'{nearest(name, known)}")
    wanted = [known[name] for name in names]
    check_free(out, force)
    mpis = jobs.mpis()
    launches = live_claims.messages.QUICK.launches
    needed = (live_claims.MESSAGES, live_claims.TWO_WAYS)
    steps = sum(len(live_claims.rows_of(wanted, of)) for of in needed) * launches
    with tempfile.TemporaryDirectory(prefix="spinloom-live-") as folder, progress(steps, quiet) as bar:
        measured = live_claims.measure(wanted, mpis, Path(folder), bar)
    rows = live_claims.judge(wanted, measured)
    output.emit(rows, form, lambda: shown(rows))
    if out is not None:
        write(out, rows)


def select(only: str | None) -> list[Claim]:
    known = claims.claims()
    names = list(known) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name in claims.absent():
            raise Trouble("unsupported", f"{name} is not tested: {claims.absent()[name]}")
        if name not in known:
            raise Trouble("invalid", f"there is no claim '{name}'{nearest(name, known)}")
    return [known[name] for name in names]


def assessed(wanted: list[Claim], laboratory: Lab, bar: Bar, quiet: bool) -> Iterator[tuple[Claim, Verdict]]:
    """Runs all first cells at once, then searches explanations of the claims that do not hold."""
    laboratory.run(
        [probe for claim in wanted for probe in claims.probes_of(claims.Trial(claim.nic), claim.holds)], bar
    )
    for claim in wanted:
        began = time.monotonic()
        verdict = claims.assess(claim, laboratory, bar)
        yield claim, verdict
        if not quiet and time.monotonic() - began > 1:
            output.say(f"{claim.id}: {verdict.verdict}, {time.monotonic() - began:.0f} s of trials")


def settled(wanted: list[Claim], laboratory: Lab) -> dict[Claim, Verdict]:
    """For an interrupted run: the claims whose cells are complete and that need no trials."""
    found = {}
    for claim in wanted:
        trial = claims.Trial(claim.nic)
        if laboratory.has(claims.probes_of(trial, claim.holds) + claims.further_probes(claim)):
            verdict = claims.judge(claim.holds, claims.observe(trial, claim.holds, laboratory))
            if verdict.verdict != claims.FAILS:
                found[claim] = verdict
    return found


def row_of(claim: Claim, verdict: Verdict, laboratory: Lab) -> dict[str, Any]:
    return {
        "id": claim.id,
        "claim": claim.says,
        "source": claim.source,
        "nic": claim.nic,
        "predicate": "; ".join(str(condition) for condition in claim.holds),
        "paper": claim.paper,
        "ours": verdict.ours,
        "otherwise": verdict.otherwise,
        "verdict": verdict.verdict,
        "remark": verdict.remark,
        "measures": "; ".join(
            [told(row) for row in claims.measured(claim, laboratory)]
            + [described(row) for row in claims.tabled(claim, laboratory)]
        ),
        "statements": "; ".join(told(row) for row in claims.stated(claim, laboratory)),
        "note": claim.note,
    }


def told(row: dict[str, Any]) -> str:
    """'writes under way, peak: rw-cp: 1 a packet 8, 2 a packet 10' or 'statement: measure: 1.2: holds'."""
    texts = [str(value) for name, value in row.items() if not name.endswith(claims.A_PACKET)]
    numbers = [f"{name} {value:.4g}" for name, value in row.items() if name.endswith(claims.A_PACKET)]
    return ": ".join([*texts, ", ".join(numbers)] if numbers else texts)


def described(row: dict[str, str]) -> str:
    """'gather, linear: MD/ME P: 1,024 (1: 1), triggered 0, ...' of a claim's table."""
    name, *cells = row.items()
    return f"{name[1]}: " + ", ".join(f"{column} {value}" for column, value in cells if value)


def show_measures(claim: Claim, laboratory: Lab) -> None:
    """What a claim is measured by, and which of the paper's statements hold under which measure."""
    if rows := claims.tabled(claim, laboratory):
        columns = list(rows[0])
        cells = [list(row.values()) for row in rows]
        output.show(output.table(columns, cells, foldable={"reason"}, title=claim.id), keys=1)
    if rows := claims.measured(claim, laboratory):
        columns = list(rows[0])
        cells = [
            [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]
            for row in rows
        ]
        numeric = {column for column in columns if column.endswith(claims.A_PACKET)}
        output.show(
            output.table(
                columns, cells, numeric=numeric, title=f"{claim.id} by what is counted, blocks a packet"
            ),
            keys=2,
        )
    if rows := claims.stated(claim, laboratory):
        columns = list(rows[0])
        cells = [list(row.values()) for row in rows]
        output.show(output.table(columns, cells, foldable={"statement"}))
    if claim.note:
        click.echo(click.wrap_text(claim.note, 110))


def shown(rows: list[dict[str, Any]]) -> Any:
    columns = ["id", "claim", "paper", "ours", "verdict", "remark"]
    return output.table(columns, [[str(row[column]) for column in columns] for row in rows], numeric={"id"})


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    results.check_writable(out)
    files.write(out / FILES[0], results.as_csv(rows, list(rows[0])))
    files.write(out / FILES[1], json.dumps(rows, indent=1) + "\n")


# ---- the checked-in table ----


def read_table(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Trouble(
            "environment", f"there is no table {path} to compare with; --update writes it"
        ) from None
    except (OSError, ValueError) as error:
        raise Trouble("invalid", f"the table {path} cannot be read: {error}") from None


def summary(table: dict[str, Any]) -> str:
    """'claims of the papers: 7 hold, 2 explained (DDT-3, DDT-5), ...'"""
    groups: dict[str, list[str]] = {}
    for name, row in table["claims"].items():
        groups.setdefault(row["verdict"], []).append(name)
    parts = [
        f"{len(names)} {PLURAL.get(verdict, verdict)}"
        + ("" if verdict == claims.HOLDS else f" ({', '.join(names)})")
        for verdict, names in sorted(groups.items(), key=lambda item: list(ORDER).index(item[0]))
    ]
    return f"claims of the papers, as last validated: {', '.join(parts)}"


PLURAL = {claims.HOLDS: "hold", claims.FAILS: "fail"}
ORDER = (claims.HOLDS, claims.EXPLAINED, claims.FAILS, claims.NOT_AVAILABLE)


def update_table(path: Path, rows: list[dict[str, Any]], laboratory: Lab) -> None:
    old = json.loads(path.read_text(encoding="utf-8"))["claims"] if path.exists() else {}
    fresh = {
        row["id"]: {name: row[name] for name in ("verdict", "ours", "otherwise", "remark")}
        | {name: row[name] for name in ("measures", "statements") if row[name]}
        for row in rows
    }
    kept = {name: fresh.get(name, old.get(name)) for name in claims.claims() if name in fresh or name in old}
    document = {"images": results.image_hashes(laboratory.images), "claims": kept}
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, json.dumps(document, indent=1) + "\n")


def differences(rows: list[dict[str, Any]], path: Path, laboratory: Lab) -> list[str]:
    """One line for each changed verdict; none without a table. What could not be tried has not changed."""
    if not path.exists():
        return []
    table = read_table(path)
    changed = []
    for row in [row for row in rows if row["verdict"] != claims.NOT_AVAILABLE]:
        before = table["claims"].get(row["id"], {"verdict": "absent", "ours": "-"})
        if before.get("statements", "") != row["statements"]:
            changed.append(f"{row['id']}: '{before.get('statements', '')}' became '{row['statements']}'")
        if before["verdict"] != row["verdict"]:
            now = f"'{row['verdict']}' ({row['ours']})"
            changed.append(f"{row['id']}: '{before['verdict']}' ({before['ours']}) became {now}")
    if changed:
        if table["images"] != results.image_hashes(laboratory.images):
            changed.append("handler images differ from those of the table")
        changed.append("if the change is right: spinloom validate --update")
    return changed
