"""Memory that ranks name and do not have, over every way in which bytes travel."""

from __future__ import annotations

import pytest

from c_programs import CONFORMANCE
from test_live import answers_of, build, run
from test_live_fabric import SLOW_FABRIC, over

__all__ = ["build"]
pytestmark = pytest.mark.usefixtures("build")

WAYS = [
    {"SPINLOOM_COPY": "heap"},
    {"SPINLOOM_COPY": "single-copy"},
    {"SPINLOOM_COPY": "two-copy"},
    {"SPINLOOM_TRANSPORT": "udp"},
    {"SPINLOOM_TRANSPORT": "udp", "SPINLOOM_UDP_FAULTS": "drop=0.02,reorder=0.02,seed=7"},
]


def nobody_dies(build, *arguments: str, **settings: str) -> None:
    ranks, answers = CONFORMANCE["portals_missing.c"]
    output = run("mpich", ranks, build("portals_missing.c"), *arguments, **settings)
    assert answers_of(output) == dict(enumerate(answers)), output


@pytest.mark.parametrize("settings", WAYS, ids=lambda settings: "-".join(settings.values()))
def test_memory_that_is_not_there_kills_nobody(build, settings):
    nobody_dies(build, **settings)


@pytest.mark.parametrize("faults", ["", SLOW_FABRIC])
@pytest.mark.parametrize("provider", ["tcp", "shm"])
def test_nor_does_it_over_a_fabric(build, provider, faults):
    nobody_dies(build, **over(provider), **({"SPINLOOM_FABRIC_FAULTS": faults} if faults else {}))


def test_entries_over_all_memory_need_not_be_asked_for(build):
    output = run("mpich", 2, build("portals_missing.c"), "plain")
    assert answers_of(output).keys() == {0, 1}, output


def test_a_program_that_handles_its_faults_itself(build):
    nobody_dies(build, "handles")
