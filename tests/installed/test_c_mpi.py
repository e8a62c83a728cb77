"""libspinloom_mpi.so from outside the tree: installed, found by CMake and pkg-config, linked to programs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import layer_programs
from c_library import configure, install, kept_build, pkg_config, run, tool
from layer_programs import Mpi, compile_for, every_mpi

PROJECT = Path(__file__).resolve().parent / "mpi"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """The component, installed from the build folder that `make` keeps, then moved."""
    return install("mpi", kept_build(), tmp_path_factory, "spinloom_heap")


def flags(prefix: Path) -> list[str]:
    found = pkg_config(prefix, "spinloom-mpi", "--cflags", "--libs")
    return ["-std=c11", "-Wall", "-Wextra", "-Werror", *found, f"-Wl,-rpath,{prefix}/lib"]


@pytest.fixture
def column(mpi: Mpi, prefix: Path, tmp_path: Path) -> Path:
    """The program, linked with the layer; skips where the MPI compiles nothing here."""
    source, program = PROJECT / "column.c", tmp_path / "column"
    compile_for(mpi, [source], tmp_path / "column.o", "-c", f"-I{prefix}/include")
    beside = Path(mpi.compiler).parent.parent / "lib"
    run(mpi.compiler, source, "-o", program, *flags(prefix), f"-Wl,-rpath,{beside}")
    return program


@pytest.fixture
def fortran_column(mpi: Mpi, prefix: Path, tmp_path: Path) -> Path:
    compiler = shutil.which(mpi.compiler.replace("mpicc.", "mpif90."))
    if "mpicc." not in mpi.compiler or compiler is None or not mpi.present:
        pytest.skip(f"{mpi.name} has no Fortran compiler here")
    words = [flag for flag in flags(prefix) if not flag.startswith(("-std", "-W")) or flag.startswith("-Wl")]
    run(compiler, "-Wall", PROJECT / "column.f90", "-o", tmp_path / "column", *words)
    return tmp_path / "column"


def expect_good(mpi: Mpi, program: Path, report: Path, sent: list[int], **settings: str) -> None:
    words = [mpi.launcher, *mpi.options, "-n", str(len(sent)), str(program)]
    ran = layer_programs.run(words, {"SPINLOOM_MPI_REPORT": str(report), **settings})
    assert (ran.returncode, ran.stdout) == (0, f"{len(sent)} ranks, good\n"), ran.stderr
    lines = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [line["sent"] for line in lines] == sent


@every_mpi
def test_a_program_that_is_linked_needs_no_preload(mpi, column, tmp_path):
    expect_good(mpi, column, tmp_path / "linked", [3, 3, 3])
    expect_good(mpi, column, tmp_path / "off", [0, 0], SPINLOOM_MPI="off")
    expect_good(mpi, column, tmp_path / "both", [3, 3], **layer_programs.preloads(tmp_path / "both"))


@every_mpi
def test_some_ranks_may_have_the_layer_off(mpi, column):
    part = ["-n", "1", "env"]
    words = [mpi.launcher, *mpi.options, *part, "SPINLOOM_MPI=off", str(column), ":", *part, str(column)]
    ran = layer_programs.run(words, {})
    assert (ran.returncode, ran.stdout) == (0, "2 ranks, good\n"), ran.stderr


@every_mpi
def test_fortran_hands_out_layouts_too(mpi, fortran_column, tmp_path):
    settings = layer_programs.preloads(tmp_path / "both")
    expect_good(mpi, fortran_column, tmp_path / "linked", [1, 1, 1])
    expect_good(mpi, fortran_column, tmp_path / "off", [0, 0], SPINLOOM_MPI="off")
    expect_good(mpi, fortran_column, tmp_path / "both", [1, 1], **settings)


def test_cmake_finds_it(prefix, tmp_path):
    mpi = next((each for each in layer_programs.MPIS if each.present), None)
    if mpi is None:
        pytest.skip("there is no MPI compiler")
    compiler = shutil.which(mpi.compiler)
    configure(PROJECT, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={compiler}")
    run(tool("cmake"), "--build", tmp_path)
    expect_good(mpi, tmp_path / "column", tmp_path / "report", [3, 3])


def test_the_headers_functions_are_exported(prefix):
    text = (prefix / "include/spinloom/mpix.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^int (MPIX_\w+)\(", text, re.MULTILINE))
    listing = run("nm", "-D", "--defined-only", prefix / "lib/libspinloom_mpi.so").split()[2::3]
    exported = {name for name in listing if name.lower().startswith("mpix_")}
    fortran = {f"{name.lower()}{bars}" for name in declared for bars in ("", "_", "__")}
    assert exported == declared | fortran | {name.upper() for name in declared} != set()


def test_the_manual_lies_beside(prefix):
    assert (
        (prefix / "share/man/man3/MPIX_Type_free_comm.3").read_text(encoding="utf-8").startswith(".so man3/")
    )
    assert (prefix / "share/man/man7/spinloom-mpi.7").is_file()
    assert not (prefix / "share/man/man7/portals.7").exists(), "that one is of the component portals"
