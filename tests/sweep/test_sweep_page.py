"""docs/sweep.md: its file and its commands, run in order; the cells are as many as it says."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.predict.goal_model import PARAMETERS
from spinloom.predict.grid import axes, slurm
from studies import kept, manifest

pytestmark = needs_engine


@pytest.fixture(autouse=True)
def one_worker(monkeypatch):
    """Unless a test says more: each worker takes a second to start."""
    monkeypatch.setenv("SPINLOOM_WORKERS", "1")


PAGE = (Path(__file__).resolve().parents[2] / "docs/sweep.md").read_text(encoding="utf-8")
FILES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^    spinloom sweep ([^#\n]*)(?:# (.*))?$", PAGE, re.MULTILINE)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "halo.toml").write_text(FILES[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_runs(spinloom, here):
    commands = [(shlex.split(line), remark) for line, remark in COMMANDS if "--scheduler" not in line]
    assert len(commands) == 5
    cells = {}
    for arguments, remark in commands:
        ran = spinloom("sweep", *arguments)
        assert ran.code == 0, ran.err
        if "--out" in arguments:
            folder = here / arguments[arguments.index("--out") + 1]
            cells[remark] = manifest(folder)
            assert len(kept(folder)) == len(set(kept(folder)))
        if "--by" in arguments:
            (printed,) = re.findall(r"```output\n(.*?)```", PAGE, re.DOTALL)
            assert printed in re.sub(r" +$", "", ran.out, flags=re.MULTILINE)
    assert cells["30 cells"]["computed_in_this_run"] == 30
    assert cells["the 10 new ones of a larger cube"]["computed_in_this_run"] == 10
    assert "modelled time" in (here / "out/halo/time_ps-over-n.svg").read_text(encoding="utf-8")
    assert (here / "out/scale/sweep.csv").exists()


def test_the_page_has_every_axis():
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| `.*$", PAGE, re.MULTILINE))))
    assert {*axes.DDT, *axes.GOAL} <= named
    assert set(PARAMETERS) <= set(axes.GOAL)


def test_the_options_of_slurm_are_those_that_exist():
    assert set(tomllib.loads(FILES[1])["slurm"]) <= set(slurm.OPTIONS)
