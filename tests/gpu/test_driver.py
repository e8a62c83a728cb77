"""A program that touches memory of the driver for tests dies, and the driver says of what."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from gpu_programs import environment_of
from patience import seconds

TOUCH = """
import ctypes, sys
from spinloom.layout import cuda
driver = cuda.driver()
memory = driver.allocate(5000)
if sys.argv[1] == "freed":
    driver.free(memory)
ctypes.string_at(memory + 4500, 1)
"""


@pytest.mark.parametrize(("when", "where"), [("held", "in"), ("freed", "in the freed")])
def test_a_program_that_touches_its_memory_learns_which(when, where):
    ran = subprocess.run(
        [sys.executable, "-c", TOUCH, when],
        env=environment_of("the driver of the tests"),
        capture_output=True,
        text=True,
        timeout=seconds(60),
        check=False,
    )
    assert ran.returncode == -signal.SIGSEGV, ran.stdout + ran.stderr
    assert re.search(r"SIGSEGV in process \d+, thread \d+, at 0x", ran.stderr)
    assert re.search(
        rf"^  {where} allocation \d+ of the device, byte 4500 of 5000$", ran.stderr, re.MULTILINE
    )
    assert "libffi" in ran.stderr or "libc.so" in ran.stderr  # the calls that led there
