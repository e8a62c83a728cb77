"""The C library's programs under their own names: spinloom-info, spinloom-threads, spinloom-gateway.

pip puts commands on PATH for functions only, and these programs lie in the package. Each function becomes its
program, which has this process's number, environment and files: under a launcher it is the rank.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from spinloom.common import data, output
from spinloom.common.errors import EXIT_ENVIRONMENT


def become(name: str) -> NoReturn:
    program = data.PACKAGE / "bin" / name
    try:
        os.execv(program, [str(program), *sys.argv[1:]])
    except OSError as error:
        output.echo(f"{name}: {program} cannot be run: {error.strerror}", err=True)
        sys.exit(EXIT_ENVIRONMENT)


def info() -> NoReturn:
    become("spinloom-info")


def threads() -> NoReturn:
    become("spinloom-threads")


def gateway() -> NoReturn:
    become("spinloom-gateway")
