"""`spinloom paper validate`: the papers' claims, tested on fresh simulations."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from spinloom import __version__
from spinloom.bench import jobs
from spinloom.common import csv_text, data, documents, files, output
from spinloom.common.bar import Bar
from spinloom.common.errors import EXIT_NEGATIVE, Trouble, nearest
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.papers import claims, live_claims
from spinloom.papers.claims import Claim, Verdict
from spinloom.papers.lab import Lab, Probe
from spinloom.predict.grid import log as grid_log
from spinloom.predict.grid.log import Log
from spinloom.verbs.options import form_options, out_option, quiet_option, workers_option
from spinloom.verbs.stopping import stoppable

FILES = ("validate.csv", "validate.json")
KEPT = "claims.jsonl"  # lies beside them while a run has not ended
Result = dict[str, Any]  # result_of()
TABLE = Path("tests/golden/validate.json")  # its place in a checkout
OUTSIDE = f"there is no {TABLE} in this folder; go to a checkout of Spinloom, or name a table with --golden"


@click.command(epilog="Examples: spinloom paper validate; spinloom paper validate --only DDT-2,DDT-7 --json")
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
@out_option(
    "DIR",
    "Write validate.csv and .json here, and keep what is found as it comes: the same command goes on.",
    folder=True,
)
@click.option(
    "--live",
    is_flag=True,
    help="Measure the claims about real processes on this machine instead (host time, a minute).",
)
@workers_option
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
    workers: int,
    force: bool,
    quiet: bool,
    form: str,
) -> None:
    """Test the claims of the papers on fresh simulations.

    Each claim has a predicate, the paper's number and ours. A claim that does not hold is 'explained' in two
    cases: another plausible value of one number of the NIC profile makes it hold and breaks no other claim of
    that NIC, or the numbers themselves show why it differs. Otherwise it 'fails'. Where the papers leave a
    part of the model open, claims are tried with the alternative, too. Exits with 1 when a verdict differs
    from the checked-in table.
    """
    chosen = ctx.get_parameter_source("table_path") is not ParameterSource.DEFAULT
    if update and not chosen and not table_path.parent.is_dir():
        raise Trouble("invalid", f"--update: {OUTSIDE}")
    if last:
        output.echo(summary(read_table(table_path)))
        return
    if live:
        validate_live(only, out, force, quiet, form)
        return
    wanted = select(only)
    if not update and not os.path.exists(table_path):
        if chosen:
            raise Trouble("invalid", f"--golden {table_path}: there is no such table; --update writes one")
        output.say(f"verdicts are compared with nothing: {OUTSIDE}")
    check_free(out, force)
    laboratory = Lab(workers or os.cpu_count() or 1)
    began = time.monotonic()
    results_by_claim: dict[str, Result] = {}
    with stoppable() as stop, kept_in(out, laboratory) as kept_results, progress(0, quiet) as bar:
        for claim in wanted:
            results_by_claim[claim.id] = result = kept_results.get(claim.id) or assessed(
                claim, wanted, laboratory, bar
            )
            kept_results.keep(claim.id, result)
            if not quiet:
                when = (
                    "of the run before"
                    if claim.id in kept_results.earlier
                    else f"{time.monotonic() - began:.0f} s"
                )
                row = result["row"]
                output.say(
                    f"{claim.id} ({len(results_by_claim)} of {len(wanted)}, {when}): "
                    f"{row['verdict']}: {row['ours']}"
                )
    if stop.was_stopped:
        results_by_claim |= settled(
            [claim for claim in wanted if claim.id not in results_by_claim], laboratory
        )
    rows = [result["row"] for result in results_by_claim.values()]
    output.emit(rows, form, lambda: claims_table(rows))
    if form == "table":
        for name, result in results_by_claim.items():
            show_measures(name, result)
        for name, why in claims.absent().items() if only is None else ():
            output.echo(f"{name} is not tested: {why}")
        output.echo(f"{len(laboratory.readings)} cells; host time {time.monotonic() - began:.1f} s")
    if out is not None and rows:
        write(out / "partial" if stop.was_stopped else out, rows)
    if stop.was_stopped:
        where = (
            f" and stand in {out / 'partial'}; the same command goes on" if out is not None and rows else ""
        )
        stop.leave(f"{len(rows)} of {len(wanted)} claims were tested{where}; no table is compared or updated")
    if out is not None:
        (out / KEPT).unlink(missing_ok=True)
    if update:
        update_table(table_path, rows, laboratory)
    elif changed := differences(rows, table_path, laboratory):
        for line in changed:
            output.say(line)
        ctx.exit(EXIT_NEGATIVE)


def check_free(out: Path | None, force: bool) -> None:
    if out is None:
        return
    existing = [name for name in FILES if os.path.exists(out / name)]
    if existing and not force:
        raise Trouble("invalid", f"{out} holds {', '.join(existing)} already; --force overwrites")
    results.check_writable(out)


def validate_live(only: str | None, out: Path | None, force: bool, quiet: bool, form: str) -> None:
    """The claims that are measured here: nothing is compared with a table, because machines differ."""
    by_id = live_claims.live_claims()
    names = list(by_id) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name not in by_id:
            raise Trouble("invalid", f"there is no live claim '{name}'{nearest(name, by_id)}")
    wanted = [by_id[name] for name in names]
    check_free(out, force)
    mpis = jobs.mpis()
    launches = live_claims.messages.QUICK.launches
    needed = (live_claims.MESSAGES, live_claims.TWO_WAYS)
    steps = sum(len(live_claims.rows_of(wanted, kind)) for kind in needed) * launches
    with tempfile.TemporaryDirectory(prefix="spinloom-live-") as folder, progress(steps, quiet) as bar:
        measured = live_claims.measure(wanted, mpis, Path(folder), bar)
    rows = live_claims.judge(wanted, measured)
    output.emit(rows, form, lambda: claims_table(rows))
    if out is not None:
        write(out, rows)


def select(only: str | None) -> list[Claim]:
    by_id = claims.claims()
    names = list(by_id) if only is None else [name.strip() for name in only.split(",")]
    for name in names:
        if name in claims.absent():
            raise Trouble("unsupported", f"{name} is not tested: {claims.absent()[name]}")
        if name not in by_id:
            raise Trouble("invalid", f"there is no claim '{name}'{nearest(name, by_id)}")
    return [by_id[name] for name in names]


class KeptResults:
    """The results by claim that an earlier, interrupted run has kept in a folder, and those that this run
    adds; none without a folder."""

    def __init__(self, log: Log | None, inputs: str) -> None:
        self.log = log
        self.inputs = inputs  # a run of other inputs begins anew
        ours = log.results if log else {}
        self.earlier = {
            key.partition(" ")[0]: result for key, result in ours.items() if key.endswith(f" {inputs}")
        }

    def get(self, claim: str) -> Result | None:
        return self.earlier.get(claim)

    def keep(self, claim: str, result: Result) -> None:
        """Keeps a result, unless it could not be tried here: the next run tries it again."""
        tried = result["row"]["verdict"] != claims.NOT_AVAILABLE
        if self.log is not None and tried and claim not in self.earlier:
            self.log.keep(f"{claim} {self.inputs}", result)


@contextlib.contextmanager
def kept_in(out: Path | None, laboratory: Lab) -> Iterator[KeptResults]:
    if out is None:
        yield KeptResults(None, "")
        return
    inputs = results.digest({"spinloom": __version__, "files": data.fingerprint(laboratory.engine)})
    with grid_log.opened(out, name=KEPT, verb="validate") as log:
        yield KeptResults(log, inputs)


def assessed(claim: Claim, wanted: list[Claim], laboratory: Lab, bar: Bar) -> Result:
    """Runs the claim's first cells, and those of the claims behind it on workers that have nothing to do;
    then searches an explanation if it does not hold."""
    behind = wanted[wanted.index(claim) + 1 :]
    laboratory.run(first_probes(claim), bar, [probe for other in behind for probe in first_probes(other)])
    return result_of(claim, claims.assess(claim, laboratory, bar), laboratory)


def first_probes(claim: Claim) -> list[Probe]:
    return claims.probes_of(claims.Trial(claim.nic), claim.holds)


def settled(wanted: list[Claim], laboratory: Lab) -> dict[str, Result]:
    """For an interrupted run: the claims whose cells are complete and that need no trials."""
    results_by_claim = {}
    for claim in wanted:
        trial = claims.Trial(claim.nic)
        if laboratory.has(claims.probes_of(trial, claim.holds) + claims.further_probes(claim)):
            verdict = claims.judge(claim.holds, claims.observe(trial, claim.holds, laboratory))
            if verdict.verdict != claims.FAILS:
                results_by_claim[claim.id] = result_of(claim, verdict, laboratory)
    return results_by_claim


def result_of(claim: Claim, verdict: Verdict, laboratory: Lab) -> Result:
    """A claim's row, and the tables that are printed beside it."""
    tabled, measured = claims.table_rows(claim, laboratory), claims.measure_rows(claim, laboratory)
    stated = claims.statement_rows(claim, laboratory)
    row = {
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
            [measure_text(each) for each in measured] + [described(each) for each in tabled]
        ),
        "statements": "; ".join(measure_text(each) for each in stated),
        "note": claim.note,
    }
    return {"row": row, "tabled": tabled, "measured": measured, "stated": stated}


