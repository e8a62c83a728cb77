"""`spinloom paper figure`: the papers' figures again, from cells that run now."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from spinloom.common import csv_text, files, output, pictures
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.papers import figure_plots, figure_tables
from spinloom.papers.lab import Lab, Probe
from spinloom.verbs.options import fixed_nic_option, out_option, quiet_option, workers_option
from spinloom.verbs.stopping import stoppable


@click.command(
    epilog="Examples: spinloom paper figure 8 --out out/figures; "
    "spinloom paper figure all --quick --out out/quick"
)
@click.argument("name", metavar="NAME|all")
@out_option("DIR", "Folder for CSV and SVG.", folder=True, required=True)
@click.option("--quick", is_flag=True, help="Fewer points, and the demo's datatypes only.")
@workers_option
@quiet_option
@fixed_nic_option
def figure(name: str, out: Path, quick: bool, workers: int, quiet: bool) -> None:
    """Draw a figure of the papers from fresh simulations.

    NAME is a figure of the SC'19 paper (2, 8, 9c, 10, 11, 12, 13a, ... 18) or of the SC'17 paper (sc17-4,
    sc17-7a). Writes figNAME.csv, and figNAME.svg when matplotlib is there. Existing files of these names are
    replaced. What cannot be simulated stands in the CSV as "not available" with its reason.
    """
    wanted = figure_tables.figures_named(name)
    results.check_writable(out)
    laboratory = Lab(workers or os.cpu_count() or 1)
    began = time.monotonic()
    with stoppable() as stop, progress(0, quiet) as bar:
        laboratory.run([probe for each in wanted for probe in probes_of(each, quick)], bar)
    done = [each for each in wanted if laboratory.has(probes_of(each, quick))]
    for each in done:
        write(each, figure_tables.rows(each, quick, laboratory), out)
    if not pictures.available():
        output.say("no SVG: matplotlib is not installed (pip install matplotlib)")
    output.echo(
        f"{len(done)} figures of {len(laboratory.readings)} cells in {out}; "
        f"host time {time.monotonic() - began:.1f} s"
    )
    if stop.was_stopped:
        stop.leave(f"{len(done)} of {len(wanted)} figures were complete")


def probes_of(figure: figure_tables.Figure, quick: bool) -> list[Probe]:
    return [probe for cell in figure_tables.cells(figure, quick) for probe in (cell.baseline, cell.probe)]


def write(figure: figure_tables.Figure, rows: list[dict], out: Path) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    files.write(out / f"fig{figure.name}.csv", csv_text.as_csv(rows, columns))
    if pictures.available():
        figure_plots.draw(figure, rows, figure_tables.line_of(figure), out / f"fig{figure.name}.svg")
    lost = sum(row["status"] != "ok" for row in rows)
    if lost:
        output.say(f"figure {figure.name}: {lost} of {len(rows)} points are not available; the CSV says why")
