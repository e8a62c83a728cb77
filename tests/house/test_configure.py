"""A distribution's CMake, which is older than that of requirements.txt, configures the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def cmake_of_the_system() -> str | None:
    own = Path(sys.executable).parent
    return shutil.which("cmake", path=os.pathsep.join(p for p in os.get_exec_path() if Path(p) != own))


def test_the_cmake_of_the_system_configures_the_tree(tmp_path):
    cmake = cmake_of_the_system()
    if cmake is None:
        pytest.skip("there is no cmake beside that of the environment")
    # Every target of the tests, so that each function of cmake/floors.cmake is called.
    command = [cmake, "-S", ROOT, "-B", tmp_path, "-DSPINLOOM_TESTS=ON"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
