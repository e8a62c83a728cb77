"""Ranks of a machine that must not reach each other's memory meet by UDP, and both ends of a pair know it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from pmi_job import Job
from test_live import HERE, LIBRARY, LIMIT_S, answers_of, build, pytestmark

__all__ = ["build", "pytestmark"]  # pytest finds them here

CANNOT = 77  # live_apart.c ends with this

# By rank, as live_apart.c says; and the pairs that go by UDP then.
APART = {
    "nothing": ("::", set()),
    "another user": ("::nobody", {(0, 2), (1, 2)}),
    "not dumpable": ("nobody:nobody,hidden:nobody", {(0, 1), (1, 2)}),
    "not dumpable, all": ("nobody,hidden:nobody,hidden:nobody,hidden", {(0, 1), (0, 2), (1, 2)}),
    "a namespace of users": (":namespace:", {(0, 1), (1, 2)}),
    "no pidfd_open": ("::pidfd", {(0, 2), (1, 2)}),
}


@pytest.fixture(scope="session")
def apart(tmp_path_factory):
    """The preloaded object."""
    out = tmp_path_factory.mktemp("apart") / "live_apart.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", HERE / "live_apart.c", "-o", out], check=True)
    return out


def preloading(apart, how: str) -> dict[str, str]:
    preload = f"{apart}:{os.environ['LD_PRELOAD']}" if "LD_PRELOAD" in os.environ else str(apart)
    return {"LD_PRELOAD": preload, "SPINLOOM_TEST_APART": how}


def said_by(command: list[str], apart, how: str, **settings: str) -> list[str]:
    if "nobody" in how and os.geteuid() != 0:  # its peers would wait for a rank that has not come
        pytest.skip("only root can run a rank as another user")
    with Job(command, 3, env={**preloading(apart, how), "SPINLOOM_MEET": "start", **settings}) as job:
        codes = job.wait(LIMIT_S)
        if CANNOT in codes:
            pytest.skip(f"this machine does not let ranks be kept apart so: {job.said()}")
        assert codes == [0, 0, 0], job.said()
        return [rank.text for rank in job.ranks]


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers come before what is preloaded")
@pytest.mark.parametrize("what", APART)
def test_ranks_that_are_kept_apart_meet_by_udp(build, apart, what):
    how, by_udp = APART[what]
    texts = said_by([str(build("live_traffic.c")), "100000"], apart, how)
    assert set(answers_of("".join(texts))) == {0, 1, 2}, texts
    assert not any("spinloom:" in text for text in texts), texts
    report = said_by([str(LIBRARY.parent / "bin/spinloom-info")], apart, how)[0]
    for number, lines in re.findall(r"^rank (\d): process.*\n((?:  reaches .*\n)+)", report, re.M):
        ways = {}
        for peers, way in re.findall(r"^  reaches ([\d, -]+) by (.*)$", lines, re.M):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", peers):
                ways |= dict.fromkeys(range(int(first), int(last or first) + 1), way)
        assert set(ways) == {0, 1, 2} - {int(number)}, report
        expected = {peer for peer in ways if tuple(sorted((int(number), peer))) in by_udp}
        assert {peer for peer, way in ways.items() if way.startswith("UDP")} == expected, report
    assert report.count("reaches") >= 3, report


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers come before what is preloaded")
@pytest.mark.parametrize("what", ["not dumpable", "no pidfd_open"])
def test_one_that_is_kept_apart_cannot_meet_the_others_at_first_contact(build, apart, what):
    """It has to wait for all in PtlInit, and they do not: somebody says so at once."""
    with Job([str(build("live_idle.c"))], 3, env=preloading(apart, APART[what][0])) as job:
        codes = job.wait(LIMIT_S, until=lambda job: "SPINLOOM_MEET=start for all ranks" in job.said())
        if CANNOT in codes:
            pytest.skip(f"this machine does not let ranks be kept apart so: {job.said()}")
        assert "SPINLOOM_MEET=start for all ranks" in job.said()


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers come before what is preloaded")
@pytest.mark.parametrize("what", ["nothing", "not dumpable, all"])
def test_where_all_are_alike_nothing_has_to_be_set(build, apart, what):
    with Job([str(build("live_traffic.c")), "100000"], 3, env=preloading(apart, APART[what][0])) as job:
        codes = job.wait(LIMIT_S)
        if CANNOT in codes:
            pytest.skip(f"this machine does not let ranks be kept apart so: {job.said()}")
        assert codes == [0, 0, 0], job.said()
