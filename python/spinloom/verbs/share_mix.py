"""The output of `spinloom share --early`."""

from __future__ import annotations

import json

from spinloom.common import csv_text, output, units
from spinloom.nics import mixes
from spinloom.nics.machines import Machine


def show_mix(mix: mixes.Mix, machine: Machine, form: str) -> None:
    if form == "json":
        about = {
            "nic": machine.profile.name,
            "host": machine.profile.host,
            "messages": mix.messages,
            "evictions": mix.evictions,
            "nic_memory_peak_bytes": mix.nic_memory_peak_bytes,
            "fallbacks": mix.fallbacks,
            "result_hash": mix.result_hash,
        }
        output.echo(json.dumps({**about, "rows": mix.rows}, indent=1))
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
            [*columns, "alone on host"], [mix_line(row) for row in mix.rows], numeric=set(columns[2:])
        )
    )
    for reason in mix.fallbacks:
        console.print(f"on host: {reason}", soft_wrap=True)
    console.print(f"{mix.messages} messages, {mix.evictions} evictions; every byte checked")
    console.print(f"result hash {mix.result_hash}", soft_wrap=True)


def mix_line(row: dict) -> list[str]:
    def time(name: str) -> str:
        return "" if row[name] is None else units.format_time(row[name])

    return [
        f"{row['application']} {row['datatype']}",
        row["strategy"] or "",
        units.format_bytes(row["nic_memory_bytes"]),
        str(row["expected"]),
        time("expected_ps"),
        str(row["on_host"]),
        time("on_host_ps"),
        str(row["unexpected"]),
        time("landing_ps"),
        time("unexpected_ps"),
        time("host_ps"),
    ]
