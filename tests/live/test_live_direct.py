"""Messages done in the memory of their target, without a turn of it: bytes and counts are as by packets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from c_programs import needs_compiler
from launchers import output
from live_programs import answers_of, build, needs_library

__all__ = ["build"]
pytestmark = [needs_library, needs_compiler]


def ran(build, what: str, memory: str, **settings: str) -> dict[int, int]:
    said = output("mpich", 2, build("live_direct.c"), what, memory, **settings)
    return answers_of(said)


def kernel_may_write() -> bool:
    """A process may write into another one that is not its child, as the other memory of a peer needs it."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.geteuid() == 0 or not scope.exists() or scope.read_text(encoding="ascii").strip() == "0"


needs_kernel = pytest.mark.skipif(not kernel_may_write(), reason="kernel.yama.ptrace_scope is not 0")


@pytest.mark.parametrize("memory", ["heap", pytest.param("other", marks=needs_kernel)])
def test_a_stopped_rank_is_put_to_and_read(build, memory):
    """By packets it would answer when it goes on, which it does when its peer has the answers."""
    ran(build, "stopped", memory)


@pytest.mark.parametrize("how", ["auto", "mapped", "packets"])
@pytest.mark.parametrize("memory", ["heap", "other"])
@pytest.mark.parametrize("what", ["looking", "tickets", "unlinked"])
def test_bytes_and_counts_are_those_of_packets(build, what, memory, how):
    assert set(ran(build, what, memory, SPINLOOM_DIRECT=how)) == {0, 1}
