"""The C face of layouts from outside the tree: installed to a prefix, found by CMake and by pkg-config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import c_library
from c_library import ROOT, configure, exported, install, kept_build, run, tool

PROJECT = Path(__file__).resolve().parent / "layout"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """libspinloom_layout, built and installed as a packager would."""
    return install("layout", kept_build(), tmp_path_factory)


def test_cmake_finds_it(prefix, tmp_path):
    configure(PROJECT, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(tool("cmake"), "--build", tmp_path)
    for program in ("use_c", "use_c_static", "use_cpp"):
        assert run(tmp_path / program) == "good\n"


def pkg_config(prefix: Path, *questions: str) -> list[str]:
    return c_library.pkg_config(prefix, "spinloom-layout", *questions)


@pytest.mark.parametrize("source", ["use.c", "use.cpp"])
def test_pkg_config_finds_it(prefix, tmp_path, source):
    compiler = ["cc", "-std=c11"] if source.endswith(".c") else ["c++", "-std=c++17"]
    flags = pkg_config(prefix, "--cflags", "--libs")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run(*compiler, *strict, PROJECT / source, "-o", tmp_path / "use", *flags, f"-Wl,-rpath,{prefix}/lib")
    assert run(tmp_path / "use") == "good\n"


def test_pkg_config_says_what_the_static_library_needs(prefix, tmp_path):
    cflags = pkg_config(prefix, "--cflags")
    private = [word for word in pkg_config(prefix, "--static", "--libs") if word != "-lspinloom_layout"]
    archive = prefix / "lib/libspinloom_layout.a"
    run("cc", PROJECT / "use.c", "-o", tmp_path / "use", *cflags, archive, *private)
    assert run(tmp_path / "use") == "good\n"


def test_only_the_header_s_names_are_exported(prefix):
    declared = set(
        re.findall(
            r"\b(spl_layout_\w+)\(", (prefix / "include/spinloom/layout.h").read_text(encoding="utf-8")
        )
    )
    assert exported(prefix, "libspinloom_layout.so") == declared


def test_the_halo_example_gives_the_same_grids(prefix, tmp_path):
    configure(ROOT / "examples/halo", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(tool("cmake"), "--build", tmp_path)
    out = run(tmp_path / "halo", "24", "3")
    assert out.endswith("all grids are equal\n")
    rows = [line.split() for line in out.splitlines()[1:-1]]
    assert [" ".join(row[:2]) for row in rows] == ["z down", "z up", "y down", "y up", "x down", "x up"]
    assert all(float(row[2]) == 9 and len(row) == 6 for row in rows)
