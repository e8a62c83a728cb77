"""gpu.Pair: two processes of the driver of tests/gpu/driver, or of a GPU with CuPy where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom import core, gpu
from spinloom.errors import Trouble

pytestmark = needs_engine

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DRIVER = Path(os.environ.get("SPINLOOM_TEST_BUILD", ROOT / "build/release")) / "gpu_driver"
WAYS = ["ipc", "staged", "packed"]


def has_gpu() -> bool:
    return core.available() and bool(core.load().gpu_devices())


@pytest.fixture(params=["the driver of the tests", "a GPU"])
def environment(request):
    """Of a program that has a GPU."""
    made = dict(os.environ)
    if request.param == "a GPU":
        if not has_gpu():
            pytest.skip("there is no GPU here")
        pytest.importorskip("cupy")
        return made
    if not (DRIVER / "libcuda.so.1").exists():
        pytest.skip(f"{DRIVER} is not built")
    made["LD_LIBRARY_PATH"] = f"{DRIVER}:{made.get('LD_LIBRARY_PATH', '')}"
    made["PYTHONPATH"] = f"{HERE / 'on_driver'}:{made.get('PYTHONPATH', '')}"
    return made


def program(environment, *arguments):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", ["views", "both_ways", "errors", "talks", "killed"])
def test_two_processes(environment, case, way):
    said = program({**environment, "SPINLOOM_GPU_PEER": way}, HERE / "pair_process.py", case)
    assert f"process 0 of {case}: {way}" in said


@pytest.mark.parametrize("way", ["auto", *WAYS])
def test_the_example(environment, way):
    said = program({**environment, "SPINLOOM_GPU_PEER": way}, ROOT / "examples/gpu/two_processes.py")
    assert said.count("the ghost column holds the neighbour's column") == 2
    assert f"process 1: {'ipc' if way == 'auto' else way}: " in said


def test_what_a_pair_refuses():
    with pytest.raises(TypeError, match="a multiprocessing Connection or a socket, not str"):
        gpu.Pair("here")
    with pytest.raises(Trouble, match="patience_s is 0"):
        gpu.Pair(0, patience_s=0)


def test_a_pair_needs_a_device(monkeypatch):
    monkeypatch.setenv("SPINLOOM_GPU", "shim")
    with pytest.raises(Trouble, match="has no device that two processes could share"):
        gpu.Pair(0)
