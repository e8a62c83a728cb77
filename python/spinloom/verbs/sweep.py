"""`spinloom sweep`: a study over parameters, on all cores or a cluster; stopped, it goes on where it was."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from spinloom.common import csv_text, output
from spinloom.common.errors import EXIT_NEGATIVE, Trouble
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.verbs import completion, sweep_tables
from spinloom.verbs.options import form_options, out_option, plot_option, quiet_option, workers_option
from spinloom.verbs.stopping import stoppable


@click.command(
    epilog="Examples: spinloom sweep halo.toml --out out/halo; spinloom sweep datatype=MILC:16^4 "
    "strategy=rw-cp,seek hpus=4..64*2 --out out/hpus --axes hpus time_ps; spinloom sweep "
    "pattern=dissemination ranks=16..65536*4 --out out/scale"
)
@click.argument(
    "what",
    metavar="[FILE.toml] [AXIS=VALUE,VALUE]...",
    nargs=-1,
    shell_complete=completion.of(completion.axes),
)
@out_option(
    "DIR",
    "Where each result is kept as it comes; then sweep.parquet and manifest.json. Needed but for --dry-run.",
    folder=True,
)
@click.option("--fresh", is_flag=True, help="Throw away what DIR has kept.")
@click.option("--axes", nargs=2, metavar="X Y", help="Draw column Y over column X.")
@click.option(
    "--by", metavar="COLUMN,COLUMN", help="A line for each value of these; otherwise of all that varies."
)
@plot_option("FILE.svg|FILE.png", "With --axes: the picture; otherwise DIR/Y-over-X.svg.")
@workers_option
@click.option(
    "--scheduler", metavar="ADDRESS", help="A Dask scheduler, tcp://HOST:PORT, or the file it wrote."
)
@click.option("--slurm", is_flag=True, help="Workers are jobs of Slurm, as [slurm] in FILE says.")
@click.option("--dry-run", is_flag=True, help="Print the cells and run none.")
@quiet_option
@form_options
@click.pass_context
def sweep(
    ctx: click.Context,
    what: tuple[str, ...],
    out: Path | None,
    fresh: bool,
    axes: tuple[str, str] | None,
    by: str | None,
    plot: Path | None,
    workers: int,
    scheduler: str | None,
    slurm: bool,
    dry_run: bool,
    quiet: bool,
    form: str,
) -> None:
    """Run every combination of lists of parameters.

    All become one table. A cell is a message received under a strategy, as 'spinloom simulate' does it, every
    byte compared, or a schedule under LogGOPS, as 'spinloom goal' does it. What DIR has kept is not run
    again: the same command goes on where it was stopped, and another list runs only what is new. All times
    are modelled. --csv also writes DIR/sweep.csv.
    """
    from spinloom.predict.grid import cells as plan
    from spinloom.predict.grid import picture

    spec = spec_of(what)
    cells = plan.cells(spec)
    if dry_run:
        rows = [cell.columns for cell in cells]
        output.emit(rows, form, lambda: sweep_tables.plan(rows, picture.varied(cells, rows)))
        return
    if out is None:
        raise Trouble(
            "invalid",
            f"say where the results of {len(cells):,} cells are kept: --out DIR, such as --out out/sweep; "
            "--dry-run prints the cells and runs none",
        )
    if ctx.get_parameter_source("workers") is ParameterSource.COMMANDLINE and (scheduler or slurm):
        raise Trouble("invalid", "--workers is about this machine, which --scheduler and --slurm are not")
    if scheduler is not None and slurm:
        raise Trouble("invalid", "--scheduler and --slurm: one of them")
    place = Place(scheduler, slurm, workers, spec.slurm, out)
    drawing = drawing_of(out, axes, by, plot)
    prepare(out)
    began = time.monotonic()
    found, ran = run(cells, place, out, fresh, quiet)
    report(ctx, cells, found, ran, place, out, drawing, form, time.monotonic() - began)


def spec_of(words: tuple[str, ...]) -> Any:
    from spinloom.predict.grid import axes

    paths = [word for word in words if "=" not in word]
    if len(paths) > 1:
        raise Trouble(
            "invalid", f"{' and '.join(paths)}: one file at a time; axes are written NAME=VALUE,VALUE"
        )
    spec = axes.read(Path(paths[0])) if paths else axes.Spec()
    return axes.with_arguments(spec, [word for word in words if word not in paths])


@dataclass(frozen=True)
class Place:
    """The place where cells run: processes here, a scheduler's workers, or jobs of Slurm."""

    scheduler: str | None
    slurm: bool
    workers: int
    slurm_options: dict[str, Any]
    out: Path

    def __str__(self) -> str:
        return "slurm" if self.slurm else self.scheduler or "local"

    def client(self, cells: int) -> contextlib.AbstractContextManager[Any]:
        from spinloom.predict.grid import slurm, workers

        if self.slurm:
            return slurm.client(self.slurm_options, self.out / "slurm")
        if self.scheduler is not None:
            return workers.existing(self.scheduler)
        return workers.local(min(cells, self.workers or len(os.sched_getaffinity(0))))

    def patience_s(self) -> float | None:
        """Jobs may wait in Slurm's queue for as long as they must."""
        from spinloom.predict.grid import workers

        return None if self.slurm else workers.NO_WORKER_S


