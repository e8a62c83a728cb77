"""The demo's result hash does not depend on the compiler's optimisation level nor on the slice.

Slow, because the engine is built twice: make test-slow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom.common import data

pytestmark = [needs_engine, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SLICES = (64, 256, 1024)

# The command line with one setting that it does not offer: how many cycles a slice has.
RUN = """
import sys
from spinloom import _core, cli
run_cell = _core.run_cell
_core.run_cell = lambda config: run_cell({**config, "slice_cycles": int(sys.argv[1])})
cli.main(["simulate", "--demo", "--json"])
"""


def build(level: str) -> Path:
    """The engine at that level, in a folder that is kept for the next time; the package around it."""
    folder = ROOT / "build" / f"optimisation{level}"
    configure = [
        "cmake", "-S", ROOT, "-B", folder, "-G", "Ninja",
        f"-DCMAKE_CXX_FLAGS_DEBUG={level}", f"-DCMAKE_C_FLAGS_DEBUG={level}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DSPINLOOM_PYTHON=ON", "-DSPINLOOM_TESTS=OFF", "-DSPINLOOM_HANDLERS=OFF",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]  # fmt: skip
    for command in (configure, ["cmake", "--build", folder, "--target", "spinloom_core"]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    package = folder / "python" / "spinloom"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(
        ROOT / "python" / "spinloom", package, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    (engine,) = folder.rglob("src/app/_core*.so")
    shutil.copy(engine, package)
    for name in (
        "nics",
        "workloads",
        "handlers",
    ):  # the same images for both: the compiler of the host is tested
        target = package / data.INSTALLED.get(name, name)
        if data.folder(name) != target:
            shutil.copytree(data.folder(name), target)
    return package.parent


@pytest.fixture(scope="module")
def hashes() -> dict[tuple[str, int], str]:
    found = {}
    for level in ("-O0", "-O2"):
        path = build(level)
        for cycles in SLICES:
            done = subprocess.run(
                [sys.executable, "-c", RUN, str(cycles)],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(path)},
            )
            assert done.returncode == 0, done.stderr
            found[level, cycles] = json.loads(done.stdout)["result_hash"]
    return found


def test_one_hash_at_every_level_and_slice(hashes):
    assert len(hashes) == 2 * len(SLICES)
    assert len(set(hashes.values())) == 1, hashes
