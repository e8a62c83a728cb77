"""Every environment variable of Spinloom, in one table.

Precedence: option, then environment, then default. `spinloom info --config` prints each with its value
and origin; an unknown SPINLOOM_ variable gets a warning with the nearest name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from spinloom.errors import nearest

PREFIX = "SPINLOOM_"


@dataclass(frozen=True)
class Variable:
    name: str
    default: str
    help: str


VARIABLES = {
    variable.name: variable
    for variable in (
        Variable("SPINLOOM_NIC", "sc19-slingshot", "NIC profile, by name or path (--nic)"),
        Variable("SPINLOOM_SEED", "1", "seed of every random choice (--seed)"),
        Variable("SPINLOOM_THREADS", "0", "cells simulated at a time, 0 = one a core (--threads)"),
        Variable("SPINLOOM_KERNEL", "", "copy kernels: avx512, avx2, portable, walker; empty: the best"),
        Variable("SPINLOOM_TEST_SEED", "1", "seed of the random C++ tests; a failure prints its own"),
        Variable("SPINLOOM_BENCH_MPICC", "", "more MPI compilers for spinloom bench, separated by colons"),
        Variable("NO_COLOR", "", "set to anything: no colours"),
    )
}


def listing() -> list[dict[str, str]]:
    """name, value, origin ('environment' or 'default') and help of every variable."""
    return [
        {
            "name": variable.name,
            "value": os.environ.get(variable.name, variable.default),
            "origin": "environment" if variable.name in os.environ else "default",
            "help": variable.help,
        }
        for variable in VARIABLES.values()
    ]


def warnings() -> list[str]:
    """One sentence for each SPINLOOM_ variable that nothing reads."""
    ours = [name for name in VARIABLES if name.startswith(PREFIX)]
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in VARIABLES)
    return [f"the environment variable {name} is not known{nearest(name, ours)}" for name in unknown]
