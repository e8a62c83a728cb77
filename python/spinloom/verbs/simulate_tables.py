"""The two tables that `spinloom simulate` prints for people: speed-ups, and what happens on the NIC."""

from __future__ import annotations

from typing import Any

from spinloom.common import output, units
from spinloom.nics import sweep
from spinloom.nics.profiles import Profile
from spinloom.nics.results import Table
from spinloom.nics.strategies import BASELINE, DIRECT
from spinloom.nics.sweep import Setup


def show(table: Table, profile: Profile, setup: Setup, host_time_s: float) -> None:
    groups = list(dict.fromkeys((row["application"], row["datatype"]) for row in table.rows))
    strategies = list(dict.fromkeys(row["strategy"] for row in table.rows))
    notes: list[str] = []
    console = output.console()
    hpus = "1 HPU" if setup.hpus == 1 else f"{setup.hpus} HPUs"
    console.print(
        f"Modelled time on {profile}, {hpus}, {units.format_bytes(setup.mtu)} packets "
        f"{order_in_words(setup.order)}: the time of {baselines(table)}, and each strategy's speed-up over "
        f"it{means_in_words(table)}."
    )
    named = ["application", "datatype"]
    numeric = {"size", "blocks/pkt", *strategies}
    rows = [speedup_line(table, group, strategies, notes) for group in groups]
    columns = [*named, "size", "blocks/pkt", *strategies, "bytes"]
    output.show(output.table(columns, rows, numeric=numeric), keys=2)

    on_nic = [
        name for name in strategies if any(handler_cycles(table, group, name) is not None for group in groups)
    ]
    if on_nic:
        console.print("On the NIC: cycles of a payload handler, and NIC memory held.")
        rows = [[*group, *(nic_cell(table, group, name) for name in on_nic)] for group in groups]
        output.show(output.table([*named, *on_nic], rows, numeric=set(on_nic)), keys=2)
    show_end(table, profile, host_time_s, notes)


def baselines(table: Table) -> str:
    used = {row["baseline"] for row in table.rows}
    if DIRECT not in used:
        return BASELINE
    return DIRECT if BASELINE not in used else f"{BASELINE} (of {DIRECT} where data is contiguous)"


def means_in_words(table: Table) -> str:
    """Returns what stands in the cells with --seeds; "" without."""
    runs = max((row.get("runs", 0) for row in table.rows), default=0)
    return f"; means of {runs} seeds, ± half of the 95 % confidence interval" if runs else ""


def show_end(table: Table, profile: Profile, host_time_s: float, notes: list[str]) -> None:
    """Footnotes and what holds for the whole table."""
    console = output.console()
    for number, note in enumerate(notes, 1):
        console.print(f"[{number}] {note}")
    if unmeasured := profile.unmeasured():
        console.print(f"Not final: {profile.name} has no measured value yet for {', '.join(unmeasured)}.")
    if table.partial:
        console.print("partial: true (interrupted; missing cells are blank)")
    console.print(
        f"result hash {table.result_hash}; host time of this run {host_time_s:.1f} s", soft_wrap=True
    )


def order_in_words(order: str | int) -> str:
    if order == "in":
        return "in order"
    window = str(order).removeprefix("all:")
    ends = "" if str(order).startswith("all:") else ", first and last in place"
    return f"shuffled within {window}{ends}"


def speedup_line(
    table: Table,
    group: tuple[str, str],
    strategies: list[str],
    notes: list[str],
    time: str = "time_ps",
) -> list[str]:
    rows = [row for name in strategies if (row := table.get(*group, name)) is not None]
    same = (row for row in table.rows if (row["application"], row["datatype"]) == group)
    wrong = [row["strategy"] for row in same if row["checked"] is False]
    first = next((row for row in rows if row[time] is not None), rows[0])
    return [
        *group,
        units.format_bytes(first["size_bytes"]) if first["size_bytes"] is not None else "",
        f"{first['blocks_per_packet']:.2f}" if first["blocks_per_packet"] is not None else "",
        *(time_cell(table.get(*group, name), notes, time) for name in strategies),
        f"WRONG: {', '.join(wrong)}" if wrong else "checked" if any(row["checked"] for row in rows) else "",
    ]


def time_cell(row: dict[str, Any] | None, notes: list[str], time: str = "time_ps") -> str:
    """A baseline's time, another's speed-up, or why there is neither."""
    if row is None:
        return ""
    if row["status"] in sweep.NOT_RUN:
        note = row["message"]
        if note not in notes:
            notes.append(note)
        return f"{'n/a' if row['status'] == 'unsupported' else 'no room'} [{notes.index(note) + 1}]"
    if row[time] is None:
        return row["status"]
    if row["strategy"] == row["baseline"] or row["speedup"] is None:
        spread = row.get(f"{time}_ci95")
        return units.format_time(round(row[time])) + (
            f" ± {units.format_time(round(spread))}" if spread is not None else ""
        )
    spread = row.get("speedup_ci95")
    return f"{row['speedup']:.2f}x" + (f" ± {spread:.2f}" if spread is not None else "")


def handler_cycles(table: Table, group: tuple[str, str], strategy: str) -> float | None:
    """Cycles of a payload handler a packet. None where no handler ran or there is no result."""
    row = table.get(*group, strategy)
    return (row.get("handler_cycles_per_packet") or None) if row else None  # means exist for one seed only


def nic_cell(table: Table, group: tuple[str, str], strategy: str) -> str:
    cycles = handler_cycles(table, group, strategy)
    if cycles is None:
        return ""
    memory = table.get(*group, strategy)["nic_memory_bytes"]
    memory_text = f", {units.format_bytes(memory)}" if memory is not None else ""
    return f"{cycles:,.0f}{memory_text}"
