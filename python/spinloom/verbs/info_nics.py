"""`spinloom info nics` and `info hosts`: the profiles, and every number in them."""

from __future__ import annotations

from pathlib import Path

import click

from spinloom.common import core, data, files, output
from spinloom.common.errors import Trouble
from spinloom.nics import area, machines, profiles, sweep
from spinloom.nics.sweep import Cell
from spinloom.nics.workloads import Row
from spinloom.verbs import completion
from spinloom.verbs.options import form_options, host_option


@click.command(
    epilog="Examples: spinloom info nics sc19-slingshot --csv; spinloom info nics pulp-22nm --area; "
    "spinloom info nics sc19-slingshot --new mine.toml"
)
@click.argument("name", required=False, shell_complete=completion.of(completion.nics))
@host_option
@click.option("--area", "wants_area", is_flag=True, help="Estimate NAME's silicon area and power.")
@click.option(
    "--new",
    "new_path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    help="Write a profile of your own, which takes all numbers of NAME until you change them.",
)
@click.option("--force", is_flag=True, help="Let --new overwrite.")
@form_options
def nics(
    name: str | None, host: str | None, wants_area: bool, new_path: Path | None, force: bool, form: str
) -> None:
    """List the NIC profiles, or every number of one.

    A number has its label and its source. NAME is the name of a profile, or the path of a TOML file.
    """
    if new_path is not None:
        write_new(name, new_path, force)
    elif wants_area:
        show_area(name, form)
    elif name is None:
        show_names([(profile.name, profile.about) for profile in map(profiles.load, profiles.names())], form)
    else:
        profile = profiles.load(name, host)
        refuse_what_cannot_run(profile)
        show_numbers(f"{profile}: {profile.about}", profile.entries, form)


@click.command(epilog="Example: spinloom info hosts zen5")
@click.argument("name", required=False, shell_complete=completion.of(completion.hosts))
@form_options
def hosts(name: str | None, form: str) -> None:
    """List the host profiles, or every number of one.

    They are for --host; a number has its label and its source. NAME is the name of a profile, or the path of
    a TOML file.
    """
    if name is None:
        show_names([profiles.load_host(known)[:2] for known in profiles.hosts()], form)
    else:
        called, about, entries = profiles.load_host(name)
        show_numbers(f"{called}: {about}", entries, form)


def write_new(base: str | None, path: Path, force: bool) -> None:
    if base is None:
        raise Trouble("invalid", "--new: say from which profile, such as sc19-slingshot")
    if path.suffix != ".toml":
        raise Trouble("invalid", f"--new {path}: the name of a profile's file ends with .toml")
    if path.exists() and not force:
        raise Trouble("invalid", f"{path} is there already; --force overwrites")
    files.write(path, profiles.template(path.stem, base))
    output.say(f"written: {path}; use it with --nic {path}")


def show_names(named: list[tuple[str, str]], form: str) -> None:
    rows = [{"name": name, "about": about} for name, about in named]
    output.emit(rows, form, lambda: output.table(["profile", "about"], [list(row.values()) for row in rows]))


def show_numbers(title: str, entries: dict[str, profiles.Entry], form: str) -> None:
    rows = [
        {
            "field": entry.field,
            "value": entry.text,
            "exact": str(entry.value),
            "label": entry.label,
            "source": entry.source,
        }
        for entry in entries.values()
    ]
    output.emit(
        rows,
        form,
        lambda: output.table(
            ["field", "value", "label", "source"],
            [[row["field"], row["value"], row["label"], row["source"]] for row in rows],
            numeric={"value"},
            title=title,
        ),
    )


def refuse_what_cannot_run(profile: profiles.Profile) -> None:
    """Receives one byte on such a NIC, where there is an engine. Raises Trouble('invalid')."""
    if not core.available() or not data.handler_images():
        return
    cell = Cell(Row("check", "one byte", "byte"), "specialised")
    try:
        outcome = sweep.run_cell(core.load(), cell, machines.machine(profile).setup())
        why = "" if outcome.code == "ok" else outcome.message
    except Trouble as trouble:
        why = trouble.message.removeprefix(f"{cell}: ")
    if why:
        raise Trouble("invalid", f"{profile.name} cannot run: {why}")


def show_area(name: str | None, form: str) -> None:
    if name is None:
        raise Trouble("invalid", "--area: say of which NIC, such as pulp-22nm")
    profile = profiles.load(name)
    estimate = area.estimate(profile)
    rows = [
        {"part": part.name, "mge": part.mge, "mm2": part.mm2, "scaled_by": part.scaled_by}
        for part in estimate.parts
    ]
    cells = [
        [
            row["part"],
            f"{row['mge']:.1f}",
            f"{row['mm2']:.1f}",
            f"{row['mge'] / estimate.mge:.0%}",
            row["scaled_by"],
        ]
        for row in rows
    ]
    title = (
        f"{profile.name}, an estimate: {estimate.mge:.0f} MGE, {estimate.mm2:.1f} mm2 in 22 nm, "
        f"{estimate.watts:.1f} W at full load without I/O: the SC'19 paper's synthesis (section 4.4), scaled"
    )
    output.emit(
        rows,
        form,
        lambda: output.table(
            ["part", "MGE", "mm2", "share", "scaled by"], cells, numeric={"MGE", "mm2", "share"}, title=title
        ),
    )
