"""The small module that `make demo` builds: layouts and cards of the whole one, and a cure for the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "build/release/src/app/cards").glob("_core*.so"))
LOAD = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("spinloom._core", {str(MODULES[0]) if MODULES else ""!r})
sys.modules["spinloom._core"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["spinloom._core"])
"""

pytestmark = pytest.mark.skipif(not MODULES, reason="build/release has no module of cards: make check-cpp")


def run(statements: str) -> str:
    done = subprocess.run([sys.executable, "-c", LOAD + statements], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_knows_layouts():
    said = run('print(sys.modules["spinloom._core"].describe("vector(4, 2, 8, double)")["size_bytes"])')
    assert said == "64\n"


def test_the_demo_command_has_the_results_of_the_whole_engine():
    command = (
        'from spinloom import cli; cli.main(["simulate", "--type", "vector(64, 2, 8, double)", "--json"])'
    )
    whole = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert '"result_hash"' in whole
    lines = [line for line in run(command).splitlines() if "result_hash" in line]
    assert lines
    assert lines == [line for line in whole.splitlines() if "result_hash" in line]


def test_what_only_the_whole_engine_has_is_refused_with_its_cure():
    said = run(
        "from spinloom.common import core\n"
        "from spinloom.errors import Trouble\n"
        "try:\n    core.load().goal_patterns()\n"
        "except Trouble as trouble:\n    print(trouble.code, trouble.message)"
    )
    assert said.startswith("environment ")
    assert "make setup" in said


def test_it_looks_like_any_other_module_from_outside():
    assert run('print(hasattr(sys.modules["spinloom._core"], "__path__"))') == "False\n"
