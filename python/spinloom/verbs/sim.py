"""`spinloom sim`: a C program that calls Portals 4, on simulated NICs."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import click

from spinloom.common import csv_text, output, units
from spinloom.common.errors import Trouble
from spinloom.handlers import handler_build
from spinloom.nics import jobs, profiles
from spinloom.nics.machines import parse_mtu
from spinloom.verbs.options import (
    UpTo,
    form_options,
    host_option,
    hpus_option,
    mtu_option,
    nic_option,
    ranks_option,
    seed_option,
    set_option,
)
from spinloom.verbs.programs import Starts

RAILS_MAX = 8  # the limit of spinloom/rails.h


def print_flags(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        options = jobs.compile_options() if parameter.name == "cflags" else jobs.link_options()
        output.echo(" ".join(options))
        ctx.exit()


@click.command(
    cls=Starts,
    context_settings={"allow_interspersed_args": False},
    epilog="Examples: spinloom sim -n 2 examples/portals/pingpong.c 4096; "
    "spinloom sim -n 64 --nic sc17-discrete --label ./program argument",
)
@click.argument("program", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@ranks_option("Processes.", type=UpTo("rank_count_max"), default=2, show_default=True)
@nic_option
@host_option
@set_option
@hpus_option
@mtu_option
@click.option(
    "--handlers",
    "handlers",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A handler's FILE.c or FILE.elf, image FILE for PtlSpinMEAppend; may be repeated.",
)
@click.option(
    "--rails",
    metavar="N",
    type=click.IntRange(1, RAILS_MAX),
    default=None,
    help="NICs of each rank, all alike, each in a network of its own (spinloom/rails.h).",
)
@click.option(
    "--rail",
    "more_rails",
    metavar="NIC",
    multiple=True,
    help="One more NIC of each rank, with this profile; may be repeated.",
)
@click.option(
    "--bridge",
    type=int,
    metavar="RANKS",
    help="So many ranks are in one fabric, the others in another one; a gateway joins them.",
)
@click.option(
    "--stored", is_flag=True, help="The gateway passes on whole messages, not each packet as it comes."
)
@click.option(
    "--forward", metavar="TIME", default="0ns", show_default=True, help="The gateway's time for each packet."
)
@seed_option
@click.option("--label", is_flag=True, help="Print '[RANK] ' before each line of a rank.")
@click.option("--stack", metavar="BYTES", default="8MiB", show_default=True, help="The stack of each rank.")
@click.option("-q", "--quiet", is_flag=True, help="No summary on stderr.")
@click.option(
    "--cflags",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_flags,
    help="Print what a compiler needs for portals4.h, and exit.",
)
@click.option(
    "--libs",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_flags,
    help="Print what a linker needs for libportals, and exit.",
)
@form_options
def sim(
    program: Path,
    arguments: tuple[str, ...],
    ranks: int,
    nic: str,
    host: str | None,
    changes: list[tuple[str, str]],
    hpus: int | None,
    mtu: str | None,
    handlers: tuple[Path, ...],
    rails: int | None,
    more_rails: tuple[str, ...],
    bridge: int | None,
    stored: bool,
    forward: str,
    seed: int,
    label: bool,
    stack: str,
    quiet: bool,
    form: str,
) -> None:
    """Run a Portals 4 program on simulated NICs.

    Each of N NICs has a rank, and all run in modelled time. PROGRAM is a C or C++ source, or a
    position-independent program linked with libportals. Each rank has its own globals; its clock is modelled
    time. A rank that crashes, fails or waits for ever ends the run with a sentence and exit code 1.
    docs/portals.md begins at the beginning. With --json or --csv the times stand on stdout: in JSON beside
    the program's output, in CSV a row for each rank, and the output goes to stderr.
    """
    try:
        stack_bytes = units.parse_bytes(stack)
    except ValueError as error:
        raise Trouble("invalid", f"--stack '{stack}': {error}") from None
    bridge_setup = None
    if bridge is not None:
        try:
            bridge_setup = jobs.Bridge(bridge, stored, units.parse_time(forward))
        except ValueError as error:
            raise Trouble("invalid", f"--forward '{forward}': {error}") from None
    elif stored or forward != "0ns":
        raise Trouble("invalid", "--stored and --forward are about the gateway of --bridge")
    profile = profiles.changed(profiles.load(nic, host), changes)
    further_rails = [profile] * ((rails or 1) - 1) + [
        profiles.changed(profiles.load(name, host), changes) for name in more_rails
    ]
    if len(further_rails) >= RAILS_MAX:
        raise Trouble("invalid", f"{1 + len(further_rails)} rails: a rank has at most {RAILS_MAX}")
    images = {image.name: image.elf for image in map(handler_build.image_of, handlers)}
    settings = jobs.Settings(
        profile,
        ranks,
        hpus,
        parse_mtu(mtu) if mtu else None,
        seed,
        label,
        stack_bytes,
        images,
        tuple(further_rails),
        bridge_setup,
    )
    began = time.monotonic()
    with jobs.built(program) as runnable:
        job = jobs.run(settings, runnable, list(arguments), captured=form != "table")
    if form == "csv":
        output.pass_on(job.output)
        columns = [field.name for field in dataclasses.fields(jobs.RankEnd)]
        output.echo(csv_text.as_csv([dataclasses.asdict(end) for end in job.ranks], columns), nl=False)
    elif form == "json":
        ends = [dataclasses.asdict(end) for end in job.ranks]
        trouble = job.trouble and job.trouble.message
        summary = {"nic": str(profile), "time_ps": job.time_ps, "ranks": ends, "trouble": trouble}
        output.echo(json.dumps({**summary, "output": job.output}, indent=1))
    if job.trouble is not None:
        raise job.trouble
    if not quiet:
        output.say(
            f"{ranks} ranks ended after {units.format_time(job.time_ps)} of modelled time on {profile}; "
            f"host time {time.monotonic() - began:.2f} s"
        )
