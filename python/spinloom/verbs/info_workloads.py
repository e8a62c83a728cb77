"""`spinloom info workloads`: the application datatypes that come with Spinloom."""

from __future__ import annotations

from dataclasses import asdict

import click

from spinloom.common import output, units
from spinloom.nics import workloads as catalogue
from spinloom.verbs import completion
from spinloom.verbs.options import form_options


@click.command(epilog="Example: spinloom info workloads MILC --json")
@click.argument("application", required=False, shell_complete=completion.of(completion.applications))
@form_options
def workloads(application: str | None, form: str) -> None:
    """List the applications, or the datatypes of one APPLICATION."""
    if application is None:
        applications = catalogue.applications()
        rows = [
            {"application": each.name, "datatypes": len(each.rows), "about": each.about}
            for each in applications
        ]
        cells = [[row["application"], str(row["datatypes"]), row["about"]] for row in rows]
        output.emit(
            rows,
            form,
            lambda: output.table(["application", "datatypes", "about"], cells, numeric={"datatypes"}),
        )
        return
    chosen = catalogue.application(application)
    output.emit(
        [asdict(row) for row in chosen.rows],
        form,
        lambda: output.table(
            ["datatype", "size", "blocks/pkt", "type"],
            [
                [
                    row.datatype,
                    units.format_bytes(row.size_bytes),
                    f"{row.blocks_per_packet:g}",
                    shortened(row.type),
                ]
                for row in chosen.rows
            ],
            numeric={"size", "blocks/pkt"},
            title=f"{chosen.name}: {chosen.about} ({chosen.source})",
        ),
    )


def shortened(text: str, width: int = 72) -> str:
    """The beginning of a type's text; --json prints all of it."""
    return text if len(text) <= width else text[: width - 3] + "..."
