"""`spinloom nics`: the NIC profiles and every number in them."""

from __future__ import annotations

import click

from spinloom import output, profiles
from spinloom.verbs import completion
from spinloom.verbs.options import form_options, host_option


@click.command(epilog="Example: spinloom nics sc19-slingshot --csv")
@click.argument("name", required=False, shell_complete=completion.of(completion.nics))
@host_option
@click.option("--hosts", is_flag=True, help="List the host profiles, for --host.")
@form_options
def nics(name: str | None, host: str | None, hosts: bool, form: str) -> None:
    """List the NIC profiles, or every number of one (by NAME or path) with its label and source."""
    if name is None:
        if hosts:
            found = [profiles.load_host(known)[:2] for known in profiles.hosts()]
        else:
            found = [(profile.name, profile.about) for profile in map(profiles.load, profiles.names())]
        rows = [{"name": named, "about": about} for named, about in found]
        output.emit(
            rows, form, lambda: output.table(["profile", "about"], [list(row.values()) for row in rows])
        )
        return
    profile = profiles.load(name, host)
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
            title=f"{profile}: {profile.about}",
        ),
    )
