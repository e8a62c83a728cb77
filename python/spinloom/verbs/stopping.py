"""How long verbs stop: computed results are kept, and the exit code says why the verb stopped.

Contract: `with stoppable() as stop:` ends its block at Ctrl-C (SIGINT) or at SIGTERM, which main() turns
into errors.Terminated. Both signals are ignored from then on, so that computed results are written even if
more signals come. Afterwards `stop.told` says whether one came, and stop.leave() ends the process at once,
because cells that run in the engine cannot be stopped.
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
