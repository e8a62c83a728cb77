"""`spinloom paper study`: small experiments of the papers, from simulations that run now."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import click

from spinloom.common import csv_text, files, output, pictures, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import results
from spinloom.papers import overlap, spc, station_studies, storage, studies, study_plots
from spinloom.papers.lab import Lab
from spinloom.verbs import options
from spinloom.verbs.options import fixed_nic_option, form_options, out_option, quiet_option, workers_option
from spinloom.verbs.stopping import stoppable

RANKS_MAX = 4096


@click.command(
    epilog="Examples: spinloom paper study pingpong; spinloom paper study ping --out out/studies; "
    "spinloom paper study all --out out/studies; spinloom paper study spc Financial1.spc.bz2"
)
@click.argument("name", metavar="NAME|all")
@click.argument("traces", metavar="[TRACE...]", nargs=-1, type=click.Path(path_type=Path))
@out_option("DIR", "Folder for CSV and SVG.", folder=True)
@click.option(
    "-n",
    "--ranks",
    "ranks_text",
    metavar="LIST",
    help="Ranks of the study 'overlap', such as 4,16,64; otherwise up to 256.",
)
@click.option(
    "--size",
    "size_text",
    metavar="LIST",
    help="Sizes of the study 'overlap', such as 4KiB,1MiB; otherwise 50 B.",
)
@workers_option
@quiet_option
@fixed_nic_option
@form_options
def study(
    name: str,
    traces: tuple[Path, ...],
    out: Path | None,
    ranks_text: str | None,
    size_text: str | None,
    workers: int,
    quiet: bool,
    form: str,
) -> None:
    """Run a small experiment of the papers.

    NAME is pingpong, accumulate, broadcast, raid; groups over switches that run handlers: multicast, reduce,
    allreduce; collective operations while the host computes: overlap; storage traces: spc; whole programs:
    applications, fft2d, offloaded; or FPsPIN's Ethernet NIC beside what its authors measured: ping,
    slmp-types, slmp-overlap, slmp-window.

    The first four send one message at a time: by RDMA and the host's processor, by Portals 4's triggered
    operations, and by handlers on the NIC (store, stream). Times are modelled; every byte that is moved or
    computed was compared. Whole programs are skeletons, generated and not recorded; those of offloaded were
    recorded, on fewer ranks. Generated are also the requests of spc, unless TRACE names files in the SPC
    trace format, which may be compressed (.gz, .bz2, .xz). With --out, writes NAME.csv and NAME.svg, for spc
    also the generated traces, MIX.generated.spc; existing files of these names are replaced.
    """
    wanted = of_other_numbers(with_traces(studies.studies_named(name), traces), ranks_text, size_text)
    laboratory = Lab(workers or os.cpu_count() or 1)
    began = time.monotonic()
    with stoppable() as stop, progress(0, quiet) as bar:
        laboratory.run([probe for each in wanted for probe in studies.probes(each)], bar)
    tables = {each: studies.rows(each, laboratory) for each in wanted if laboratory.has(studies.probes(each))}
    if form == "table":
        for each, rows in tables.items():
            for nic in each.nics:
                output.show(table_of(each, nic, rows))
    else:
        output.emit([row for rows in tables.values() for row in rows], form, lambda: None)
    if out is not None and tables:
        save(tables, out)
    if stop.was_stopped:
        stop.leave(f"{len(tables)} of {len(wanted)} studies were done; of the others nothing is printed")
    if form == "table":
        output.say(f"{len(laboratory.readings)} cells; host time {time.monotonic() - began:.1f} s")


def with_traces(wanted: list[studies.Study], traces: tuple[Path, ...]) -> list[studies.Study]:
    """The studies with the traces to read. Raises Trouble('invalid') if they are not the study spc alone."""
    if not traces:
        return wanted
    if len(wanted) > 1 or not wanted[0].mixes:
        raise Trouble(
            "invalid", f"{traces[0]}: only the study 'spc' reads traces: spinloom paper study spc TRACE..."
        )
    title = wanted[0].title.removesuffix(" (generated input)")
    source = wanted[0].source.partition(";")[0]
    return [dataclasses.replace(wanted[0], title=title, source=source, files=traces)]


def of_other_numbers(
    wanted: list[studies.Study], ranks_text: str | None, size_text: str | None
) -> list[studies.Study]:
    """The studies with these ranks and sizes. Raises Trouble('invalid') if they are not overlap alone."""
    if ranks_text is None and size_text is None:
        return wanted
    if len(wanted) > 1 or not wanted[0].operations:
        raise Trouble("invalid", f"{wanted[0].name}: only the study 'overlap' takes --ranks and --size")
    changed = wanted[0]
    if ranks_text is not None:
        changed = dataclasses.replace(
            changed, ranks=tuple(options.numbers("--ranks", ranks_text, 2, RANKS_MAX))
        )
    if size_text is not None:
        try:
            sizes = tuple(units.parse_bytes(part) for part in size_text.split(","))
        except ValueError as error:
            raise Trouble("invalid", f"--size {size_text}: {error}") from None
        if 0 in sizes:
            raise Trouble("invalid", f"--size {size_text}: give 1 B or more")
        changed = dataclasses.replace(changed, sizes_bytes=sizes)
    overlap.check_memory(changed.operations, changed.sizes_bytes, changed.ranks)
    return [changed]


def table_of(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    if study.station:
        return table_of_station(study, nic, [row for row in rows if row["nic"] == nic])
    if study.mixes:
        return table_of_traces(study, nic, [row for row in rows if row["nic"] == nic])
    if study.applications:
        return table_of_programs(study, nic, [row for row in rows if row["nic"] == nic])
    if study.recorded:
        return table_of_recorded(study, nic, [row for row in rows if row["nic"] == nic])
    if study.operations:
        return table_of_operations(study, nic, [row for row in rows if row["nic"] == nic])
    if study.networks:
        return table_of_groups(study, nic, [row for row in rows if row["nic"] == nic])
    times = {
        (row["size_bytes"], row["ranks"], row["way"]): row["time_ps"] for row in rows if row["nic"] == nic
    }
    return output.table(
        ["message", "ranks", *study.ways],
        [
            [
                units.format_bytes(size),
                str(ranks),
                *(units.format_time(times[size, ranks, way]) for way in study.ways),
            ]
            for size in study.sizes_bytes
            for ranks in study.ranks
        ],
        numeric={"message", "ranks", *study.ways},
        title=f"{study.title}; {nic}",
    )


def table_of_operations(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    columns = ["operation", "bytes", "ranks", "way", "latency", "overhead", "of latency", "start"]
    return output.table(
        columns,
        [
            [
                row["operation"],
                units.format_bytes(row["size_bytes"]),
                str(row["ranks"]),
                row["way"],
                units.format_time(row["time_ps"]),
                units.format_time(row["overhead_ps"]),
                f"{row['overhead_percent']:.1f} %",
                units.format_time(row["start_ps"]),
            ]
            for row in rows
        ],
        numeric={*columns} - {"operation", "way"},
        title=f"{study.title}; {nic}",
    )


def table_of_station(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    texts = station_studies.texts(study, rows)
    columns = list(texts[0])
    return output.table(
        columns,
        [list(text.values()) for text in texts],
        numeric={*columns} - {"protocol", "way", "type", "by"},
        title=f"{study.title}; {nic}",
    )


def table_of_groups(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    """Times by way; the bound and the bytes on links are those of the last way, the switches'."""
    points: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        points.setdefault((row["network"], row["size_bytes"], row["ranks"]), []).append(row)
    columns = ["network", "message", "ranks", *study.ways, "bound", "bytes on links", "by rdma"]
    return output.table(
        columns,
        [
            [
                network,
                units.format_bytes(size),
                str(ranks),
                *(units.format_time(row["time_ps"]) for row in group_rows),
                units.format_time(group_rows[-1]["bound_ps"]),
                units.format_bytes(group_rows[-1]["link_bytes"]),
                units.format_bytes(next(row["link_bytes"] for row in group_rows if row["way"] == "rdma")),
            ]
            for (network, size, ranks), group_rows in points.items()
        ],
        numeric={*columns} - {"network"},
        title=f"{study.title}; {nic}",
    )


