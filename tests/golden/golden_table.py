"""Golden predictions: the demo under every strategy, and points of figures, as checked-in numbers.

    .venv/bin/python tests/golden/golden_table.py            # compare; prints what differs, exits with 1
    .venv/bin/python tests/golden/golden_table.py --update   # write what comes out now

predictions.csv, figures.csv and, of the sender's side, sending.csv hold the numbers, images.csv the SHA-256
of the handler images they belong to.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from dataclasses import replace
from pathlib import Path

from spinloom.common import csv_text, data, files
from spinloom.nics import profiles, results, sending, sweep, workloads
from spinloom.nics.strategies import DIRECT, STRATEGIES
from spinloom.nics.sweep import Cell, Setup
from spinloom.papers import figure_tables
from spinloom.papers.lab import Lab

FOLDER = Path(__file__).resolve().parent
NIC = "sc19-slingshot"
KEY = ["application", "datatype", "strategy"]
NUMBERS = ["status", "time_ps", "handler_cycles_per_packet", "handler_cycles_max", "nic_memory_bytes"]
POINT = ["figure", "nic", "strategy", "service_ns", "x"]
FIGURES = ["2", "9c", "10", "11", "13a", "sc17-4", "sc17-7a"]
SENT = (("MILC", "16^4"), ("FFT2D", "N=512 P=4"), ("SW4_y", "h100 p64 nc3 slow"), ("WRF_y", "2x2"))
SENT_NUMBERS = ["status", "send_time_ps", "host_busy_ps", "handler_cycles_per_packet", "nic_memory_bytes"]
UPDATE = ".venv/bin/python tests/golden/golden_table.py --update"


def setup() -> Setup:
    profile = profiles.load(NIC)
    return Setup(
        profile=profile.native(),
        images=data.handler_images(),
        hpus=profile["hpu.count"],
        mtu=profile["link.payload"],
        order="in",
        seed=1,
    )


def tables() -> dict[str, list[dict[str, str]]]:
    """{file name: rows of text}, from simulations that run now."""
    settings = setup()
    cells = [Cell(row, strategy) for row in workloads.demo() for strategy in STRATEGIES if strategy != DIRECT]
    table = results.build(cells, sweep.run(cells, settings, os.cpu_count() or 1), settings)
    predictions = as_text(table.rows, KEY + NUMBERS)
    images = [
        {"image": name, "sha256": digest} for name, digest in results.image_hashes(settings.images).items()
    ]
    return {
        "predictions.csv": predictions,
        "figures.csv": points(),
        "sending.csv": sent(settings),
        "images.csv": images,
    }


def points() -> list[dict[str, str]]:
    """The quick cut through figures over block sizes and the like."""
    laboratory = Lab(os.cpu_count() or 1)
    rows = []
    for name in FIGURES:
        figure = figure_tables.figures()[name]
        laboratory.run(cell.probe for cell in figure_tables.cells(figure, True))
        for row in figure_tables.rows(figure, True, laboratory):
            rows.append({"service_ns": "", **row, "x": row[figure.axis], "value": row[figure.measure]})
    return as_text(rows, [*POINT, "value", "time_ps"])


def sent(settings: Setup) -> list[dict[str, str]]:
    settings = replace(settings, send=True)
    cells = [Cell(workloads.row(*name), strategy) for name in SENT for strategy in sending.STRATEGIES]
    table = sending.build(cells, sweep.run(cells, settings, os.cpu_count() or 1), settings)
    return as_text(table.rows, KEY + SENT_NUMBERS)


def as_text(rows: list[dict], columns: list[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text.as_csv(rows, columns))))


def differences(old: list[dict[str, str]], new: list[dict[str, str]], key: list[str]) -> list[str]:
    """One line a row that came, went or changed: which numbers, from what to what, and by how much."""
    before = {tuple(row[name] for name in key): row for row in old}
    after = {tuple(row[name] for name in key): row for row in new}
    lines = [f"- {' '.join(name)}: gone" for name in before if name not in after]
    lines += [f"+ {' '.join(name)}: new" for name in after if name not in before]
    for name, row in after.items():
        old_row = before.get(name, row)
        changes = [
            f"{column} {old_row.get(column) or '-'} -> {value or '-'}{percent(old_row.get(column), value)}"
            for column, value in row.items()
            if old_row.get(column) != value
        ]
        if changes:
            lines.append(f"~ {' '.join(name)}: {', '.join(changes)}")
    return lines


def percent(was: str | None, now: str) -> str:
    try:
        return f" ({float(now) / float(was or 0) - 1:+.2%})"
    except (ValueError, ZeroDivisionError):
        return ""


def read(name: str) -> list[dict[str, str]]:
    path = FOLDER / name
    return list(csv.DictReader(path.open(newline="", encoding="utf-8"))) if path.exists() else []


def compare() -> list[str]:
    """Empty when nothing changed."""
    now = tables()
    lines = differences(read("predictions.csv"), now["predictions.csv"], KEY)
    lines += differences(read("figures.csv"), now["figures.csv"], POINT)
    lines += differences(read("sending.csv"), now["sending.csv"], KEY)
    images = differences(read("images.csv"), now["images.csv"], ["image"])
    return lines + [line[:60] + "..." if len(line) > 60 else line for line in images]


def update() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, rows in tables().items():
        files.write(FOLDER / name, csv_text.as_csv(rows, list(rows[0])))


if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        update()
    elif lines := compare():
        print("\n".join(lines), f"if the change is right: {UPDATE}", sep="\n")
        sys.exit(1)
