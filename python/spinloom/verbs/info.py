"""`spinloom info`: this installation, its environment variables, and what the columns of results mean."""

from __future__ import annotations

import platform

import click

from spinloom import __version__, config, core, data, output, results, sending, sharing, toolchain
from spinloom.verbs.options import form_options


@click.command(epilog="Example: spinloom info --config")
@click.option("--config", "what", flag_value="config", help="Environment variables: value, origin, meaning.")
@click.option("--columns", "what", flag_value="columns", help="Columns of the tables that ddt writes.")
@form_options
def info(what: str | None, form: str) -> None:
    """Show versions and handler images, the environment (--config) or the columns (--columns)."""
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
