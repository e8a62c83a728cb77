"""MPICH 5.0 reads more of its lists of blocks than it has written, where it copies by system calls.

With memory that was used before that is an error of process_vm_readv (errno 22), which ends the job. Under
`spinloom run` such lists begin as zeros, whatever lay there before.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from layer_programs import every_mpi, programs_of, run

SOURCE = Path(__file__).parent / "unwritten_lists.c"
# The C library fills what it gives out with bytes of negative numbers.
SOILED = {"MALLOC_PERTURB_": "90"}


@pytest.fixture(scope="module")
def program():
    return programs_of(SOURCE)


@every_mpi
@pytest.mark.parametrize("path", ["pass", "auto"])
@pytest.mark.parametrize("elements", [1_500, 3_000, 100_000], ids=["short", "long", "from the shared heap"])
def test_blocks_that_make_one_are_received(mpi, program, elements, path):
    words = [mpi.launcher, *mpi.options, "-n", "2", str(program(mpi)), str(elements)]
    ran = run(["spinloom", "run", f"--path={path}", "--", *words], SOILED)
    assert ran.returncode == 0, ran.stdout[-1000:] + ran.stderr[-2000:]
    assert f"{elements} elements, 0 wrong" in ran.stdout
