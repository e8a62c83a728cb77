"""`spinloom handler`: write, build, run, look into, profile and test a handler of your own."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import NoReturn

import click

from spinloom.common import core, files, output, units
from spinloom.common.errors import EXIT_NEGATIVE, Trouble
from spinloom.handlers import handler_build, toolchain
from spinloom.handlers.handler_runs import HandlerRun
from spinloom.nics import timeline
from spinloom.verbs import handler_report
from spinloom.verbs.groups import Group
from spinloom.verbs.handler_options import Chosen, run_options
from spinloom.verbs.options import out_option, timeline_option
from spinloom.verbs.stopping import Stop, stoppable

TEMPLATES = ("count-words", "filter", "reply", "empty")
PARTS = (".c", ".toml", "_expect.py")


@click.group(
    cls=Group,
    places={
        **{name: f"handler:{name}" for name in ("new", "build", "run", "disasm")},
        "profile": "handler_profile:profile",
        "test": "handler_test:test",
    },
    of_files={".c": "run", ".elf": "run"},
    epilog="Example: spinloom handler new words --template count-words; spinloom handler run words.c",
)
def handler() -> None:
    """Write a handler in C, and try it on a simulated sPIN NIC.

    docs/handler-tutorial.md goes from nothing to a working handler; docs/handlers.md says what the NIC does.
    """


@click.command(epilog="Example: spinloom handler new words --template count-words")
@click.argument("name")
@click.option("--template", type=click.Choice(TEMPLATES), default="empty", show_default=True)
@click.option("--force", is_flag=True, help="Replace files that exist.")
def new(name: str, template: str, force: bool) -> None:
    """Begin a handler from a template.

    NAME.c is the handler, NAME.toml says how to run it, NAME_expect.py what it must do.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", Path(name).name):
        raise Trouble("invalid", f"'{name}': a handler's name is letters, digits and underscores")
    targets = [Path(f"{name}{part}") for part in PARTS]
    existing = [str(path) for path in targets if path.exists()]
    if existing and not force:
        raise Trouble("invalid", f"{', '.join(existing)}: already there; --force replaces what is")
    folder = resources.files("spinloom.handlers") / "templates"
    for path, part in zip(targets, PARTS, strict=True):
        content = (folder / f"{template.replace('-', '_')}{part}").read_text(encoding="utf-8")
        files.write(path, content.replace("NAME", Path(name).name))
    output.echo(f"wrote {', '.join(map(str, targets))}; next: spinloom handler run {targets[0]}")


@click.command(
    epilog="Examples: spinloom handler build words.c -o words.elf; spinloom handler build --native words.c"
)
@click.argument("source", type=click.Path(path_type=Path))
@out_option("FILE", "FILE.elf (or FILE.so) beside it otherwise.")
@click.option("--native", is_flag=True, help="For this machine's processor, with CC: a shared object.")
@click.option("-D", "defines", metavar="NAME[=VALUE]", multiple=True, help="Define a macro.")
@click.option("--pspin", is_flag=True, help="Packets are those of PsPIN's test bench (docs/pspin.md).")
def build(source: Path, out: Path | None, native: bool, defines: tuple[str, ...], pspin: bool) -> None:
    """Compile a handler for the HPUs.

    The compiler is the one that shipped handlers are built with. With --native, for live NICs that run
    trusted handlers in the process that a message comes to. Sources that were written for PsPIN or FPsPIN are
    recognised by their #include <handler.h>; their functions NAME_hh, NAME_ph and NAME_th become header,
    payload and completion handlers.
    """
    if pspin:
        defines = (*defines, toolchain.PSPIN_PACKETS)
    if source.suffix != ".c":
        raise Trouble("invalid", f"{source} is not a C source (FILE.c)")
    if native:
        target = out or source.with_suffix(".so")
        handlers = handler_build.build_native(source, target, defines)
        output.echo(f"{target}: {', '.join(handlers)}; {target.stat().st_size:,} B, for this machine")
        return
    image = out or source.with_suffix(".elf")
    built = handler_build.image_of(source, image, defines)
    output.echo(f"{image}: {', '.join(built.handlers)}; {built.code_bytes:,} B of code and constants")


@click.command(
    epilog="Examples: spinloom handler run words.c --message book.txt; "
    "spinloom handler run words.elf --size 1MiB --hpus 4 --timeline words.pftrace"
)
@run_options
@click.option("--message", "message_path", type=click.Path(path_type=Path), help="Send this file's bytes.")
@click.option("--size", "message_size", metavar="SIZE", help="Send so many random bytes.")
@click.option(
    "--count", metavar="N", type=click.IntRange(1, 100_000), help="Send the message so often, back to back."
)
@timeline_option("Write a Perfetto timeline.")
@click.option(
    "--memory-out", type=click.Path(path_type=Path), help="Write the entry's memory as it is at the end."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def run(
    ctx: click.Context,
    chosen: Chosen,
    message_path: Path | None,
    message_size: str | None,
    count: int | None,
    timeline_path: Path | None,
    memory_out: Path | None,
    as_json: bool,
) -> None:
    """Send messages to handlers, and show what happens.

    One rank puts, the other's entry has the handlers of FILE.c or FILE.elf. Memory, constants and the like
    stand in FILE.toml; bytes are compared with what expect() of FILE_expect.py returns, where there is one.
    """
    chosen = chosen.with_message(message_path, message_size, count)
    ran = None
    with stoppable() as stop:
        try:
            ran = chosen.run(trace=timeline_path is not None)
        except KeyboardInterrupt as stopped:
            ran = getattr(stopped, "ran", None)
            raise
    if stop.was_stopped:
        leave(stop, chosen, ran, as_json)
    differences = chosen.differences(ran)
    if timeline_path is not None:
        write(timeline_path, timeline.build(ran.result["trace"], chosen.image.name), "--timeline")
    if memory_out is not None:
        write(memory_out, ran.result["entry"], "--memory-out")
    if as_json:
        output.echo(handler_report.as_json(ran, differences))
    else:
        handler_report.show(chosen, ran, differences)
    if differences or not ran.ended_well:
        ctx.exit(EXIT_NEGATIVE)


@click.command(epilog="Example: spinloom handler disasm words.c")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
def disasm(path: Path) -> None:
    """Print the code of handlers as the HPU decodes it.

    Of FILE.c it stands beside the source lines, of FILE.elf alone.
    """
    image = handler_build.image_of(path)
    engine = core.load()
    names = {address: name for name, address in engine.describe_image(image.elf)["symbols"].items()}
    source = handler_build.source_of(image)
    last_place = None
    for address, length, bits, text in engine.disassemble_image(image.elf):
        if address in names:
            output.echo(f"\n{names[address]}:")
        place, line = source.get(address, (None, ""))
        if place is not None and place != last_place:
            output.echo(f"{place:<16}  {line}")
            last_place = place
        output.echo(f"  {address:08x}  {bits:0{2 * length}x}{'' if length == 4 else '    '}  {text}")


def leave(stop: Stop, chosen: Chosen, ran: HandlerRun | None, as_json: bool) -> NoReturn:
    """Shows what an interrupted run came to; files are of whole runs."""
    if ran is None:
        stop.leave("the run had not begun")
    if as_json:
        output.echo(handler_report.as_json(ran, []))
    else:
        handler_report.show(chosen, ran, [])
    stop.leave("what had happened by then is printed, and no file is written")


def write(path: Path, content: bytes, option: str) -> None:
    files.write(path, content)
    output.say(f"wrote {path}, {units.format_bytes(len(content))}")