def table_of_programs(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    columns = ["program", "ranks", "way", "modelled", "communication", "gain", "paper"]
    return output.table(
        columns,
        [
            [
                row["application"],
                str(row["ranks"]),
                row["way"],
                units.format_time(row["time_ps"]),
                f"{row['communication_share']:.1%}",
                f"{row['gain_percent']:.1f} %",
                "" if row["paper_gain_percent"] is None else f"{row['paper_gain_percent']} %",
            ]
            for row in rows
        ],
        numeric={*columns} - {"program", "way"},
        title=f"{study.title}; {nic}",
    )


def table_of_recorded(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    columns = ["program", "ranks", "way", "modelled", "a turn", "its wait", "times less"]
    return output.table(
        columns,
        [
            [
                row["program"],
                str(row["ranks"]),
                row["way"],
                *(units.format_time(row[name]) for name in ("time_ps", "turn_ps", "wait_ps")),
                f"{row['times_less_wait']:.2f}",
            ]
            for row in rows
        ],
        numeric={*columns} - {"program", "way"},
        title=f"{study.title}; {nic}",
    )


def table_of_traces(study: studies.Study, nic: str, rows: list[dict[str, Any]]) -> Any:
    by_trace: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_trace.setdefault(row["trace"], []).append(row)
    columns = ["trace", "requests", "writes", "mean size", *study.ways, "gain"]
    return output.table(
        columns,
        [
            [
                name,
                f"{trace_rows[0]['requests']:,}",
                f"{trace_rows[0]['writes_percent']:.3g} %",
                units.format_bytes(trace_rows[0]["mean_bytes"]),
                *(units.format_time(row["time_ps"]) for row in trace_rows),
                f"{trace_rows[-1]['gain_percent']:.1f} %",
            ]
            for name, trace_rows in by_trace.items()
        ],
        numeric={*columns} - {"trace"},
        title=f"{study.title}; {nic}",
    )


def save(tables: dict[studies.Study, list[dict[str, Any]]], out: Path) -> None:
    results.check_writable(out)
    for each, rows in tables.items():
        files.write(out / f"{each.name}.csv", csv_text.as_csv(rows, each.columns))
        for mix in each.mixes if not each.files else ():
            files.write(out / f"{mix}{storage.GENERATED}", spc.trace_text(storage.generated(mix)))
        if pictures.available():
            draw(each, rows, out)
    if not pictures.available():
        output.say("no SVG: matplotlib is not installed (pip install matplotlib)")


def draw(study: studies.Study, rows: list[dict[str, Any]], out: Path) -> None:
    """One picture, and of collective operations of several sizes one for each."""
    if not study.operations or len(study.sizes_bytes) == 1:
        study_plots.draw(study, rows, out / f"{study.name}.svg")
        return
    for size in study.sizes_bytes:
        single_size = dataclasses.replace(study, sizes_bytes=(size,))
        name = units.format_bytes(size).replace(" ", "")
        study_plots.draw(
            single_size, [row for row in rows if row["size_bytes"] == size], out / f"{study.name}-{name}.svg"
        )
