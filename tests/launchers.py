"""The launchers of this machine that start ranks of the live NIC, and programs compiled for it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from patience import seconds

BIN = Path(sys.executable).parent  # the environment that requirements.txt fills
TIME_LIMIT_S = seconds(240)


@functools.cache
def available() -> dict[str, tuple[str, ...]]:
    """By its interface, what comes before "-n RANKS PROGRAM"."""
    places = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    launchers: dict[str, tuple[str, ...]] = {}
    if hydra := shutil.which("mpiexec.hydra", path=places):
        launchers["PMI-1"] = (hydra,)
    if openmpi := shutil.which("mpirun.openmpi", path=places):
        launchers["PMIx"] = (openmpi, "--oversubscribe", "--allow-run-as-root")
    return launchers


def run(launcher: str, ranks: int, *command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """The job's exit code, output and complaints; `settings` are environment variables."""
    words = [*available()[launcher], "-n", str(ranks), *map(str, command)]
    return subprocess.run(
        words,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
    )
