"""C programs in tests: where they are, how they are compiled, what they begin with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples/portals"
PORTALS = Path(__file__).resolve().parent / "portals"  # the programs of CONFORMANCE are there
NIC = "sc17-discrete"

# Programs that rely on messages only, not on modelled time: they hold on any driver.
CONFORMANCE = {
    # program: (ranks, answers of each rank)
    "portals_status.c": (2, [41, 22]),
    "portals_iovec.c": (2, [116, 116]),
    "portals_flow.c": (2, [426, 62]),
    "portals_later.c": (2, [184, 184]),
    "portals_disable.c": (2, [10, 4]),
    "portals_order.c": (2, [1, 3]),
    "portals_order_lists.c": (2, [3, 1]),
    "portals_lists.c": (2, [90, 0]),
    "portals_freed.c": (2, [131270, 131270]),
    "portals_limits.c": (2, [70, 70]),
    "portals_pending.c": (2, [1, 3]),
    "portals_handlers.c": (2, [39, 8]),
    "portals_bundle.c": (2, [13, 13]),
    "portals_schedules.c": (2, [123, 123]),
    "portals_reopen.c": (2, [240, 220]),
    "portals_missing.c": (2, [793, 793]),
    "portals_self.c": (1, [19]),
    "portals_freeing.c": (2, [60, 36]),
    "portals_unused.c": (1, [26]),
    "portals_volatile.c": (2, [37, 37]),
    "portals_errors.c": (1, [2646]),
    "portals_opened.c": (1, [797]),
    "portals_told.c": (1, [825]),
    "portals_entries.c": (1, [830]),
    "portals_counts.c": (1, [1463]),
    "portals_closing.c": (2, [2, 6]),
    "portals_put_ways.c": (2, [64, 11]),
}

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def compile_with(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)