def drawing_of(
    out: Path, columns: tuple[str, str] | None, by: str | None, path: Path | None
) -> tuple[str, str, list[str] | None, Path] | None:
    if columns is None:
        if by is not None or path is not None:
            raise Trouble("invalid", f"{'--by' if by is not None else '--plot'} goes with --axes X Y")
        return None
    from spinloom.predict.grid import picture

    x, y = columns
    path = path or out / f"{y}-over-{x}.svg"
    picture.check(path)
    return x, y, None if by is None else [name.strip() for name in by.split(",")], path


def prepare(out: Path) -> None:
    """Raises Trouble now for what would fail at the end, before anything is computed."""
    from spinloom.predict.grid import log, table

    table.polars()
    results.check_writable(out)
    foreign = [name for name in table.FILES if (out / name).exists()]
    if foreign and not (out / log.NAME).exists():
        raise Trouble("invalid", f"{out} holds {', '.join(foreign)} of another run; give another --out")


def run(cells: list[Any], place: Place, out: Path, fresh: bool, quiet: bool) -> tuple[dict[str, Any], int]:
    """Every cell's result, and how many were computed now."""
    from spinloom.predict.grid import log

    with log.opened(out, fresh) as log_file:
        missing = list({cell.key: cell for cell in cells if cell.key not in log_file.results}.values())
        wanted = len({cell.key for cell in cells})
        if not quiet:
            output.say(f"{wanted:,} cells, {wanted - len(missing):,} of them kept from before in {out}")
        results_by_key = dict(log_file.results)
        done = 0
        try:
            with stoppable() as stop:
                for cell, result in computed(missing, place, quiet):
                    results_by_key[cell.key] = result
                    done += keep(log_file, cell, result)
        except Trouble as trouble:
            message = (
                f"{trouble.message} ({wanted - len(missing) + done} of {wanted} cells are kept in {out})"
            )
            raise Trouble(trouble.code, message) from None
        if stop.was_stopped:
            so_far = sum(cell.key in log_file.results for cell in {cell.key: cell for cell in cells}.values())
            stop.leave(f"{so_far} of {wanted} cells are kept in {out}; the same command goes on from there")
    return results_by_key, len(missing)


def keep(log_file: Any, cell: Any, result: dict[str, Any]) -> bool:
    from spinloom.predict.grid import one

    if one.is_lasting(result):
        log_file.keep(cell.key, result)
    return one.is_lasting(result)


def computed(missing: list[Any], place: Place, quiet: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
    if not missing:
        return
    from spinloom.predict.grid import workers

    with place.client(len(missing)) as client, progress(len(missing), quiet, "modelling") as advance:
        for cell, result in workers.run(missing, client, place.patience_s()):
            yield cell, result
            advance()


def report(
    ctx: click.Context,
    cells: list[Any],
    results_by_key: dict[str, Any],
    ran: int,
    place: Place,
    out: Path,
    drawing: tuple[str, str, list[str] | None, Path] | None,
    form: str,
    host_time_s: float,
) -> None:
    from spinloom.predict.grid import manifest, picture, table

    rows = table.rows(cells, results_by_key)
    failed = table.failed(cells, results_by_key)
    about = manifest.manifest_of(
        cells, results_by_key, ["spinloom", *sys.argv[1:]], ran, str(place), host_time_s
    )
    table.write(out, rows, about, csv=form == "csv")
    if form == "json":
        document = {"rows": rows, "result_hash": about["result_hash"], "failed": len(failed)}
        output.echo(json.dumps(document, indent=1))
    elif form == "csv":
        output.echo(csv_text.as_csv(rows, table.columns(rows)), nl=False)
    else:
        sweep_tables.show(rows, picture.varied(cells, rows), about)
    if drawing is not None:
        x, y, by, path = drawing
        picture.draw(cells, rows, x, y, by, path)
        output.say(f"written: {path}")
    for cell in failed[: sweep_tables.FAILED_SHOWN]:
        output.say(f"{cell}: {results_by_key[cell.key]['status']}: {results_by_key[cell.key]['message']}")
    if failed:
        output.say(f"{len(failed)} of {len(cells)} cells failed; their rows say why, the others have results")
        ctx.exit(EXIT_NEGATIVE)
