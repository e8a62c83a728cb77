"""Programs that were not written for the layer: their results with it are those without it.

Some are small ones of ours over libraries that were not written for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from layer_programs import MPIS, Mpi, compile_for, preloads, run

OPENMPI, MPICH = MPIS[:2]  # Debian's programs are built with these
SOURCES = Path(__file__).parent / "programs"

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


SHORT = {"SPINLOOM_MPI_MIN_BYTES": "64"}


def both(
    mpi: Mpi,
    words: list[str],
    ranks: int,
    folder: Path,
    settings: dict[str, str],
    prepare: Callable[[Path], None],
) -> tuple[list[tuple[str, dict[str, bytes]]], int]:
    """Runs a job without the layer and with it, in a folder each that `prepare` has filled.

    What each printed and the files that it wrote; and how many messages the layer has carried."""
    if not mpi.present:
        pytest.skip(f"{mpi.name} is not here")
    report = folder / "report"
    results = []
    for name, more in (("without", {}), ("with", preloads(report) | settings)):
        here = folder / name
        here.mkdir()
        prepare(here)
        given = {path.name for path in here.iterdir()}
        job = ["env", "-C", str(here), mpi.launcher, *mpi.options, "-n", str(ranks), *words]
        ran = run(job, more)
        assert ran.returncode == 0, f"{job} {more}\n{ran.stdout[-1000:]}{ran.stderr[-1000:]}"
        written = {path.name: path.read_bytes() for path in here.iterdir() if path.name not in given}
        results.append((ran.stdout, written))
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["on"] for line in lines] == [True] * ranks
    return results, sum(line["sent"] for line in lines)


@pytest.mark.skipif(shutil.which("lmp") is None, reason="LAMMPS (lmp) is not here")
@pytest.mark.parametrize("ranks", [2, 4])
def test_lammps_melts_to_the_same_atoms(ranks, tmp_path):
    def prepare(folder: Path) -> None:
        (folder / "in.melt").write_text(MELT, encoding="utf-8")

    (without, layered), _ = both(OPENMPI, ["lmp", "-in", "in.melt"], ranks, tmp_path, {}, prepare)
    assert layered[1]["atoms"] == without[1]["atoms"]


def flags_of(package: str) -> tuple[str, ...]:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not here")
    ran = subprocess.run(
        ["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        pytest.skip(f"{package} is not here")
    return tuple(ran.stdout.split())


def of_library(name: str, mpi: Mpi, flags: tuple[str, ...], ranks: int, folder: Path, **settings: str) -> int:
    """Whether a program of ours over a library writes the same files; how many messages were carried."""
    program = folder / name
    compile_for(mpi, [SOURCES / f"{name}.c"], program, libraries=flags)
    (without, layered), sent = both(mpi, [str(program)], ranks, folder, settings, lambda _: None)
    assert without[1]
    assert layered[1] == without[1]
    return sent


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("way", ["auto", "staged", "mapped"])
def test_petsc_multiplies_by_a_dense_matrix(way, ranks, tmp_path):
    sent = of_library("petsc_product", OPENMPI, flags_of("petsc"), ranks, tmp_path, SPINLOOM_MPI_PATH=way)
    assert sent >= 3 * (ranks - 1)  # the settings are the default ones


def test_fftw_transposes_by_messages_that_are_mapped(tmp_path):
    flags = ("-lfftw3_mpi", *flags_of("fftw3"), "-lm")
    of_library("fftw_transpose", OPENMPI, flags, 2, tmp_path, SPINLOOM_MPI_PATH="mapped", **SHORT)


@pytest.mark.parametrize(
    ("mpi", "package"), [(OPENMPI, "hdf5-openmpi"), (MPICH, "hdf5-mpich")], ids=["Open MPI", "MPICH"]
)
def test_hdf5_files_are_the_same(mpi, package, tmp_path):
    of_library("hdf5_columns", mpi, flags_of(package), 2, tmp_path, **SHORT)


HAS_PENCILS = "import mpi4py_fft, mpi4py.MPI as m; assert 'Open MPI v4' in m.Get_library_version()"


def python_with_pencils() -> str:
    """A Python with mpi4py-fft for Debian's Open MPI."""
    python = os.environ.get("SPINLOOM_TEST_PYTHON", "/usr/bin/python3")
    found = shutil.which(python) is not None
    if not found or subprocess.run([python, "-c", HAS_PENCILS], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has no mpi4py-fft for Debian's Open MPI")
    return python


def test_mpi4py_fft_redistributes_its_pencils(tmp_path):
    words = [python_with_pencils(), str(SOURCES / "pencils.py"), "3", "64x96", "256x256", "32x48x64"]
    (without, layered), sent = both(OPENMPI, words, 2, tmp_path, SHORT, lambda _: None)
    assert layered[0] == without[0]
    assert without[0].count(" whole ") == 3
    assert sent >= 3 * 4  # a message each way forth, three times, and back


# Messages of some hundred bytes and of more than 16 KiB. Without the test of iterative refinement: by what
# malloc's memory holds, its ranks disagree on when to stop, and hang; MALLOC_PERTURB_=90 shows it without us.
LU = """'ScaLAPACK, LU factorization input file'
'MPI machine'
'LU.out'
6
2
57 300
50 300
2
13 32
1
3
1
5
2
1 2
2 1
3.0
F
"""


def scalapack(mpi: Mpi, name: str) -> Path:
    folder = "openmpi-tests" if mpi is OPENMPI else "mpich-tests"
    found = sorted(Path("/usr/lib").glob(f"*/scalapack/{folder}/{name}"))
    if not found:
        pytest.skip(f"ScaLAPACK's {name} for {mpi.name} is not here")
    return found[0]


def rows(printed: str) -> list[str]:
    """The tables of ScaLAPACK's tests, without times."""
    tables = [line for line in printed.splitlines() if line.startswith("WALL")]
    return [" ".join(word for word in line.split() if "." not in word) for line in tables]


@pytest.mark.parametrize("mpi", [OPENMPI, MPICH], ids=["Open MPI", "MPICH"])
@pytest.mark.parametrize("settings", [{}, SHORT], ids=["default", "short"])
def test_scalapack_factorises_as_many_matrices(mpi, settings, tmp_path):
    def prepare(folder: Path) -> None:
        (folder / "LU.dat").write_text(LU, encoding="utf-8")

    results, sent = both(mpi, [str(scalapack(mpi, "xdlu"))], 2, tmp_path, settings, prepare)
    without, layered = (rows(printed) for printed, _ in results)
    assert len(without) == 8
    assert layered == without
    assert all(row.endswith("PASSED") for row in layered)
    assert sent > 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xdqr", "xzqr", "xdinv", "xdls", "xdbrd", "xdhrd", "xdtrd"])
@pytest.mark.parametrize("mpi", [OPENMPI, MPICH], ids=["Open MPI", "MPICH"])
def test_scalapack_s_own_tests(mpi, name, tmp_path):
    program = scalapack(mpi, name)

    def prepare(folder: Path) -> None:
        for given in program.parent.glob("*.dat"):
            shutil.copy(given, folder)

    results, _ = both(mpi, [str(program)], 2, tmp_path, SHORT, prepare)
    without, layered = (rows(printed) for printed, _ in results)
    assert len(without) > 4
    assert layered == without
