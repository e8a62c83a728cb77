"""The output of `spinloom simulate --together --early`: a Mix as JSON, CSV or a table.

Contract: show_mix() prints to stdout; `form` is 'json', 'csv' or 'table'. A column 'time' of the table is
about the messages that the last count in front of it counts; 'landed' is the time until an unexpected message
has landed.
"""

from __future__ import annotations

import json

from spinloom.common import csv_text, output, units
from spinloom.nics import mixes
from spinloom.nics.machines import Machine


def show_mix(mix: mixes.Mix, machine: Machine, form: str) -> None:
    if form == "json":
        summary = {
            "nic": machine.profile.name,
            "host": machine.profile.host,
            "messages": mix.messages,
            "evictions": mix.evictions,
            "nic_memory_peak_bytes": mix.nic_memory_peak_bytes,
            "fallbacks": mix.fallbacks,
            "result_hash": mix.result_hash,
        }
        output.echo(json.dumps({**summary, "rows": mix.rows}, indent=1))
        return
    if form == "csv":
        output.echo(csv_text.as_csv(mix.rows, list(mix.rows[0])), nl=False)
        return
    console = output.console()
    console.print(
        f"Modelled time on {machine.profile}, at most {units.format_bytes(mix.nic_memory_peak_bytes)} of "
        f"{units.format_bytes(machine.profile['memory.state_bytes'])} of NIC memory in use: medians, of "
        "expected messages from their put on, of unexpected ones from their receive on."
    )
    columns = [
        "datatype",
        "strategy",
        "holds",
        "expected",
        "time",
        "on host",
        "time",
        "unexpected",
        "landed",
        "time",
    ]
    output.show(
        output.table(
            [*columns, "alone on host"], [table_row(row) for row in mix.rows], numeric=set(columns[2:])
        )
    )
    for reason in mix.fallbacks:
        console.print(f"on host: {reason}", soft_wrap=True)
    console.print(f"{mix.messages} messages, {mix.evictions} evictions; every byte checked")
    console.print(f"result hash {mix.result_hash}", soft_wrap=True)


def table_row(row: dict) -> list[str]:
    def format_ps(name: str) -> str:
        return "" if row[name] is None else units.format_time(row[name])

    return [
        f"{row['application']} {row['datatype']}",
        row["strategy"] or "",
        units.format_bytes(row["nic_memory_bytes"]),
        str(row["expected"]),
        format_ps("expected_ps"),
        str(row["on_host"]),
        format_ps("on_host_ps"),
        str(row["unexpected"]),
        format_ps("landing_ps"),
        format_ps("unexpected_ps"),
        format_ps("host_ps"),
    ]
