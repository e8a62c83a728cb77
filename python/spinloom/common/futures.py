"""Results of a pool, as they come.

Contract: as_they_end(futures) yields each future once, as soon as it has ended. Other than with
concurrent.futures.as_completed, a signal that comes while the caller begins to wait is heard: Python notes
it, but the wait that begins just then does not end by it, so no wait is longer than LOOK_S.
"""

from __future__ import annotations

import queue
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from typing import Any

LOOK_S = 0.5


def as_they_end(futures: Collection[Future[Any]]) -> Iterator[Future[Any]]:
    ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    for future in futures:
        future.add_done_callback(ended.put)
    remaining = len(futures)
    while remaining:
        try:
            future = ended.get(timeout=LOOK_S)
        except queue.Empty:
            continue
        remaining -= 1
        yield future
