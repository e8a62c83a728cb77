"""`spinloom goal run` and `goal compare`: when the ranks of a schedule end, by the light engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NoReturn

import click

from spinloom.common import core, files, output
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.nics import machines
from spinloom.predict import (
    goal_compare,
    goal_drawing,
    goal_fidelity,
    goal_files,
    goal_layouts,
    goal_model,
    goal_network,
    goal_page,
    goal_ranks,
    goal_timeline,
)
from spinloom.traces import foreign, recorded
from spinloom.traces.pages import page
from spinloom.verbs import goal_checks, goal_tables
from spinloom.verbs.options import form_options, page_option, plot_option, quiet_option, timeline_option


def read(path: Path) -> Any:
    if path.is_dir():
        refuse_folder(path)
    try:
        return core.load().open_goal(str(path))
    except core.load().SpinloomError as error:
        foreign.refuse(path, foreign.SCHEDULES)
        raise Trouble(error.code, f"{path}: {error.message}") from None


def refuse_folder(path: Path) -> NoReturn:
    if recorded.is_recorded(path):
        raise Trouble(
            "invalid",
            f"{path} is a recorded program: 'spinloom predict {path}' replays it, and with --goal FILE.goal "
            "makes a schedule of it",
        )
    raise Trouble("invalid", f"{path} is a folder; name a schedule in it: {foreign.SCHEDULES}")


def loggops(command: Any) -> Any:
    for name, (default, about) in reversed(goal_model.PARAMETERS.items()):
        option = click.option(
            *goal_model.OPTIONS[name],
            name,
            metavar="SIZE" if name == "S" else "TIME" if name in "Log" else "RATE",
            default=str(default),
            show_default=True,
            help=f"{name}: {about}.",
        )
        command = option(command)
    return command


def read_tags(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    return None if text is None else goal_model.parse_tags(text)


FILE = click.argument("file", type=click.Path(path_type=Path))
COLLECTIVE_TAGS = click.option(
    "--collective-tags",
    "apart",
    metavar="TAGS",
    callback=read_tags,
    help="Tags of collective operations, 1000000- or 1000-1999: receives of any tag do not take their "
    "messages, as in MPI.",
)


@click.command(
    epilog="Example: spinloom goal run app.goal -L 900ns --overhead 400ns -g 6.7ns -G 20ps/B -S 64KiB --csv"
)
@FILE
@click.option(
    "--dialect",
    type=click.Choice(["loggopsim"]),
    help="Instead of our own model: the rules of LogGOPSim of 2023, to the unit.",
)
@click.option(
    "--unit",
    metavar="TIME",
    default="1ns",
    show_default=True,
    help="What the file counts its computations in, by our model.",
)
@click.option(
    "--network",
    "network_text",
    metavar="NETWORK",
    default="crossbar",
    show_default=True,
    help="What is between the NICs: fat-tree:radix=16,levels=3,oversubscription=2, torus:8x8x8, "
    "dragonfly:hosts=4,routers=8,globals=4,groups=9; each also routing=adaptive, hop=100ns, packet=4KiB, "
    "shuffle=SEED; the last two routing=valiant or ugal (detours).",
)
@click.option(
    "--noise",
    metavar="NOISE",
    help="CPUs are away at times: 10us/1ms for 10 us in each 1 ms; also ,seed=N or ,together.",
)
@click.option(
    "--critical-path",
    is_flag=True,
    help="Also what the chain that ends last is made of; --json and --csv print its steps.",
)
@click.option(
    "--per-rank",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the times of each rank: FILE.parquet or FILE.csv.",
)
@timeline_option("Also write a Perfetto timeline.")
@page_option("Also write a page of the ranks over time: messages, waits and the critical path.")
@click.option(
    "--layout",
    metavar="RATE|STRATEGY",
    help="What a CPU takes for each byte that a layout scatters, 50ps/B; or how the NICs of --nic "
    f"move it: {', '.join(goal_layouts.NAMES)}. Else layouts cost nothing.",
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Where the prices of --layout STRATEGY are kept: what is there is not simulated again.",
)
@plot_option("FILE.svg|FILE.png", "Also draw a small schedule.")
@click.option(
    "--nic",
    metavar="NAME",
    help="L, g and G are those of a NIC; o, too, if it is not given ('spinloom info nics' lists profiles).",
)
@click.option(
    "--fidelity",
    "fidelity_text",
    metavar="LIST",
    default=goal_fidelity.MESSAGE,
    show_default=True,
    help="message: LogGOPS; nic: the NICs of --nic match each message; full: whole simulated nodes, whose "
    "bytes are checked. Several with commas between them are compared.",
)
@click.option(
    "--full-ranks",
    metavar="RANKS",
    help="With --fidelity message: these ranks are whole simulated nodes among the others: 0,17,64-71.",
)
@click.option("--nic-ranks", metavar="RANKS", help="The same, with NICs as of --fidelity nic.")
@COLLECTIVE_TAGS
@loggops
@quiet_option
@form_options
@click.pass_context
def run(
    context: click.Context,
    file: Path,
    dialect: str | None,
    unit: str,
    network_text: str,
    noise: str | None,
    critical_path: bool,
    per_rank: Path | None,
    timeline_path: Path | None,
    page_path: Path | None,
    layout: str | None,
    prices: Path | None,
    plot: Path | None,
    quiet: bool,
    nic: str | None,
    fidelity_text: str,
    full_ranks: str | None,
    nic_ranks: str | None,
    apart: tuple[int, int] | None,
    form: str,
    **parameters: str,
) -> None:
    """Print when the ranks of a schedule end, in modelled time.

    Times and rates may have units: 2500ns, 20ps/B, 50GB/s, 64KiB; numbers without one are nanoseconds,
    nanoseconds for each byte, and bytes.
    """
    network = goal_network.parse(network_text)
    fidelities = goal_fidelity.parse(fidelity_text)
    strategy = layout if goal_layouts.is_strategy(layout) else None
    goal_checks.refuse_with_strategy(
        strategy,
        nic,
        {
            "--noise": noise,
            "--critical-path": critical_path,
            "--timeline": timeline_path,
            "--page": page_path,
            "--dialect": dialect,
        },
    )
    if prices is not None and strategy is None:
        raise Trouble("invalid", f"--prices: name a strategy, as --layout {goal_layouts.NAMES[-1]}")
    sample = goal_checks.sample_of(fidelities, full_ranks, nic_ranks)
    on_nics = [name for name in fidelities if name != goal_fidelity.MESSAGE]
    goal_checks.refuse_on_nics(
        on_nics if sample is None else [sample[0]],
        nic,
        {
            "--critical-path": critical_path,
            "--timeline": timeline_path if sample is not None else None,
            "--page": page_path,
            "--collective-tags": apart,
        },
    )
    if network and sample is not None:
        raise Trouble(
            "unsupported",
            f"--network: ranks of two fidelities have one switch; leave out --{sample[0]}-ranks",
        )
    only_ours = {
        "--network": network,
        "--noise": noise,
        "--critical-path": critical_path,
        "--timeline": timeline_path,
        "--page": page_path,
        "--layout": layout,
        "--nic": nic,
        "--full-ranks": full_ranks,
        "--nic-ranks": nic_ranks,
    }
    not_for_dialect = [name for name, value in only_ours.items() if value]
    if dialect and not_for_dialect:
        raise Trouble(
            "invalid", f"{not_for_dialect[0]}: the rules of {dialect} have none; leave out --dialect for ours"
        )
    if dialect:
        arguments: dict[str, Any] = goal_model.parse_loggopsim(parameters)
    else:
        arguments = {**goal_model.parse(parameters, unit), "network": network}
        arguments["noise"] = goal_model.parse_noise(noise) if noise else None
        arguments["record"] = critical_path or timeline_path is not None or page_path is not None
        arguments["layout"] = goal_model.parse_layout(layout) if layout and strategy is None else None
    arguments["apart"] = apart
    if per_rank is not None:
        goal_ranks.check_name(per_rank)
    machine = None if nic is None else machines.machine(nic)
    if machine is not None:
        arguments.update(of_profile(context, machine))
    schedule = read(file)
    schedule.check()
    if plot is not None:
        goal_drawing.draw(schedule, plot, file.name)
        output.say(f"written: {plot}")
    counted = schedule.count()
    programs = None
    if strategy is not None:
        assert machine is not None
        with progress(0, quiet, "simulating layouts") as bar:
            programs = goal_layouts.on_nics(schedule, machine, strategy, arguments["unit_ps"], prices, bar)
        schedule = programs.schedule
        arguments["unit_ps"] = 1
    if len(fidelities) > 1:
        rows = goal_fidelity.table(schedule, fidelities, machine, arguments)
        output.emit(rows, form, lambda: goal_tables.fidelities(rows))
        return
    if dialect:
        for sentence in goal_files.misread(schedule):
            output.say(f"{file}: {sentence}")
    begun = time.perf_counter()
    with progress(counted["operations"], quiet, "running") as bar:
        if dialect:
            outcome = schedule.run_loggopsim(**arguments, progress=bar.reach)
        else:
            fidelity, ranks = sample or (fidelities[0], None)
            outcome = goal_fidelity.run(schedule, fidelity, machine, arguments, bar.reach, ranks)
    seconds = time.perf_counter() - begun
    if programs is not None:
        computed = zip(outcome["compute_ps"], programs.nic_ps, strict=True)
        outcome["compute_ps"] = [both - by_nic for both, by_nic in computed]
    columns = goal_ranks.columns(outcome, counted["cpus"])
    if per_rank is not None:
        goal_ranks.write(per_rank, columns)
        output.say(f"written: {per_rank}, the times of each rank")
    if form != "table":
        output.emit(
            goal_timeline.steps(outcome["path"]) if critical_path else goal_ranks.rows(columns),
            form,
            lambda: None,
        )
    elif dialect:
        output.show(goal_tables.summary(counted, dialect, goal_tables.dialect_lines(outcome)))
    else:
        more = goal_tables.layout_lines(counted, layout)
        if programs is not None:
            more += goal_tables.program_lines(programs)
        more += goal_tables.network_lines(network, network_text, counted["ranks"]) + goal_tables.lines(
            columns
        )
        if nic is not None:
            fidelity_words = (
                fidelities[0] if sample is None else f"message; {len(sample[1]):,} ranks {sample[0]}"
            )
            more = [("NIC", nic), ("fidelity", fidelity_words), *more]
        output.show(goal_tables.summary(counted, "spinloom", more))
    if critical_path and form == "table":
        output.show(goal_tables.path_table(outcome))
    if timeline_path is not None:
        files.write(timeline_path, goal_timeline.build(outcome["spans"], file.name))
        output.say(f"written: {timeline_path}, for ui.perfetto.dev")
    if page_path is not None:
        ranks_run = goal_page.run_of(outcome, "spinloom", f"by our own model over {network_text}")
        facts = goal_page.facts_of(counted, arguments)
        title = f"{file.name}: ranks over time"
        files.write(page_path, page.build(title, facts, goal_page.NOTES, [ranks_run]))
        output.say(f"written: {page_path}; open it in a browser")
    if form == "table":
        rate = outcome["events"] / max(seconds, 1e-9)
        output.say(
            f"{outcome['events']:,} events in {seconds:.3f} s of host time, {rate / 1e6:.1f} million a second"
        )


def of_profile(context: click.Context, machine: machines.Machine) -> dict[str, Any]:
    """The model's parameters that the profile knows; o only if nobody gave it."""

    def is_given(name: str) -> bool:
        return context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT

    for name in "LgG":
        if is_given(name):
            raise Trouble("invalid", f"-{name}: with --nic it is the profile's; leave one of them out")
    model = goal_fidelity.parameters(machine)
    if is_given("o"):
        del model["o_ps"]
    return model


