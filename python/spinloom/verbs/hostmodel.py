"""`spinloom hostmodel`: the host model against cold loops on this machine, and what it is sensitive to."""

from __future__ import annotations

from typing import Any

import click

from spinloom import core, output, profiles, units, workloads
from spinloom.verbs.options import form_options

WITHIN = 0.25  # of the measurement: close enough for a baseline
REPETITIONS = 15
# Sensitivity: each parameter of the model changed alone.
RATE_PARTS = (2, 3)  # two thirds of the copy rate
BLOCK_TIMES = 2


@click.command(epilog="Example: spinloom hostmodel --json")
@click.option(
    "--nic", envvar="SPINLOOM_NIC", default="sc19-slingshot", show_default=True, help="NIC profile."
)
@click.option("--all", "everything", is_flag=True, help="Every row of the paper's figures, not the demo's.")
@form_options
def hostmodel(nic: str, everything: bool, form: str) -> None:
    """Compare the host model with unpack loops measured here.

    The model has two parameters: the rate at which one core moves cache lines, and the cost of a block.
    'here' is the model with both as measured on this machine, to be compared with 'measured'; 'model' is with
    the profile's, which the speed-ups of ddt use. Measured times are host time.
    """
    profile = profiles.load(nic)
    rows = workloads.paper() if everything else workloads.demo()
    table = [as_row(row, profile) for row in compare(rows, profile)]
    output.emit(table, form, lambda: show(table))


def compare(rows: list[workloads.Row], profile: profiles.Profile) -> list[dict[str, Any]]:
    """Predictions and measurements of each row, in ns."""
    engine = core.load()
    rates = engine.measure_host_rates(REPETITIONS)
    compared = []
    for row in rows:
        said = engine.predict_host_unpack(profile.native(), row.type, row.count)
        measured = engine.measure_host_unpack(row.type, row.count, REPETITIONS)
        lines_bytes = said["lines"] * said["line_bytes"]
        compared.append(
            {
                "row": row,
                "said": said,
                "measured_ns": measured["cold_ns"],
                "here_ns": lines_bytes / rates["line_bytes_per_ns"] + said["blocks"] * rates["block_ns"],
            }
        )
    return compared


def as_row(compared: dict[str, Any], profile: profiles.Profile) -> dict[str, Any]:
    row, said = compared["row"], compared["said"]
    block_ns = float(profile["host.mpitypes_block_cycles"] / profile["host.clock"]) * 1e9
    model_ns = said["time_ps"] / 1000
    lines_ns = model_ns - said["blocks"] * block_ns
    slower_lines_ns = lines_ns * RATE_PARTS[1] / RATE_PARTS[0] + said["blocks"] * block_ns
    return {
        "application": row.application,
        "datatype": row.datatype,
        "blocks": said["blocks"],
        "lines": said["lines"],
        "model_ns": round(model_ns, 1),
        "model_slower_copy_ns": round(slower_lines_ns, 1),
        "model_dearer_block_ns": round(lines_ns + BLOCK_TIMES * said["blocks"] * block_ns, 1),
        "here_ns": round(compared["here_ns"], 1),
        "measured_ns": round(compared["measured_ns"], 1),
        "here_over_measured": round(compared["here_ns"] / compared["measured_ns"], 3),
        "within": abs(compared["here_ns"] / compared["measured_ns"] - 1) <= WITHIN,
    }


COLUMNS = ["application", "datatype", "blocks", "lines"]
TIMES = {
    "model": "model_ns",
    "2/3 rate": "model_slower_copy_ns",
    "2x block": "model_dearer_block_ns",
    "here": "here_ns",
    "measured": "measured_ns",
}
RATIO = "here/measured"


def show(table: list[dict[str, Any]]) -> Any:
    close = sum(row["within"] for row in table)
    return output.table(
        [*COLUMNS, *TIMES, RATIO],
        [
            [
                row["application"],
                row["datatype"],
                f"{row['blocks']:,}",
                f"{row['lines']:,}",
                *(units.format_time(round(row[name] * 1000)) for name in TIMES.values()),
                f"{row['here_over_measured']:.2f}",
            ]
            for row in table
        ],
        numeric={"blocks", "lines", *TIMES, RATIO},
        title=f"Cold host unpack: within {WITHIN:.0%} of the measurement on {close} of {len(table)} rows",
    )
