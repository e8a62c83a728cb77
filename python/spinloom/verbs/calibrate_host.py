"""`spinloom calibrate host`: the host model beside cold loops on this machine, and its sensitivities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from spinloom.accelerate import measured_host
from spinloom.common import core, files, output, units
from spinloom.common.errors import Trouble
from spinloom.nics import profiles, workloads
from spinloom.verbs.options import form_options, host_option, nic_option, out_option

WITHIN = 0.25  # relative to the measurement: close enough for a baseline
REPETITIONS = 15
# Sensitivity: each part of the model changed alone.
SLOWER_LINES = 1.5
DEARER_BLOCKS = 2
LAST_LEVEL_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")


@click.command(
    "host",
    epilog="Examples: spinloom calibrate host --json; spinloom calibrate host -o mine.toml, then "
    "spinloom simulate MILC --host mine.toml",
)
@nic_option
@host_option
@click.option("--all", "everything", is_flag=True, help="Every row of the paper's figures, not the demo's.")
@out_option("FILE.toml", "Instead: measure this machine, and write a host profile for --host.")
@form_options
def host_verb(nic: str, host: str | None, everything: bool, out: Path | None, form: str) -> None:
    """Compare the model of the host with this machine.

    Or, with --out, write a host profile of this machine. The model counts lines that prefetchers bring, lines
    that they do not, lines evicted on the way, and blocks, each with a cost. 'here' is the model with the
    costs and the cache of this machine, to be compared with 'measured'; 'model' is with the profile's, which
    'spinloom simulate' uses. Measured times are host time.
    """
    profile = profiles.load(nic, host)
    if out is not None:
        write(out, profile)
        return
    rows = workloads.paper() if everything else workloads.demo()
    table = [as_row(row) for row in compare(rows, profile)]
    output.emit(table, form, lambda: show(table))


def write(path: Path, profile: profiles.Profile) -> None:
    files.write(path, measured_host.text(path.stem, measured_host.measure(), profile.entries["host.call"]))
    output.say(f"{path}: this machine as a host; use it with --host {path}")


def cache_here(profile: profiles.Profile) -> tuple[tuple[str, str], ...]:
    """The change of a profile to this machine's last-level cache; none if its size is not known."""
    try:
        text = LAST_LEVEL_CACHE.read_text().strip().replace("K", " KiB").replace("M", " MiB")
        size_bytes = units.parse_bytes(text)
    except (OSError, ValueError, Trouble):
        return ()
    set_bytes = profile["host.line"] * profile["host.cache_ways"]
    return (("host.cache", f"{size_bytes // set_bytes * set_bytes} B"),)


def compare(rows: list[workloads.Row], profile: profiles.Profile) -> list[dict[str, Any]]:
    """Each row with what the profile predicts, and with its time as measured and by the model here, in ns."""
    engine = core.load()
    rates = engine.measure_host_rates(REPETITIONS)
    profile_here = profiles.changed(profile, cache_here(profile))
    compared = []
    for row in rows:
        predicted = engine.predict_host_unpack(profile.native(), row.type, row.count)
        counted = engine.predict_host_unpack(profile_here.native(), row.type, row.count)
        measured = engine.measure_host_unpack(row.type, row.count, REPETITIONS)
        compared.append(
            {
                "row": row,
                "said": predicted,
                "measured_ns": measured["cold_ns"],
                "here_ns": time_here_ns(counted, rates),
            }
        )
    return compared


def time_here_ns(counted: dict[str, int], rates: dict[str, float]) -> float:
    """The model's sum (src/simulated/node/host_model.hpp) with this machine's costs; an evicted line costs as
    much as a streamed one."""
    return (
        rates["start_ns"]
        + (counted["lines_streamed"] + counted["lines_evicted"]) * rates["streamed_line_ns"]
        + counted["lines_strided"] * rates["strided_line_ns"]
        + counted["lines_scattered"] * rates["scattered_line_ns"]
        + refilled_ns(counted, rates)
        + counted["vector_blocks"] * rates["vector_block_ns"]
        + counted["list_blocks"] * rates["list_block_ns"]
    )


def refilled_ns(counted: dict[str, int], rates: dict[str, float]) -> float:
    """The time of lines that the last level has; none is dearer than the same line from memory."""
    kinds = {
        "streamed": counted["refilled_streamed"],
        "strided": counted["refilled_strided"],
        "scattered": counted["lines_refilled"] - counted["refilled_streamed"] - counted["refilled_strided"],
    }
    return sum(
        lines * min(rates["refilled_line_ns"], rates[f"{kind}_line_ns"]) for kind, lines in kinds.items()
    )


def as_row(compared: dict[str, Any]) -> dict[str, Any]:
    row, predicted = compared["row"], compared["said"]
    lines_ns, blocks_ns = predicted["lines_ps"] / 1000, predicted["blocks_ps"] / 1000
    return {
        "application": row.application,
        "datatype": row.datatype,
        "blocks": predicted["vector_blocks"] + predicted["list_blocks"],
        "lines": predicted["lines_streamed"] + predicted["lines_strided"] + predicted["lines_scattered"],
        "lines_scattered": predicted["lines_scattered"],
        "model_ns": round(lines_ns + blocks_ns, 1),
        "model_slower_lines_ns": round(SLOWER_LINES * lines_ns + blocks_ns, 1),
        "model_dearer_blocks_ns": round(lines_ns + DEARER_BLOCKS * blocks_ns, 1),
        "here_ns": round(compared["here_ns"], 1),
        "measured_ns": round(compared["measured_ns"], 1),
        "here_over_measured": round(compared["here_ns"] / compared["measured_ns"], 3),
        "within": abs(compared["here_ns"] / compared["measured_ns"] - 1) <= WITHIN,
    }


COLUMNS = ["application", "datatype", "blocks", "lines", "scattered"]
TIMES = {
    "model": "model_ns",
    f"{SLOWER_LINES}x line": "model_slower_lines_ns",
    f"{DEARER_BLOCKS}x block": "model_dearer_blocks_ns",
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
                f"{row['lines_scattered']:,}",
                *(units.format_time(round(row[name] * 1000)) for name in TIMES.values()),
                f"{row['here_over_measured']:.2f}",
            ]
            for row in table
        ],
        numeric={"blocks", "lines", "scattered", *TIMES, RATIO},
        title=f"Cold host unpack: within {WITHIN:.0%} of the measurement on {close} of {len(table)} rows",
    )
