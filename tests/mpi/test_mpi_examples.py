"""examples/mpi under every MPI that is here: the grid with the layer is the one without it."""

from __future__ import annotations

import glob
import json
import shutil
import sys
from pathlib import Path

import pytest

from layer_programs import BIN, MPIS, Mpi, compile_for, every_mpi, preloads, run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/mpi"
SIDE, STEPS = 64, 5  # a face has 32 KiB
FORTRAN = {"Debian's Open MPI": "mpif90.openmpi", "Debian's MPICH": "mpif90.mpich"}
LIBRARIES = {
    "Debian's Open MPI": "/usr/lib/*/libmpi.so.40",
    "Debian's MPICH": "/usr/lib/*/libmpich.so.12",
    "MPICH 5": f"{BIN.parent}/lib/libmpi.so.12",
}


def in_c(mpi: Mpi, folder: Path) -> list[str]:
    compile_for(mpi, [EXAMPLES / "halo.c"], folder / "halo", "-std=c11")
    return [str(folder / "halo")]


def in_fortran(mpi: Mpi, folder: Path) -> list[str]:
    compiler = FORTRAN.get(mpi.name)
    if compiler is None or shutil.which(compiler) is None:
        pytest.skip(f"{mpi.name} has no Fortran compiler here")
    fortran = Mpi(mpi.name, compiler, mpi.launcher, mpi.options)
    compile_for(fortran, [EXAMPLES / "halo.f90"], folder / "halo", "-Wall", f"-J{folder}")
    return [str(folder / "halo")]


def in_python(mpi: Mpi, folder: Path, program: str = "halo.py") -> list[str]:
    pytest.importorskip("mpi4py")
    if mpi.name not in LIBRARIES:
        pytest.skip(f"mpi4py's wheel has no module for {mpi.name}")
    if not (found := glob.glob(LIBRARIES[mpi.name])) or not mpi.present:
        pytest.skip(f"{mpi.name} is not here")
    settings = [f"MPI4PY_LIBMPI={found[0]}"]
    if found[0].endswith("libmpich.so.12"):  # Debian's name for what mpi4py is linked with
        (folder / "libmpi.so.12").symlink_to(found[0])
        settings = ["MPI4PY_MPIABI=mpich", f"LD_LIBRARY_PATH={folder}"]
    return ["env", *settings, sys.executable, str(EXAMPLES / program)]


def grid_of(ran) -> str:
    assert ran.returncode == 0, f"{ran.stdout[-1000:]}{ran.stderr[-2000:]}"
    grid, time = ran.stdout.splitlines()
    assert " 0 wrong, sum " in grid
    assert " us an exchange" in time
    return grid


@every_mpi
@pytest.mark.parametrize("program", [in_c, in_fortran, in_python], ids=["C", "Fortran", "Python"])
def test_the_halo_is_the_same_with_the_layer(mpi, program, tmp_path):
    words = [*program(mpi, tmp_path), str(SIDE), str(STEPS)]
    for ranks in ([1, 1, 2], [2, 1, 1], [2, 2, 1]):
        count = ranks[0] * ranks[1] * ranks[2]
        report = tmp_path / "-".join(map(str, ranks))
        job = [mpi.launcher, *mpi.options, "-n", str(count), *words, *map(str, ranks)]
        assert grid_of(run(job, preloads(report))) == grid_of(run(job, {}))
        lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
        assert [line["on"] for line in lines] == [True] * count
        faces = {2: 2, 4: 8}[count]  # faces that have a neighbour
        sent = sum(line["sent"] for line in lines)
        assert faces * (STEPS - 1) <= sent <= faces * STEPS  # ranks meet when they first receive


@every_mpi
def test_the_transpose_is_the_same_with_the_layer(mpi, tmp_path):
    compile_for(mpi, [EXAMPLES / "transpose.c"], tmp_path / "transpose", "-std=c11")
    for ranks in (2, 3):
        report = tmp_path / f"report{ranks}"
        job = [mpi.launcher, *mpi.options, "-n", str(ranks), str(tmp_path / "transpose"), "96", "9"]
        for settings in ({}, preloads(report)):
            ran = run(job, settings)
            assert ran.returncode == 0, ran.stderr[-2000:]
            assert f"96 x 96 complex doubles on {ranks} ranks: 0 wrong" in ran.stdout
        lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
        assert sum(line["sent"] for line in lines) >= ranks * (ranks - 1) * 3


@every_mpi
@pytest.mark.parametrize("busy_us", [0, 200])
def test_tickets_and_columns_are_right_with_the_layer(mpi, busy_us, tmp_path):
    job = [mpi.launcher, *mpi.options, "-n", "2", *in_python(mpi, tmp_path, "tickets.py"), "30", str(busy_us)]
    report = tmp_path / "report"
    for settings in ({}, preloads(report)):
        ran = run(job, settings)
        assert ran.returncode == 0, ran.stderr[-2000:]
        assert ran.stdout.strip().endswith(" 0 wrong")
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["rma"]["mapped"] for line in lines] == [1, 1]


def test_all_languages_compute_the_same(tmp_path):
    mpi = next((each for each in MPIS if each.present and each.name in FORTRAN), None)
    if mpi is None:
        pytest.skip("no MPI with Fortran is here")
    sums = set()
    for program, ranks in ((in_c, "1 1 2"), (in_fortran, "2 1 1"), (in_python, "1 1 2")):
        folder = tmp_path / program.__name__
        folder.mkdir()
        job = [mpi.launcher, *mpi.options, "-n", "2", *program(mpi, folder), str(SIDE), "3", *ranks.split()]
        sums.add(grid_of(run(job, {})).partition(":")[2])
    assert len(sums) == 1
