"""A test that fails once has a second try, and is named; one that fails twice fails the run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "tools/pytests.py"
spec = importlib.util.spec_from_file_location("pytests", PATH)
pytests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pytests)


@pytest.mark.parametrize(
    ("codes", "failed", "ends", "calls"),
    [
        ([0], [], 0, 1),
        ([1, 0], ["a", "b"], 0, 2),
        ([1, 1], ["a"], 1, 2),
        ([1], ["a", "b", "c", "d"], 1, 1),
        ([2], ["a"], 2, 1),  # interrupted
        ([5], [], 5, 1),  # no tests
    ],
)
def test_few_failed_tests_are_tried_again(capsys, codes, failed, ends, calls):
    said = []
    left = list(codes)

    def run(*arguments):
        said.append(arguments)
        return left.pop(0)

    assert pytests.main(["-x"], run, lambda: failed) == ends
    assert len(said) == calls
    assert said[0] == ("--cache-clear", *pytests.WORKERS, "-x")
    assert said[1:] == [tuple(failed)] * (calls - 1)
    named = [line for line in capsys.readouterr().out.splitlines() if line.startswith("UNSTEADY")]
    assert len(named) == (len(failed) if calls == 2 and ends == 0 else 0)
