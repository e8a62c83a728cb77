"""The tables of `spinloom goal`."""

from __future__ import annotations

from typing import Any

from spinloom.common import core, output, units
from spinloom.predict import goal_model, goal_timeline


def summary(counted: dict[str, int], rules: str, more: list[tuple[str, str]]) -> Any:
    lines = [
        ("rules", rules),
        ("ranks", f"{counted['ranks']:,}"),
        ("operations", f"{counted['operations']:,}"),
        ("messages", f"{counted['sends']:,} of {units.format_bytes(counted['sent_bytes'])} in all"),
        *one_sided_lines(counted),
        *more,
    ]
    return output.table(["", "modelled"], [list(line) for line in lines], numeric=set())


def one_sided_lines(counted: dict[str, int]) -> list[tuple[str, str]]:
    kinds = ("puts", "gets", "atomics")
    if not any(counted[kind] for kind in kinds):
        return []
    counts_text = ", ".join(f"{counted[kind]:,} {kind}" for kind in kinds if counted[kind])
    return [("one-sided", f"{counts_text} of {units.format_bytes(counted['one_sided_bytes'])} in all")]


def layout_lines(counted: dict[str, int], price: str | None) -> list[tuple[str, str]]:
    if not counted["layout_ends"]:
        return []
    ends = f"{counted['layouts']:,} at {counted['layout_ends']:,} ends"
    return [
        ("layouts", f"{ends}, {price}" if price else f"{ends}, which cost nothing: --layout is their price")
    ]


def program_lines(programs: Any) -> list[tuple[str, str]]:
    """Returns what handlers on NICs do for layouts."""
    messages_text = f"{programs.simulated:,} messages simulated, {programs.remembered:,} remembered"
    if programs.fell_back:
        messages_text += f"; {programs.fell_back:,} layouts are moved by CPUs"
    return [("handlers", messages_text)]


def network_lines(network: dict[str, Any] | None, text: str, ranks: int) -> list[tuple[str, str]]:
    if network is None:
        return [("network", text)]
    size = core.load().network_size(network, ranks)
    return [("network", f"{text}: {size['switches']:,} switches, {size['links']:,} links between them")]


def dialect_lines(outcome: dict[str, Any]) -> list[tuple[str, str]]:
    times = outcome["host_times"]
    last = max(range(len(times)), key=times.__getitem__)
    first = min(range(len(times)), key=times.__getitem__)
    return [
        ("the last rank ends", f"{outcome['makespan']:,} (rank {last})"),
        ("the first rank ends", f"{times[first]:,} (rank {first})"),
    ]


def lines(columns: dict[str, list[int]]) -> list[tuple[str, str]]:
    finish = columns["finish_ps"]
    last, first = (finish.index(which(finish)) for which in (max, min))
    parts = {name: sum(columns[f"{name}_ps"]) for name in ("compute", "overhead", "waiting")}
    total = sum(parts.values())

    def ends(rank: int) -> str:
        return f"{units.format_time(finish[rank])} (rank {rank}, {finish[rank]:,} ps)"

    return [
        ("the last rank ends", ends(last)),
        ("the first rank ends", ends(first)),
        ("CPUs compute", goal_model.share(parts["compute"], total)),
        ("CPUs work for messages", goal_model.share(parts["overhead"], total)),
        ("CPUs wait", goal_model.share(parts["waiting"], total)),
    ]


def path_table(outcome: dict[str, Any]) -> Any:
    total = outcome["makespan_ps"]
    return output.table(
        ["critical path", "steps", "time", "share"],
        [
            [
                row["what"],
                f"{row['steps']:,}",
                units.format_time(row["time_ps"]),
                goal_model.share(row["time_ps"], total),
            ]
            for row in goal_timeline.shares(outcome["path"])
        ],
        numeric={"steps", "time", "share"},
    )


def fidelities(rows: list[dict[str, Any]]) -> Any:
    def difference(row: dict[str, Any]) -> str:
        if row["of_message"] is None:
            return "-"
        sign = "-" if row["difference_ps"] < 0 else "+"
        return (
            f"{sign}{units.format_time(abs(row['difference_ps']))} ({100 * (row['of_message'] - 1):+.1f} %)"
        )

    return output.table(
        ["fidelity", "the last rank ends", "from message", "host time"],
        [
            [
                row["fidelity"],
                units.format_time(row["makespan_ps"]),
                difference(row),
                f"{row['host_s']:.3f} s",
            ]
            for row in rows
        ],
        numeric={"the last rank ends", "from message", "host time"},
    )


def nanoseconds(ps: int | None) -> str:
    return "-" if ps is None else f"{ps // 1000:,}" + (f".{ps % 1000:03}".rstrip("0") if ps % 1000 else "")


def comparison(rows: list[dict[str, Any]]) -> Any:
    return output.table(
        ["schedule", "ours (ns)", "LogGOPSim (ns)", "makes the difference"],
        [
            [row["schedule"], nanoseconds(row["ours_ps"]), nanoseconds(row["loggopsim_ps"]), row["rules"]]
            for row in rows
        ],
        numeric={"ours (ns)", "LogGOPSim (ns)"},
    )
