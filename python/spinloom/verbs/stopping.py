"""What long verbs do when they are told to stop: what was computed is kept, and the exit code says why.

Contract: `with stoppable() as stop:` ends its block at Ctrl-C (SIGINT) or at SIGTERM, which main() turns
into errors.Terminated; both signals are ignored from then on, so that what was computed is written however
often they come. Afterwards `stop.told` is whether one came, and stop.leave() ends the process at once: cells
that still run in the engine cannot be called back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from spinloom import output
from spinloom.errors import EXIT_OK, exit_of_interrupt


@dataclass
class Stop:
    exit_code: int = EXIT_OK

    @property
    def told(self) -> bool:
        return self.exit_code != EXIT_OK

    def leave(self, done: str) -> NoReturn:
        """`done` says how far the verb came."""
        output.say(f"interrupted; {done}")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.exit_code)


@contextlib.contextmanager
def stoppable() -> Iterator[Stop]:
    stop = Stop()
    try:
        yield stop
    except KeyboardInterrupt as interrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stop.exit_code = exit_of_interrupt(interrupt)
