"""Programs that were not written for the layer: their results with it are those without it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from layer_programs import MPIS, preloads, run

OPENMPI = MPIS[0]  # what Debian's programs are built with

MELT = """
units lj
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 5 check no
fix 1 all nve
dump 1 all custom 10 atoms id x y z vx vy vz
dump_modify 1 sort id format float %.17g
run 30
"""


@pytest.mark.skipif(shutil.which("lmp") is None, reason="LAMMPS (lmp) is not here")
@pytest.mark.parametrize("ranks", [2, 4])
def test_lammps_melts_to_the_same_atoms(ranks, tmp_path):
    if not OPENMPI.present:
        pytest.skip(f"{OPENMPI.name} is not here")

    def atoms(name: str, settings: dict[str, str]) -> bytes:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "in.melt").write_text(MELT, encoding="utf-8")
        words = ["env", "-C", str(folder), OPENMPI.launcher, *OPENMPI.options]
        ran = run([*words, "-n", str(ranks), "lmp", "-in", "in.melt"], settings)
        assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-1000:]}"
        return (folder / "atoms").read_bytes()

    report = Path(tmp_path / "report")
    assert atoms("with", preloads(report)) == atoms("without", {})
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["on"] for line in lines] == [True] * ranks
