"""`spinloom explain`: what a datatype is, and what each way to move it costs and why."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import click

from spinloom import layout
from spinloom.accelerate import calibration, explain_gpu, measured
from spinloom.accelerate import explain as facts_of
from spinloom.accelerate.explain import Way
from spinloom.accelerate.measured import Measured
from spinloom.common import csv_text, files, output, units
from spinloom.layout import picture
from spinloom.nics import strategies, targets
from spinloom.nics.machines import Machine
from spinloom.nics.pages import page
from spinloom.nics.sweep import Cell
from spinloom.nics.workloads import Row
from spinloom.verbs import completion
from spinloom.verbs.explain_live import Live
from spinloom.verbs.options import form_options, life_page_option, machine_options, plot_option

TEXT_SHOWN = 400  # characters of a text form or normal form; --json has all


@click.command(
    epilog="Examples: spinloom explain 'vector(512, 16, 32, double)'; spinloom explain MILC:16^4 --json; "
    "spinloom explain halo.py:face --plot face.svg"
)
@click.argument(
    "target",
    metavar="TYPE|FILE.py:OBJECT|REPORT.json:NUMBER|APPLICATION:DATATYPE",
    shell_complete=completion.of(completion.datatypes),
)
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(0, (1 << 63) - 1),
    default=1,
    show_default=True,
    help="Elements.",
)
@machine_options
@click.option(
    "--strategies",
    "strategy_text",
    metavar="NAMES",
    shell_complete=completion.of_list(completion.strategies),
    default="all",
    show_default=True,
    help="NIC strategies to simulate, with commas between them, 'all' or 'none'.",
)
@plot_option("FILE.svg", "Also draw the first elements in memory.")
@life_page_option
@click.option(
    "--measure", is_flag=True, help="Also time it here: ours, loops by hand, NumPy, every MPI found."
)
@click.option(
    "--live",
    is_flag=True,
    help="Also what 'spinloom run' would do with it between two processes here: which way, why, how long.",
)
@form_options
def explain(
    target: str,
    count: int,
    machine: Machine,
    strategy_text: str,
    plot: Path | None,
    page_path: Path | None,
    measure: bool,
    live: bool,
    form: str,
) -> None:
    """Say in advance what a datatype costs.

    Sizes, bounds, blocks, normal form and compact program; then each way to move one message with its time
    and the resource that bounds it: host times as this machine was calibrated, modelled times of a NIC, and
    what a GPU's memory needs at least.
    --measure times it here as well, beside what a program would do otherwise, and says in one sentence which
    way to take. --live sends it between two processes of this machine by each way of 'spinloom run', and says
    which one that would choose.
    """
    row = targets.resolve(target, count)
    facts = facts_of.facts(row)
    prices, remark = calibration.load()
    ways = facts_of.host_ways(row, facts, prices, machine.profile)
    if strategy_text != "none" and facts["message_bytes"] > 0:
        ways += facts_of.nic_ways(row, facts, machine, strategies.parse(strategy_text))
    ways += explain_gpu.ways(row, facts)
    timed = measured.measure(row, facts) if measure else []
    sent = Live.of(row) if live else None
    if form == "csv":
        rows = rows_of(ways, timed, sent)
        columns = [field.name for field in fields(Way)]
        output.echo(csv_text.as_csv(rows, [*columns, "by"] if timed or sent else columns), nl=False)
    elif form == "json":
        document = {
            **facts,
            "nic": machine.profile.name,
            "host": machine.profile.host,
            "calibration": prices.origin,
            "ways": [asdict(way) for way in ways],
            "advice": measured.advice(row.type, facts),
            **measured_document(timed),
            **(sent.document() if sent else {}),
        }
        output.echo(json.dumps(document, indent=1))
    else:
        show(row, facts, ways, machine, prices.identity["processor"])
        if timed:
            output.show(measured_table(ways, timed))
            output.echo(measured.verdict(timed))
        if sent:
            output.show(sent.table())
            for choice in sent.choices:
                output.echo(f"{choice.memory}: {choice.way}, because {choice.why}")
        for advice in measured.advice(row.type, facts):
            output.echo(f"advice: {advice}")
    for sentence in (remark, sent.prices.remark if sent else ""):
        if sentence:
            output.say(sentence)
    if plot is not None:
        write_picture(row, plot)
    if page_path is not None:
        cells = [Cell(row, name) for name in strategies.parse(strategy_text)]
        output.say(page.save(page_path, cells, machine.setup(), str(machine.profile)))


def rows_of(ways: list[Way], timed: list[Measured], sent: Live | None) -> list[dict[str, Any]]:
    """Each way with its time; with --measure and --live also who found which time here."""
    rows = [asdict(way) for way in ways]
    if not timed and sent is None:
        return rows
    rows = [{**row, "by": "predicted" if row["kind"] == "host" else "simulated"} for row in rows]
    rows += sent.rows() if sent else []
    return rows + [
        {"path": path, "kind": "host", "time_ps": round(way.times_ns[operation] * 1000), "by": way.name}
        for operation, path in measured.NAMES.items()
        for way in timed
        if operation in way.times_ns
    ]


def measured_document(timed: list[Measured]) -> dict[str, Any]:
    if not timed:
        return {}
    return {"measured": [asdict(way) for way in timed], "verdict": measured.verdict(timed)}


def measured_table(ways: list[Way], timed: list[Measured]) -> Any:
    """Each movement by each way; what was predicted stands beside ours."""
    predicted = {way.path: way.time_ps for way in ways if way.kind == "host"}
    ours = next(way for way in timed if way.name == measured.OURS)
    rows = []
    for operation, path in measured.NAMES.items():
        for way in timed:
            if operation not in way.times_ns:
                continue
            time_ps = predicted.get(path) if way is ours else None
            rows.append(
                [
                    path,
                    way.name + (" of as many bytes" if way.name == measured.MEMCPY else ""),
                    units.format_time(time_ps) if time_ps is not None else "-",
                    units.format_time(round(way.times_ns[operation] * 1000)),
                    f"{way.times_ns[operation] / ours.times_ns[operation]:.2f}",
                ]
            )
    return output.table(
        ["way", "by", "predicted", "measured", "over ours"],
        rows,
        numeric={"predicted", "measured", "over ours"},
        title="Measured on this machine now, in host time: medians, caches as repeated use leaves them.",
    )


def write_picture(row: Row, path: Path) -> None:
    files.write(path, picture.draw(layout.from_text(row.type)))
    output.say(f"{path}: the first elements in memory")


def cut(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 3] + "..."


def described(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts as label and sentence."""
    size, true_lb, lb = facts["size_bytes"], facts["true_lb_bytes"], facts["lb_bytes"]
    true_ub, ub = true_lb + facts["true_extent_bytes"], lb + facts["extent_bytes"]
    lines = [
        ("type", cut(facts["text"])),
        (
            "size",
            f"{size:,} B"
            + (f", {facts['count']:,} of them: {facts['message_bytes']:,} B" if facts["count"] != 1 else ""),
        ),
        ("extent", f"{facts['extent_bytes']:,} B, from {lb:,} to {ub:,}"),
        ("data", f"from {true_lb:,} to {true_ub:,}: true extent {facts['true_extent_bytes']:,} B"),
        ("blocks", blocks_line(facts)),
        ("normal form", cut(facts["normal_form"])),
        (
            "passes",
            ", ".join(f"{name} ({times:,})" for name, times in facts["passes"].items()) or "none fired",
        ),
        ("program", f"{facts['blob_bytes']:,} B, {facts['blob_width']} bits, {facts['blob_depth']} deep"),
        ("kernel", facts["kernel"]),
    ]
    if facts["density"] is not None and facts["density"] <= 1:  # more: blocks overlap
        lines.insert(4, ("density", f"{facts['density']:.3g} of the bytes between first and last"))
    if facts["no_receive"]:
        lines.append(("receive", facts["no_receive"]))
    return lines


