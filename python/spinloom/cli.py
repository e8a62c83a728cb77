"""The command `spinloom`: one program with verbs.

Results go to stdout, diagnostics to stderr. Exit codes: 0 good, 1 the result is negative (bytes differ,
a simulation stalled), 2 usage, 3 the machine lacks something, 130 interrupted, 143 told to end (SIGTERM).
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from spinloom import __version__, config, data, output
from spinloom.errors import (
    EXIT_CLOSED_PIPE,
    EXIT_ENVIRONMENT,
    Terminated,
    Trouble,
    exit_of_interrupt,
    nearest,
)
from spinloom.verbs.bench import bench
from spinloom.verbs.calibrate import calibrate
from spinloom.verbs.ddt import ddt
from spinloom.verbs.doctor import doctor
from spinloom.verbs.explain import explain
from spinloom.verbs.figure import figure
from spinloom.verbs.handler import handler
from spinloom.verbs.hostmodel import hostmodel
from spinloom.verbs.info import info
from spinloom.verbs.nics import nics
from spinloom.verbs.share import share
from spinloom.verbs.sim import sim
from spinloom.verbs.study import study
from spinloom.verbs.torture import torture_verb
from spinloom.verbs.trace import trace
from spinloom.verbs.validate import validate
from spinloom.verbs.workloads import workloads


class Verbs(click.Group):
    """Answers an unknown verb with the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(
                f"there is no verb '{args[0]}'{nearest(args[0], self.list_commands(ctx))}", ctx
            )
        return super().resolve_command(ctx, args)


def print_prefix(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(data.prefix())
        ctx.exit()


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Environment variables: spinloom info --config. Exit codes: 0 good, 1 negative result, 2 usage, "
    "3 the machine lacks something.",
)
@click.version_option(__version__, prog_name="spinloom", message="%(prog)s %(version)s")
@click.option(
    "--prefix",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_prefix,
    help="Print where include/, lib/ and share/man/ of the C libraries are, and exit.",
)
def cli() -> None:
    """What will a packet-processing (sPIN) NIC do with your datatype?

    \b
    spinloom ddt --demo              speed-ups of thirteen application datatypes
    spinloom ddt MILC --nic sc19-slingshot --strategies rw-cp,seek
    """
    for warning in config.warnings():
        output.say(warning)


for verb in (
    ddt,
    share,
    sim,
    study,
    handler,
    explain,
    calibrate,
    figure,
    validate,
    hostmodel,
    bench,
    torture_verb,
    trace,
    nics,
    workloads,
    doctor,
    info,
):
    cli.add_command(verb)


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends a verb as Ctrl-C does; what it has computed is kept."""
    raise Terminated


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits with its code."""
    if sys.stdout is None:
        os._exit(EXIT_ENVIRONMENT)  # standard output is closed: there is nowhere to put a result
    signal.signal(signal.SIGTERM, terminate)
    try:
        code = cli.main(arguments, prog_name="spinloom", standalone_mode=False)
    except Trouble as trouble:
        output.say(trouble.message)
        code = trouble.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt) as stopped:
        output.say("interrupted")
        code = exit_of_interrupt(stopped.__cause__ or stopped)  # click turns an interrupt into an Abort
    except BrokenPipeError:
        os._exit(EXIT_CLOSED_PIPE)  # the reader of a pipe has gone: no output is possible
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO):
            raise
        output.say(f"standard output cannot be written: {error.strerror}")
        os._exit(EXIT_ENVIRONMENT)
    sys.exit(flush(code if isinstance(code, int) else 0))


def flush(code: int) -> int:
    """Flushes the output; the exit code says if that failed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(EXIT_CLOSED_PIPE)
    except OSError as error:
        output.say(f"standard output cannot be written: {error.strerror}")
        os._exit(EXIT_ENVIRONMENT)
    return code


if __name__ == "__main__":
    main()
