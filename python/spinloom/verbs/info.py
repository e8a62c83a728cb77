"""`spinloom info`: this installation, its environment variables, and what the columns of results mean."""

from __future__ import annotations

import os
import platform
import sys

import click

from spinloom import __version__
from spinloom.common import config, core, data, output
from spinloom.handlers import toolchain
from spinloom.nics import jobs, results, sending, sharing
from spinloom.verbs.options import form_options


def show_live(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Replaces this process by spinloom-info, which takes part in the launcher's exchange as a rank."""
    if wanted and not ctx.resilient_parsing:
        program = jobs.installed_file("bin", "spinloom-info")
        sys.stdout.flush()
        os.execv(program, [str(program)])


@click.command(epilog="Examples: spinloom info --config; mpiexec -n 4 spinloom info --live")
@click.option("--config", "what", flag_value="config", help="Environment variables: value, origin, meaning.")
@click.option("--columns", "what", flag_value="columns", help="Columns of the tables that ddt writes.")
@click.option(
    "--live",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=show_live,
    help="The live NIC: launcher, limits, and how each rank of the job reaches the others.",
)
@form_options
def info(what: str | None, form: str) -> None:
    """Show versions and handler images, the environment, the columns of results, or the live NIC."""
    if what == "config":
        rows = config.listing()
        columns = ["variable", "value", "origin", "meaning"]
    elif what == "columns":
        rows = [
            {"column": name, "meaning": meaning}
            for name, meaning in {**results.COLUMNS, **sending.COLUMNS, **sharing.COLUMNS}.items()
        ]
        columns = ["column", "meaning"]
    else:
        rows = [{"part": part, "value": value} for part, value in parts().items()]
        columns = ["part", "value"]
    output.emit(rows, form, lambda: output.table(columns, [list(row.values()) for row in rows]))


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
