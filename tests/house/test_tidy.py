"""clang-tidy's choice of sources, tools/tidy.py: with --recent every changed file is read, by few sources."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("tidy", Path(__file__).parents[2] / "tools/tidy.py")
tidy = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tidy)

READ_BY = {
    Path(source): {Path(source), *map(Path, headers)}
    for source, headers in {
        "low.cpp": ["low.hpp"],
        "middle.cpp": ["low.hpp", "middle.hpp"],
        "high.cpp": ["low.hpp", "middle.hpp", "high.hpp"],
        "apart.cpp": ["apart.hpp"],
    }.items()
}


def chosen(*changed: str) -> set[str]:
    return {str(source) for source in tidy.covering(READ_BY, set(map(Path, changed)))}


def test_a_changed_source_is_looked_at():
    assert chosen("middle.cpp") == {"middle.cpp"}


def test_a_changed_header_is_looked_at_in_one_source_that_reads_it():
    assert chosen("low.hpp") == {"high.cpp"}


def test_one_source_serves_for_all_the_headers_that_it_reads():
    assert chosen("low.hpp", "middle.hpp", "high.hpp") == {"high.cpp"}
    assert chosen("low.hpp", "apart.hpp") == {"apart.cpp", "high.cpp"}


def test_a_changed_source_serves_for_its_headers_too():
    assert chosen("low.cpp", "low.hpp") == {"low.cpp"}


def test_files_that_no_source_reads_choose_none():
    assert chosen("README.md", "unused.hpp") == set()
