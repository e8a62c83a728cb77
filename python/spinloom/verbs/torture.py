"""`spinloom torture`: deterministic simulation testing of the NIC engine."""

from __future__ import annotations

import time

import click

from spinloom.common import core, output
from spinloom.common.errors import EXIT_NEGATIVE, Trouble
from spinloom.common.progress import progress
from spinloom.nics import torture as scenarios
from spinloom.verbs.options import form_options, quiet_option, read_seeds, workers_option
from spinloom.verbs.stopping import stoppable

SHOWN_MAX = 3  # violations of a scenario that are printed


@click.command(
    name="torture",
    hidden=True,
    epilog="Examples: spinloom torture; spinloom torture dead narrow --seeds 1..5000 --workers 2",
)
@click.argument("names", metavar="[SCENARIO|FILE.toml]...", nargs=-1)
@click.option("--seeds", callback=read_seeds, default="1..200", show_default=True, help="Seeds to run.")
@workers_option
@click.option("-v", "--verbose", is_flag=True, help="Print every datagram and event of one seed.")
@click.option("--list", "listed", is_flag=True, help="Print the scenarios.")
@quiet_option
@form_options
def torture_verb(
    names: tuple[str, ...],
    seeds: tuple[int, int],
    workers: int,
    verbose: bool,
    listed: bool,
    quiet: bool,
    form: str,
) -> int:
    """Run the NIC engine under random faults.

    Ranks run against each other while links lose packets, buffers are full and handlers misbehave. Each run
    of each SCENARIO (all of them if none is named) does at least 50 messages and has at least two faults,
    both from its seed. Every byte, event and count is compared with an oracle. The same seed is the same run:
    a violation comes with the command that replays it, and exits with 1. See docs/torture.md.
    """
    wanted = [scenarios.scenario_named(name) for name in names] or list(scenarios.all_scenarios().values())
    if listed:
        rows = [{"scenario": each.name, "about": each.title, **each.numbers} for each in wanted]
        cells = [[each.name, each.title] for each in wanted]
        output.emit(rows, form, lambda: output.table(["scenario", "about"], cells))
        return 0
    if verbose:
        return trace_one(wanted, seeds)
    first, last = seeds
    sums = []
    with stoppable() as stop, progress(len(wanted) * (last - first + 1), quiet, "running") as bar:

        def count_runs(runs: int) -> None:
            for _ in range(runs):
                bar()

        for scenario in wanted:
            began = time.monotonic()
            sums.append(scenarios.Totals(scenario.name))
            try:
                scenarios.run(scenario, first, last, workers, count_runs, sums[-1])
            finally:
                sums[-1].seconds = time.monotonic() - began
    sums = [totals for totals in sums if totals.runs]
    if not sums:
        stop.leave("no run is done")
    output.emit([row_of(totals) for totals in sums], form, lambda: table_of(sums))
    bad = report(sums, names)
    if stop.was_stopped:
        stop.leave(
            f"{sum(totals.runs for totals in sums)} of {len(wanted) * (last - first + 1)} runs were done"
        )
    return EXIT_NEGATIVE if bad else 0


def trace_one(wanted: list[scenarios.Scenario], seeds: tuple[int, int]) -> int:
    if len(wanted) != 1 or seeds[0] != seeds[1]:
        raise Trouble("invalid", "--verbose: name one scenario and one seed, such as dead --seeds 17..17")
    done = core.load().run_torture(wanted[0].numbers, *seeds, trace=True)
    for _, sentence in done["violations"]:
        output.say(f"violation: {sentence}")
    return EXIT_NEGATIVE if done["violations"] else 0


def row_of(totals: scenarios.Totals) -> dict:
    return {
        "scenario": totals.scenario,
        "runs": totals.runs,
        "messages": totals.messages,
        **{f"{fault}_faults": count for fault, count in totals.faults.items()},
        "violations": len(totals.violations),
        "host_time_s": round(totals.seconds, 3),
    }


def table_of(sums: list[scenarios.Totals]):
    faults = list(sums[0].faults)
    columns = ["scenario", "runs", "messages", *faults, "violations", "host time"]
    return output.table(
        columns,
        [
            [
                totals.scenario,
                str(totals.runs),
                str(totals.messages),
                *(str(totals.faults[fault] or "") for fault in faults),
                str(len(totals.violations)),
                f"{totals.seconds:.1f} s",
            ]
            for totals in sums
        ],
        numeric=set(columns) - {"scenario"},
    )


def report(sums: list[scenarios.Totals], names: tuple[str, ...]) -> bool:
    """Prints violations and the commands that replay them. True if there are any or a run is weak."""
    bad = False
    files = {scenarios.scenario_named(name).name: name for name in names}
    for totals in sums:
        for seed, sentence in totals.violations[:SHOWN_MAX]:
            output.say(f"{totals.scenario}, seed {seed}: {sentence}")
            name = files.get(totals.scenario, totals.scenario)
            output.say(f"  replay: spinloom torture {name} --seeds {seed}..{seed} --verbose")
        if totals.weak and not totals.violations:
            output.say(
                f"{totals.scenario}: a run had {totals.messages_min} messages and "
                f"{totals.faults_min} faults; "
                f"at least {scenarios.MESSAGES_MIN} and {scenarios.FAULTS_MIN} make it count"
            )
        bad = bad or bool(totals.violations) or totals.weak
    return bad
