"""`spinloom nics`: the NIC profiles and every number in them."""

from __future__ import annotations

import click

from spinloom import output, profiles
from spinloom.verbs.options import form_options


@click.command(epilog="Example: spinloom nics sc19-slingshot --csv")
@click.argument("name", required=False)
@form_options
def nics(name: str | None, form: str) -> None:
    """List the NIC profiles, or every number of one (by NAME or path) with its label and source."""
    if name is None:
        loaded = [profiles.load(known) for known in profiles.names()]
        rows = [{"name": profile.name, "about": profile.about} for profile in loaded]
        output.emit(
            rows, form, lambda: output.table(["profile", "about"], [list(row.values()) for row in rows])
        )
        return
    profile = profiles.load(name)
    rows = [
        {
            "field": entry.field,
            "value": entry.text,
            "exact": str(entry.value),
            "label": entry.label,
            "source": entry.source,
        }
        for entry in profile.entries.values()
    ]
    output.emit(
        rows,
        form,
        lambda: output.table(
            ["field", "value", "label", "source"],
            [[row["field"], row["value"], row["label"], row["source"]] for row in rows],
            numeric={"value"},
            title=f"{profile.name}: {profile.about}",
        ),
    )
