"""Ranks that leave wait for their peers, but not longer than SPINLOOM_END_S says."""

from __future__ import annotations

import re
import signal
import sys

import pytest

from pmi_job import Job
from test_live import HERE, LIMIT_S, ROOT, answers_of, build, finished, handler_folder, pytestmark

__all__ = ["build", "pytestmark"]  # pytest finds them here


def test_an_interface_stays_open_while_a_stopped_peer_may_write_to_its_memory(build):
    settings = {"SPINLOOM_END_S": "2", "SPINLOOM_COPY": "single-copy", "SPINLOOM_SPIN_US": "1000000"}
    with Job([str(build("live_end.c"))], 2, env=settings) as job:
        job.wait(LIMIT_S, until=lambda job: "in use" in job.ranks[0].text)
        if {77, 78} & {rank.process.poll() for rank in job.ranks}:
            pytest.skip("no rank can be stopped here while it writes to another one's memory")
        said = job.ranks[0].text
        assert "has waited 2 s (SPINLOOM_END_S): rank 1 may still write to this process's memory" in said, (
            said
        )
        assert "must be neither freed nor used" in said, said
        job.ranks[1].process.send_signal(signal.SIGCONT)
        assert job.wait(LIMIT_S) == [0, 0], job.said()
        assert set(answers_of(job.said())) == {0, 1}, job.said()


def test_an_interface_stays_open_while_a_reply_is_to_come(build):
    with Job([str(build("live_end.c")), "reply"], 2) as job:
        job.wait(LIMIT_S, until=lambda job: "in use" in job.ranks[0].text)
        said = job.ranks[0].text
        assert "PtlNIFini or PtlFini: rank 1 has not replied; until it does or ends" in said, said
        job.ranks[1].process.send_signal(signal.SIGCONT)
        assert job.wait(LIMIT_S) == [0, 0], job.said()
        assert set(answers_of(job.said())) == {0, 1}, job.said()


def test_a_peer_that_needs_longer_is_not_waited_for(build, tmp_path):
    """Its handlers need 12 s."""
    handler_folder()
    compiled = [tmp_path / "slow_handler.so", "--native", "--include", ROOT / "include"]
    finished(
        sys.executable,
        ROOT / "python/spinloom/handlers/toolchain.py",
        HERE / "slow_handler.c",
        "-o",
        *compiled,
    )
    settings = {
        "SPINLOOM_END_S": "2",
        "SPINLOOM_HANDLERS": str(tmp_path),
        "SPINLOOM_HANDLER_KIND": "native",
        "SPINLOOM_HPUS": "1",
    }
    with Job([str(build("live_farewell.c")), "slow"], 2, env=settings) as job:
        job.wait(LIMIT_S, until=lambda job: "left after" in job.ranks[0].text)
        said = job.ranks[0].text
    assert 2 <= float(re.search(r"left after ([\d.]+) s", said)[1]) < 10, said
    assert re.search(
        r"has waited 2 s \(SPINLOOM_END_S\): rank 1 has not taken \d+ packets with \d+ B", said
    ), said
    assert re.search(r"PtlFini: lost, .* to rank 1, which has not taken all in 2 s", said), said
