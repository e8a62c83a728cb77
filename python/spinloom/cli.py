"""The command `spinloom`: one program with verbs.

Results go to stdout, diagnostics to stderr. Exit codes: 0 good, 1 the result is negative (bytes differ,
a simulation stalled), 2 usage, 3 the machine lacks something, 130 interrupted, 141 the reader of the output
went away, 143 told to end (SIGTERM).
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click
from click.core import ParameterSource

from spinloom import __version__
from spinloom.common.errors import (
    EXIT_CLOSED_PIPE,
    EXIT_ENVIRONMENT,
    EXIT_USAGE,
    Terminated,
    Trouble,
    exit_of_interrupt,
)
from spinloom.verbs.groups import Group
from spinloom.verbs.jobs import JOBS, PLACES

MACHINE_ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
)


class Verbs(Group):
    """The verbs, listed by job."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, PLACES))
        for job, verbs in JOBS.items():
            limit = formatter.width - widest - 6
            commands = {name: self.get_command(ctx, name) for name in verbs}
            lines = [(f"{name:{widest}}", verb.get_short_help_str(limit)) for name, verb in commands.items()]
            with formatter.section(job):
                formatter.write_dl(lines)


def print_prefix(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from spinloom.common import data, output

        output.echo(data.prefix())
        ctx.exit()


@click.group(
    cls=Verbs,
    places=PLACES,
    of_files={".c": "sim", ".goal": "goal", ".spl": "goal", ".toml": "sweep"},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Each verb explains itself: spinloom VERB --help. Environment variables: spinloom info settings. "
    "Exit codes: 0 good, 1 negative result, 2 usage, 3 the machine lacks something.",
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
    """Simulate packet-processing NICs, and run MPI programs faster.

    \b
    spinloom simulate --demo              speed-ups of thirteen application datatypes on such a NIC
    spinloom run -- mpiexec -n 2 ./app    your MPI program with faster datatypes
    """
    from spinloom.common import config

    for warning in config.warnings():
        say(warning)


def say(message: str) -> None:
    from spinloom.common import output

    output.say(message)


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM, or the end of the terminal, ends a verb as Ctrl-C does; what it has computed is kept."""
    raise Terminated


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits with its code."""
    if sys.stdout is None:
        os._exit(EXIT_ENVIRONMENT)  # standard output is closed: there is nowhere to put a result
    signal.signal(signal.SIGTERM, terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, terminate)
    try:
        code = cli.main(arguments, prog_name="spinloom", standalone_mode=False)
    except Trouble as trouble:
        say(trouble.message)
        code = trouble.exit_code
    except click.ClickException as error:
        show(error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt) as stopped:
        say("interrupted")
        code = exit_of_interrupt(stopped.__cause__ or stopped)  # click makes an Abort of an interrupt
    except BrokenPipeError:
        os._exit(EXIT_CLOSED_PIPE)  # the reader of a pipe has gone: no output is possible
    except OSError as error:
        if (
            error.filename is not None or error.errno == errno.ENOENT
        ):  # the latter: no folder for temporary files
            where = "" if error.filename is None else f"{error.filename}: "
            say(f"{where}{error.strerror}")
            sys.exit(EXIT_ENVIRONMENT if error.errno in MACHINE_ERRORS else EXIT_USAGE)
        if error.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO):
            raise
        say(f"standard output cannot be written: {error.strerror}")
        os._exit(EXIT_ENVIRONMENT)
    sys.exit(flush(code if isinstance(code, int) else 0))


def show(error: click.ClickException) -> None:
    """Shows an error with its usage; that repeats words of the command line, which may be names of files."""
    from spinloom.common import output

    if isinstance(error, click.BadParameter) and error.param is not None and error.ctx is not None:
        source = error.ctx.get_parameter_source(error.param.name or "")
        if source is ParameterSource.ENVIRONMENT:
            error.param_hint = str(error.param.envvar)
    text = io.StringIO()
    error.show(text)
    output.echo(text.getvalue(), err=True, nl=False)


def flush(code: int) -> int:
    """Flushes the output; the exit code says if that failed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(EXIT_CLOSED_PIPE)
    except OSError as error:
        say(f"standard output cannot be written: {error.strerror}")
        os._exit(EXIT_ENVIRONMENT)
    return code


if __name__ == "__main__":
    main()