@click.command(
    epilog="Example: spinloom goal compare app.goal other.goal -L 900ns --overhead 400ns -G 40ps/B"
)
@click.argument("names", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--unit",
    metavar="TIME",
    default="1ns",
    show_default=True,
    help="What the files count their computations in.",
)
@COLLECTIVE_TAGS
@loggops
@form_options
def compare(
    names: tuple[Path, ...], unit: str, apart: tuple[int, int] | None, form: str, **parameters: str
) -> None:
    """Compare our model with the rules of LogGOPSim.

    It says when the last rank ends by each, and why. The rules that are named make the difference: without
    them both agree about every rank. All times are modelled.
    """
    arguments = {**goal_model.parse(parameters, unit), "apart": apart}
    goal_compare.in_units(arguments)
    rows = [compared(name, arguments) for name in names]
    for row, name in zip(rows, names, strict=True):
        if form == "table" and row["stalls"]:
            output.say(f"{name}: {row['stalls']}")
    output.emit(
        rows,
        form,
        lambda: goal_tables.comparison(rows),
    )
    used = {name for row in rows for name in row["rules"].split(", ")}
    if form == "table":
        for rule in goal_compare.RULES:
            if rule.name in used:
                output.say(f"{rule.name}: {rule.about}")


def compared(name: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    schedule = read(name)
    row = {"schedule": name.stem, "ours_ps": None, "loggopsim_ps": None, "rules": "", "stalls": ""}
    try:
        schedule.check()
        comparison = goal_compare.compare(schedule, arguments)
    except core.load().SpinloomError as error:
        return {**row, "stalls": error.message}
    rules = (
        "more than one rule"
        if comparison.rules is None
        else ", ".join(rule.name for rule in comparison.rules)
    )
    ours, loggopsim = comparison.makespans()
    return {**row, "ours_ps": ours, "loggopsim_ps": loggopsim, "rules": rules}