def measure_text(row: dict[str, Any]) -> str:
    """'writes under way, peak: rw-cp: 1 a packet 8, 2 a packet 10' or 'statement: measure: 1.2: holds'."""
    texts = [str(value) for name, value in row.items() if not name.endswith(claims.A_PACKET)]
    numbers = [f"{name} {value:.4g}" for name, value in row.items() if name.endswith(claims.A_PACKET)]
    return ": ".join([*texts, ", ".join(numbers)] if numbers else texts)


def described(row: dict[str, str]) -> str:
    """'gather, linear: MD/ME P: 1,024 (1: 1), triggered 0, ...' of a claim's table."""
    name, *cells = row.items()
    return f"{name[1]}: " + ", ".join(f"{column} {value}" for column, value in cells if value)


def show_measures(name: str, result: Result) -> None:
    """Shows what a claim is measured by, and which of the paper's statements hold under which measure."""
    if rows := result["tabled"]:
        columns = list(rows[0])
        cells = [list(row.values()) for row in rows]
        output.show(output.table(columns, cells, foldable={"reason"}, title=name), keys=1)
    if rows := result["measured"]:
        columns = list(rows[0])
        cells = [
            [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]
            for row in rows
        ]
        numeric = {column for column in columns if column.endswith(claims.A_PACKET)}
        output.show(
            output.table(
                columns, cells, numeric=numeric, title=f"{name} by what is counted, blocks a packet"
            ),
            keys=2,
        )
    if rows := result["stated"]:
        columns = list(rows[0])
        cells = [list(row.values()) for row in rows]
        output.show(output.table(columns, cells, foldable={"statement"}))
    if note := result["row"]["note"]:
        output.echo(click.wrap_text(note, 110))


