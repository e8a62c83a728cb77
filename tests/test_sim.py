"""C programs on simulated NICs: the examples, and what a program may do wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from conftest import needs_engine
from spinloom import profiles, studies
from spinloom.lab import Lab

EXAMPLES = Path(__file__).resolve().parent.parent / "examples/portals"
NIC = "sc17-discrete"

pytestmark = [
    needs_engine,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.fixture
def sim(spinloom):
    """sim(2, "program.c", "argument") is the run's exit code, its JSON, and what was said."""

    def run(ranks: int, *arguments: str, options: tuple[str, ...] = ()) -> tuple[int, dict, str]:
        ran = spinloom("sim", "-n", str(ranks), "--nic", NIC, "--json", *options, *map(str, arguments))
        return ran.code, json.loads(ran.out) if ran.out else {}, ran.err

    return run


@pytest.fixture
def source(tmp_path):
    """source("int main...") is a file with a program's main(), after the usual includes and helpers."""
    before = """
        #include <portals4.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <time.h>
        #include <unistd.h>
        static int rank_of(void) { return atoi(getenv("SPINLOOM_RANK")); }
        static int size_of(void) { return atoi(getenv("SPINLOOM_SIZE")); }
        static ptl_handle_ni_t begin(unsigned options) {
          ptl_handle_ni_t ni;
          if (PtlInit() != PTL_OK) abort();
          if (PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) abort();
          return ni;
        }
        """

    def write(text: str, name: str = "program.c") -> Path:
        path = tmp_path / name
        path.write_text(before + text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("size_bytes", [8, 4096, 65536])
def test_a_ping_pong_takes_what_the_study_says_and_half_a_call(sim, size_bytes):
    """The program's clock starts before its put, whose call costs o; the study's starts after that."""
    code, ran, said = sim(2, EXAMPLES / "pingpong.c", size_bytes)
    assert code == 0, said
    measured_ns = float(re.fullmatch(r"\d+ B: ([\d.]+) ns\n", ran["output"])[1])
    expected_ps = Lab(1)[studies.probe("pingpong", NIC, "portals4", size_bytes)]["time_ps"]
    call_ps = profiles.load(NIC)["host.call"]
    assert measured_ns == pytest.approx((expected_ps + call_ps / 2) / 1000, abs=0.5)  # its clock counts ns
