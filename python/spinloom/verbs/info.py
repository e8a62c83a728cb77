"""`spinloom info`: what this installation is and has, and what its words mean."""

from __future__ import annotations

import os
import platform
import sys

import click

from spinloom import __version__
from spinloom.common import config, core, data, output
from spinloom.handlers import toolchain
from spinloom.nics import jobs, results
from spinloom.verbs.groups import Group
from spinloom.verbs.options import form_options


@click.group(
    cls=Group,
    places={
        "versions": "info:versions",
        "settings": "info:settings",
        "nics": "info_nics:nics",
        "hosts": "info_nics:hosts",
        "workloads": "info_workloads:workloads",
        "columns": "info:columns",
        "live": "info:live",
    },
    default="versions",
    no_args_is_help=False,
    epilog="Examples: spinloom info; spinloom info nics; spinloom info workloads MILC; "
    "mpiexec -n 4 spinloom info live",
)
def info() -> None:
    """Show versions, settings, profiles, datatypes and columns.

    `spinloom info` is `spinloom info versions`.
    """


@click.command(epilog="Example: spinloom info versions --csv")
@form_options
def versions(form: str) -> None:
    """Show versions of the parts, and hashes of handler images."""
    rows = [{"part": part, "value": value} for part, value in parts().items()]
    show(["part", "value"], rows, form)


@click.command(epilog="Example: spinloom info settings")
@form_options
def settings(form: str) -> None:
    """Show every environment variable.

    Each has its value, where that comes from, and what it means.
    """
    show(["variable", "value", "origin", "meaning"], config.listing(), form)


@click.command(epilog="Example: spinloom info columns")
@form_options
def columns(form: str) -> None:
    """Show what the columns of results mean.

    Those of 'spinloom simulate' and 'spinloom predict'. With --send or --together, rows have columns of
    'simulate', too.
    """
    from spinloom.verbs.columns import rows  # it needs the modules of all these results

    show(["command", "column", "meaning"], rows(), form)


@click.command(epilog="Examples: spinloom info live; mpiexec -n 4 spinloom info live")
def live() -> None:
    """Show the live NIC of this machine or job.

    It has the launcher, the limits, and how each rank of the job reaches the others.
    """
    # spinloom-info takes part in the launcher's exchange as a rank: it must be this process.
    program = jobs.installed_file("bin", "spinloom-info")
    sys.stdout.flush()
    os.execv(program, [str(program)])


def show(names: list[str], rows: list[dict[str, str]], form: str) -> None:
    output.emit(rows, form, lambda: output.table(names, [list(row.values()) for row in rows]))


def parts() -> dict[str, str]:
    hashes = results.image_hashes(data.handler_images())
    return {
        "spinloom": __version__,
        "python": platform.python_version(),
        "engine": "present" if core.available() else "missing",
        "handler compiler": f"ziglang {toolchain.COMPILER_VERSION} (here: {toolchain.compiler_version()})",
        "profiles": str(data.folder("nics")),
        "workloads": str(data.folder("workloads")),
        **{f"image {name}": f"sha256 {digest}" for name, digest in hashes.items()},
    }