def blocks_line(facts: dict[str, Any]) -> str:
    least, most = facts["block_bytes_min"], facts["block_bytes_max"]
    sizes = f"{least:,} B" if least == most else f"{least:,} to {most:,} B"
    if facts["blocks"] < 2:
        return f"{facts['blocks']:,} of {sizes}"
    backward = facts["blocks"] - 1 - facts["blocks_forward"]
    order = f"{backward:,} of them before the end of the one before" if backward else "in the order of memory"
    return f"{facts['blocks']:,} of {sizes}, {order}"


def histogram(facts: dict[str, Any]) -> Any:
    """Blocks by size, with a bar for their share of the bytes."""
    total = facts["message_bytes"]
    rows = []
    for size_class in facts["histogram"]:
        first, share = size_class["bytes_from"], size_class["bytes"] / total
        rows.append(
            [
                f"{first:,} to {2 * first - 1:,} B",
                f"{size_class['blocks']:,}",
                f"{share:.1%}",
                "#" * round(30 * share),
            ]
        )
    return output.table(
        ["block size", "blocks", "of the bytes", ""], rows, numeric={"blocks", "of the bytes"}
    )


def show(row: Row, facts: dict[str, Any], ways: list[Way], machine: Machine, processor: str) -> None:
    title = f"{row.application} {row.datatype}".strip() if row.application != "custom" else ""
    about = output.table(
        ["", ""], [[label, words] for label, words in described(facts)], foldable={""}, title=title
    )
    about.show_header = False
    output.show(about)
    if len(facts["histogram"]) > 1:
        output.show(histogram(facts))
    host_ways = [way for way in ways if way.kind == "host"]
    if host_ways:
        title = (
            f"One message on this machine's CPU, in host time: predicted for {processor}, caches as repeated "
        )
        output.show(table_of(host_ways, f"{title}use leaves them, no network latency."))
    modelled = [way for way in ways if way.kind == "modelled"]
    if modelled:
        title = (
            f"One message received, in modelled time on {machine.profile}: first byte to completion event, "
            "the modelled host's caches cold but for host-warm."
        )
        output.show(table_of(modelled, title))
    if gpu_ways := [way for way in ways if way.kind == explain_gpu.KIND]:
        title = "One message in a GPU's memory: what its memory takes at least; the launch comes on top."
        output.show(table_of(gpu_ways, title))


def table_of(ways: list[Way], title: str) -> Any:
    return output.table(
        ["way", "time", "bound", "about"],
        [
            [
                way.path,
                units.format_time(way.time_ps) if way.time_ps is not None else "-",
                way.bound or "-",
                way.about,
            ]
            for way in ways
        ],
        numeric={"time"},
        title=title,
    )
