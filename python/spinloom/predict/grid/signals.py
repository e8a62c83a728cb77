"""Ctrl-C and SIGTERM that wait.

Contract: in deferred() this thread takes none of these signals, and neither do threads and processes that
begin there, for good; one that comes is taken at the end of the block.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def deferred(*numbers: signal.Signals) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
