"""Options that several verbs share, and what reads their values.

Contract: read_changes(), read_seeds() and numbers() raise Trouble('invalid') with the accepted form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spinloom.common import core
from spinloom.common.errors import Trouble
from spinloom.nics import machines
from spinloom.verbs import completion


class UpTo(click.IntRange):
    """A whole number from 1 to a limit of the engine, which is read when a value is converted."""

    def __init__(self, limit: str) -> None:
        super().__init__(1)
        self.limit = limit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        self.max = core.limit(self.limit)
        return super().convert(value, param, ctx)


def check_one_form(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> bool:
    """Raises Trouble('invalid') if --json and --csv are both given."""
    if wanted:
        earlier = ctx.meta.setdefault("spinloom.form", parameter.opts[0])
        if earlier != parameter.opts[0]:
            raise Trouble("invalid", f"{earlier} and {parameter.opts[0]}: one form at a time")
    return wanted


def form_options(function: Callable) -> Callable:
    """Adds --json and --csv, which reach the function as `form`: 'json', 'csv' or 'table'."""

    @functools.wraps(function)
    def with_form(*arguments: Any, as_json: bool, as_csv: bool, **options: Any) -> Any:
        return function(*arguments, form="json" if as_json else "csv" if as_csv else "table", **options)

    option = functools.partial(click.option, is_flag=True, callback=check_one_form)
    decorated = option("--csv", "as_csv", help="Print CSV, long format.")(with_form)
    return option("--json", "as_json", help="Print JSON.")(decorated)


def read_changes(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Returns (field, value) of each text: 'hpu.clock=1GHz' becomes ('hpu.clock', '1GHz')."""
    changes = []
    for text in texts:
        field, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not field or not value:
            raise Trouble("invalid", f"--set '{text}': accepted form: FIELD=VALUE, such as hpu.clock=1GHz")
        changes.append((field, value))
    return changes


def read_seeds(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """Returns (first, last): '17' becomes (17, 17), '1..200' (1, 200). Returns None for None."""
    if text is None:
        return None
    first, dots, last = text.partition("..")
    try:
        seeds = int(first), int(last if dots else first)
    except ValueError:
        seeds = 1, 0
    if not 0 <= seeds[0] <= seeds[1]:
        raise Trouble("invalid", f"--seeds {text}: accepted form: A..B with A not above B, such as 1..200")
    return seeds


nic_option = click.option(
    "--nic",
    metavar="NAME",
    envvar="SPINLOOM_NIC",
    default="sc19-slingshot",
    show_default=True,
    shell_complete=completion.of(completion.nics),
    help="NIC profile, by name or path.",
)


def refuse_nic(ctx: click.Context, parameter: click.Parameter, name: str | None) -> None:
    if name is not None:
        raise Trouble(
            "invalid",
            f"{ctx.command_path} has no --nic: its NICs are the papers'; 'spinloom simulate' takes any",
        )


fixed_nic_option = click.option("--nic", hidden=True, expose_value=False, callback=refuse_nic)
host_option = click.option(
    "--host",
    metavar="NAME",
    envvar="SPINLOOM_HOST",
    shell_complete=completion.of(completion.hosts),
    help="Host profile, by name or path: another CPU beside the NIC ('spinloom info hosts').",
)
seed_option = click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    envvar="SPINLOOM_SEED",
    default=1,
    show_default=True,
    help="Seed of every random choice.",
)
workers_option = click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=0),
    envvar="SPINLOOM_WORKERS",
    default=0,
    help="So many at a time on this machine; 0 is one a core.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
set_option = click.option(
    "--set",
    "changes",
    metavar="FIELD=VALUE",
    multiple=True,
    callback=read_changes,
    shell_complete=completion.of(completion.fields),
    help="Change a number of the NIC profile, such as hpu.clock=1GHz; may be repeated. "
    "'spinloom info nics NAME' lists them.",
)
hpus_option = click.option(
    "--hpus",
    metavar="N",
    type=UpTo("hpu_count_max"),
    help="So many handler processors (HPUs) on the NIC; otherwise as many as its profile has.",
)
mtu_option = click.option(
    "--mtu", metavar="BYTES", help="Payload of a packet, such as 2KiB; the profile says otherwise."
)
order_option = click.option(
    "--order",
    metavar="ORDER",
    default="in",
    show_default=True,
    help="'in'; 'window:N': packets shuffled within N, but for the first and the last; 'all:N': those, too.",
)
MACHINE_OPTIONS = (nic_option, host_option, set_option, hpus_option, mtu_option, order_option, seed_option)


def machine_options(function: Callable) -> Callable:
    """Adds --nic, --host, --set, --hpus, --mtu, --order and --seed, which reach the function as `machine`."""

    @functools.wraps(function)
    def with_machine(*arguments: Any, **options: Any) -> Any:
        option_names = ("nic", "host", "changes", "hpus", "mtu", "order", "seed")
        machine = machines.machine(**{name: options.pop(name) for name in option_names})
        return function(*arguments, machine=machine, **options)

    return functools.reduce(
        lambda decorated, option: option(decorated), reversed(MACHINE_OPTIONS), with_machine
    )


def out_option(metavar: str, about: str, folder: bool = False, **more: Any) -> Callable:
    """-o and --out, the file or folder of the results, as the argument `out`."""
    path = click.Path(path_type=Path, file_okay=not folder, dir_okay=folder)
    return click.option("-o", "--out", "out", type=path, metavar=metavar, help=about, **more)


def timeline_option(about: str) -> Callable:
    """--timeline, a file for ui.perfetto.dev, as the argument `timeline_path`."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option("--timeline", "timeline_path", type=path, metavar="FILE", help=about)


def check_ending(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Raises Trouble('invalid') if the name does not end as one of the metavar's. Devices have any name."""
    if path is None or (path.exists() and not path.is_file()):
        return path
    endings = [Path(form).suffix for form in str(parameter.metavar).split("|")]
    if path.suffix not in endings:
        raise Trouble("invalid", f"{parameter.opts[0]} {path}: end the name in {' or '.join(endings)}")
    return path


def plot_option(metavar: str, about: str) -> Callable:
    """--plot, a picture, as the argument `plot`."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option("--plot", "plot", type=path, metavar=metavar, callback=check_ending, help=about)


def page_option(about: str) -> Callable:
    """--page, a web page to look at, as the argument `page_path`."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option(
        "--page", "page_path", type=path, metavar="FILE.html", callback=check_ending, help=about
    )


life_page_option = page_option(
    "Also write a page that shows a message from the wire to memory, one strategy above another; of several "
    "datatypes the first."
)


def ranks_option(about: str, **more: Any) -> Callable:
    """-n and --ranks, as the argument `ranks`."""
    return click.option("-n", "--ranks", "ranks", help=about, **{"metavar": "N", **more})


def numbers(option: str, text: str, least: int, most: int) -> list[int]:
    """Returns the numbers of '2,16,64'. Raises Trouble('invalid') for any not from `least` to `most`."""
    values = []
    for part in text.split(","):
        word = part.strip()
        if not word.isdecimal() or not least <= int(word) <= most:
            raise Trouble("invalid", f"{option} {text}: '{word}' is no number from {least} to {most:,}")
        values.append(int(word))
    return values
