"""The first section of docs/mpi.md as a reader follows it: outputs are compared but for their times."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from layer_programs import MPIS, Mpi, run
from test_mpi_examples import FORTRAN, in_python

ROOT = Path(__file__).resolve().parents[2]
SECTION = (ROOT / "docs/mpi.md").read_text(encoding="utf-8").split("\n## ")[1]
STEP = re.compile(r"^    (?P<command>[^\n]+)$|^```output\n(?P<output>.*?)^```$", re.DOTALL | re.MULTILINE)


def usual_names(mpi: Mpi, folder: Path) -> None:
    """Programs of the page's names in `folder`, which do what the page means with this MPI."""
    python = in_python(mpi, folder)[:-2]
    for name, words in {
        "mpicc": [mpi.compiler, "-Wl,-rpath," + str(Path(mpi.compiler).parent.parent / "lib")],
        "mpif90": [FORTRAN.get(mpi.name, "mpif90")],
        "mpiexec": [mpi.launcher, *mpi.options],
        "spinloom": [sys.executable, "-m", "spinloom.cli"],
        ".venv/bin/python": [*python, sys.executable],
    }.items():
        script = folder / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")


def plain(line: str) -> str:
    """Without times, spaces, and what depends on whether the ranks had met at their first message."""
    changing = r"[\d.]+ us|\d+ messages with [\d,]+|[\d,]+ [\d,]+ (?=staged)"
    return re.sub(changing, "N", " ".join(line.split()))


@pytest.mark.parametrize("mpi", MPIS[:3], ids=lambda mpi: mpi.name)
def test_the_section_does_what_it_says(mpi, tmp_path):
    usual_names(mpi, tmp_path)
    said: list[str] = []
    seen = {"command": 0, "output": 0}
    for step in STEP.finditer(SECTION):
        seen[step.lastgroup or ""] += 1
        if step["output"]:
            for line in step["output"].splitlines():
                assert plain(line) in said, said
            continue
        command = step["command"]
        if "fortran" in command and shutil.which(FORTRAN.get(mpi.name, "none")) is None:
            continue
        if command.startswith("export "):
            continue
        ran = run(["sh", "-c", f"cd {shlex.quote(str(tmp_path))} && PATH=$PWD:$PATH && {command} 2>&1"], {})
        assert ran.returncode == 0, f"{command}:\n{ran.stdout}"
        said = [plain(line) for line in ran.stdout.splitlines()]
    assert seen == {"command": 7, "output": 2}
