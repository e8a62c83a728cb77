"""The time that tests wait for what must happen, and the signals of the programs that they start.

Contract: seconds(limit) is a time limit in seconds. Limits are generous, and a machine that is slow or busy
makes all of them longer by one factor, SPINLOOM_TEST_PATIENCE; the C++ tests take the same one
(src/base/testing/patience.hpp). until(ready) waits for a state. Programs that tests start have default
signals after default_signals(), even where a shell started the tests in the background with SIGINT ignored.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
FACTOR = float(os.environ.get("SPINLOOM_TEST_PATIENCE") or 1)


def seconds(limit: float) -> float:
    return limit * FACTOR


def until(ready: Callable[[], Found], limit: float = 60) -> Found:
    """Returns the value of ready() as soon as that is true, or at the end of the limit."""
    end = time.monotonic() + seconds(limit)
    while not (found := ready()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def default_signals() -> None:
    """A started program inherits which signals are ignored, but no handlers. So a handler that does nothing
    in place of an ignored signal gives programs the default, and the tests themselves still ignore it."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
