"""Each program of the Portals calls over each way to run it: on every way all ranks give the same answers.

A way is a file in ways/; a program is a row of c_programs.CONFORMANCE. README.md says how to add one.
"""

from __future__ import annotations

import pytest

import ways
from c_programs import CONFORMANCE, PORTALS, needs_compiler
from conftest import needs_engine
from live_programs import answers_of, build, needs_library

__all__ = ["build"]
SIMULATED = "simulated"
CASES = [(way, program) for way in ways.ways() for program in way.programs]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    found = ways.Places(tmp_path_factory.mktemp("places"))
    yield found
    found.close()


def expected(program: str) -> dict[int, int]:
    return dict(enumerate(CONFORMANCE[program][1]))


@needs_engine
@needs_compiler
@pytest.mark.parametrize(
    "program", [program for way, program in CASES if way.starter == SIMULATED], ids=lambda name: name
)
def test_programs_hold_in_modelled_time(sim, program):
    code, ran, said = sim(CONFORMANCE[program][0], PORTALS / program)
    assert code == 0, said + ran.get("output", "")
    assert answers_of(ran["output"]) == expected(program), said


@needs_library
@needs_compiler
@pytest.mark.parametrize(
    ("way", "program"),
    [case for case in CASES if case[0].starter != SIMULATED],
    ids=lambda part: part if isinstance(part, str) else part.name,
)
def test_programs_hold_over(build, places, way, program):
    output = ways.run(way, places, CONFORMANCE[program][0], build(program))
    assert answers_of(output) == expected(program), output


@pytest.mark.parametrize("way", ways.ways(), ids=lambda way: way.name)
def test_a_way_names_programs_that_are_there(way):
    assert way.starter in {SIMULATED, ways.COMMAND, *ways.STARTERS}
    assert bool(way.command) == (way.starter == ways.COMMAND)
    assert {*way.only, *way.without} <= set(CONFORMANCE)
    assert all(why.strip() for why in way.without.values())
