"""The two tables that `spinloom simulate --send` prints: speed-ups, and the work of host and NIC."""

from __future__ import annotations

from typing import Any

from spinloom.common import output, units
from spinloom.nics.profiles import Profile
from spinloom.nics.results import Table
from spinloom.nics.sending import BASELINE, TIME
from spinloom.nics.sweep import Setup
from spinloom.verbs import simulate_tables


def show(table: Table, profile: Profile, setup: Setup, host_time_s: float) -> None:
    groups = list(dict.fromkeys((row["application"], row["datatype"]) for row in table.rows))
    strategies = list(dict.fromkeys(row["strategy"] for row in table.rows))
    notes: list[str] = []
    console = output.console()
    hpus = "1 HPU" if setup.hpus == 1 else f"{setup.hpus} HPUs"
    console.print(
        f"Modelled time on {profile}, {hpus}, {units.format_bytes(setup.mtu)} packets, from the sender's "
        f"call until the last byte is in the receiver's memory: the time of {BASELINE}, and each strategy's "
        "speed-up over it."
    )
    named = ["application", "datatype"]
    rows = [simulate_tables.speedup_line(table, group, strategies, notes, time=TIME) for group in groups]
    numeric = {"size", "blocks/pkt", *strategies}
    output.show(
        output.table([*named, "size", "blocks/pkt", *strategies, "bytes"], rows, numeric=numeric), keys=2
    )
    console.print("The sender's CPU at work; with handlers also their cycles a packet, and NIC memory held.")
    rows = [[*group, *(effort(table.get(*group, name)) for name in strategies)] for group in groups]
    output.show(output.table([*named, *strategies], rows, numeric=set(strategies)), keys=2)
    simulate_tables.show_end(table, profile, host_time_s, notes)


def effort(row: dict[str, Any] | None) -> str:
    if row is None or row.get("host_busy_ps") is None:
        return ""
    busy = units.format_time(row["host_busy_ps"])
    cycles = row["handler_cycles_per_packet"]
    return f"{busy}, {cycles:,.0f}, {units.format_bytes(row['nic_memory_bytes'])}" if cycles else busy