def claims_table(rows: list[dict[str, Any]]) -> Any:
    columns = ["id", "claim", "paper", "ours", "verdict", "remark"]
    return output.table(columns, [[str(row[column]) for column in columns] for row in rows], numeric={"id"})


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    results.check_writable(out)
    files.write(out / FILES[0], csv_text.as_csv(rows, list(rows[0])))
    files.write(out / FILES[1], json.dumps(rows, indent=1) + "\n")
    output.say(f"written: {out}: {', '.join(FILES)}")


# ---- the checked-in table ----


def read_table(path: Path) -> dict[str, Any]:
    try:
        return documents.json(path, "the table ")
    except documents.MissingFile:
        where = OUTSIDE if path == TABLE else f"there is no table {path}; --update writes one"
        raise Trouble("invalid", where) from None


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
    old = read_table(path)["claims"] if os.path.exists(path) else {}
    fresh = {
        row["id"]: {name: row[name] for name in ("verdict", "ours", "otherwise", "remark")}
        | {name: row[name] for name in ("measures", "statements") if row[name]}
        for row in rows
    }
    merged = {
        name: fresh.get(name, old.get(name)) for name in claims.claims() if name in fresh or name in old
    }
    document = {"images": results.image_hashes(laboratory.images), "claims": merged}
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, json.dumps(document, indent=1) + "\n")


def differences(rows: list[dict[str, Any]], path: Path, laboratory: Lab) -> list[str]:
    """Lines that say which verdicts and statements changed; none without a table.

    What could not be tried has not changed.
    """
    if not os.path.exists(path):
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
        changed.append("if the change is right: spinloom paper validate --update")
    return changed
