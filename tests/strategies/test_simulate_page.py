"""docs/simulate.md: each of its calls of simulate runs, and its table has every strategy."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.nics import strategies

pytestmark = needs_engine
PAGE = (Path(__file__).resolve().parents[2] / "docs/simulate.md").read_text(encoding="utf-8")
CALLS = re.findall(r"^    spinloom simulate ([^#\n]*)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("call", CALLS)
def test_every_call_of_the_page_runs(spinloom, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    ran = spinloom("simulate", *shlex.split(call), "--quiet")
    assert ran.code == 0, ran.err
    assert ran.out


def test_the_page_has_every_strategy():
    assert set(strategies.STRATEGIES) == set(
        re.findall(r"^\| `([\w-]+)` \| ", PAGE.split("## Your own")[0], re.MULTILINE)
    )
