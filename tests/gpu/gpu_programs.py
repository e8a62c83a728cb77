"""Programs of their own that have a GPU: the driver of tests/gpu/driver, or a real one with CuPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from patience import seconds
from spinloom.common import core

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DRIVER = (
    Path(os.environ.get("SPINLOOM_TEST_BUILD", ROOT / "build/release")) / "gpu_driver"
)  # the C++ tests' build makes it


def has_gpu() -> bool:
    return core.available() and bool(core.load().gpu_devices())


def environment_of(kind: str) -> dict[str, str]:
    environment = dict(os.environ)
    if kind == "a GPU":
        if not has_gpu():
            pytest.skip("there is no GPU here")
        pytest.importorskip("cupy")
        return environment
    if not (DRIVER / "libcuda.so.1").exists():
        pytest.skip(f"{DRIVER} is not built")
    environment["LD_LIBRARY_PATH"] = f"{DRIVER}:{environment.get('LD_LIBRARY_PATH', '')}"
    environment["PYTHONPATH"] = f"{HERE / 'on_driver'}:{environment.get('PYTHONPATH', '')}"
    return environment


KINDS = pytest.mark.parametrize("kind", ["the driver of the tests", "a GPU"])


def program(kind: str, *arguments: object, launcher: Sequence[object] = (), **variables: str) -> str:
    done = subprocess.run(
        [*map(str, launcher), sys.executable, *map(str, arguments)],
        env={**environment_of(kind), **variables},
        capture_output=True,
        text=True,
        timeout=seconds(120),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
