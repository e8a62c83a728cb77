"""The end of long verbs that are stopped: computed results are kept, and the exit code says why.

Contract: `with stoppable() as stop:` ends its block at Ctrl-C (SIGINT) or at SIGTERM, which main() turns
into errors.Terminated. Both signals are ignored from then on, so that computed results are written even if
more signals come. Afterwards `stop.was_stopped` says whether a signal came, and stop.leave() ends the
process at once, because cells that run in the engine cannot be stopped.

`with Force(who, without):` is for native code in its block that may not come back: there the second Ctrl-C,
or GRACE_S after a SIGTERM, ends the process, with a sentence. A block that can end has MOMENT_S for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from spinloom.common import output
from spinloom.common.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_TERMINATED, exit_of_interrupt

GRACE_S, MOMENT_S = 2.0, 0.5


@dataclass
class Stop:
    exit_code: int = EXIT_OK

    @property
    def was_stopped(self) -> bool:
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


class Force:
    """A thread that hears of signals beside the main one, where Python's own handlers wait for their turn."""

    def __init__(self, who: Callable[[], str], without: str) -> None:
        """who() names what has not ended, `without` what is lost if it is ended."""
        self.who, self.without = who, without

    def __enter__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)
        self.before = signal.set_wakeup_fd(self.write_end, warn_on_full_buffer=False)
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self.before)
        os.close(self.write_end)  # the end of the watch
        self.watcher.join()
        os.close(self.read_end)

    def next_signal(self, wait_s: float | None) -> bytes | None:
        """A signal's number; nothing at the end of the block, None if there was neither in time."""
        ready, _, _ = select.select([self.read_end], [], [], wait_s)
        return os.read(self.read_end, 1) if ready else None

    def watch(self) -> None:
        if not (first := self.next_signal(None)):
            return
        then = self.next_signal(GRACE_S)
        if then is None and first[0] == signal.SIGINT:
            output.say(f"{self.who()} has not ended; Ctrl-C again ends the process")
            then = self.next_signal(None)
        while then:
            then = self.next_signal(MOMENT_S)
        if then is None:
            output.say(f"{self.who()} does not end: the process ends without {self.without}")
            sys.stdout.flush()
            os._exit(EXIT_INTERRUPTED if first[0] == signal.SIGINT else EXIT_TERMINATED)
