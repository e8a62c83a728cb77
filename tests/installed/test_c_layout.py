"""The C face of layouts from outside the tree: installed to a prefix, found by CMake and by pkg-config."""

from __future__ import annotations

import re
import shutil
import subprocess
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
    # Rules: LAY-49, LAY-50.
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


def typed(says: str) -> str:
    """The compiler's command of docs/layouts.md that says this."""
    page = (ROOT / "docs/layouts.md").read_text(encoding="utf-8").replace("\\\n", " ")
    (command,) = [line for line in page.splitlines() if line.startswith("    cc ") and says in line]
    return command.strip()


def test_the_page_s_command_links_as_typed(prefix, tmp_path):
    pkg_config(prefix, "--libs")
    shutil.copytree(ROOT / "examples/halo", tmp_path / "examples/halo")
    run("sh", "-euc", typed("PREFIX").replace("PREFIX", str(prefix)), cwd=tmp_path)
    assert run(tmp_path / "halo", "24", "3").endswith("all grids are equal\n")


# ---- components of the CMake package ----

PARTS = """cmake_minimum_required(VERSION 3.22)
project(parts LANGUAGES C CXX)
find_package(Spinloom 0.1 REQUIRED {wanted})
foreach(name layout slmp portals)
  if(TARGET spinloom::${{name}})
    message(STATUS "has ${{name}}")
  endif()
endforeach()
"""


def found_parts(folder: Path, prefix: Path, wanted: str) -> tuple[list[str], str]:
    """The targets that a project finds, and what CMake says."""
    (folder / "CMakeLists.txt").write_text(PARTS.format(wanted=wanted))
    words = [tool("cmake"), "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
    words += ["-GNinja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert (ran.returncode == 0) == ("CMake Error" not in ran.stderr), ran.stderr
    return re.findall(r"^-- has (\w+)$", ran.stdout, re.MULTILINE), " ".join(ran.stderr.split())


@pytest.mark.parametrize(
    ("wanted", "parts"),
    [
        ("", ["layout", "slmp"]),
        ("COMPONENTS layout", ["layout"]),
        ("COMPONENTS slmp layout", ["layout", "slmp"]),
        ("COMPONENTS layout OPTIONAL_COMPONENTS portals", ["layout"]),
    ],
)
def test_the_package_has_the_components_that_are_installed(prefix, tmp_path, wanted, parts):
    run(tool("cmake"), "--build", kept_build(), "--target", "spinloom_slmp_library")
    both = tmp_path / "both"
    shutil.copytree(prefix, both, symlinks=True)
    run(tool("cmake"), "--install", kept_build(), "--component", "slmp", "--prefix", both)
    assert found_parts(tmp_path, both, wanted) == (parts, "")


def test_a_component_that_is_not_there_is_named(prefix, tmp_path):
    parts, said = found_parts(tmp_path, prefix, "COMPONENTS layout portals")
    assert parts == []
    assert "There is no component portals here; there are: layout." in said


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
