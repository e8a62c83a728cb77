"""The C library of SLMP from outside the tree: installed to a prefix, found by CMake and by pkg-config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from c_library import ROOT, configure, exported, install, kept_build, pkg_config, run, tool

PROJECT = Path(__file__).resolve().parent / "slmp"


@pytest.fixture(scope="session")
def slmp_prefix(tmp_path_factory) -> Path:
    return install("slmp", kept_build(), tmp_path_factory)


def test_cmake_finds_it(slmp_prefix, tmp_path):
    configure(PROJECT, tmp_path, f"-DCMAKE_PREFIX_PATH={slmp_prefix}")
    run(tool("cmake"), "--build", tmp_path)
    for program in ("use_c", "use_c_static"):
        assert run(tmp_path / program) == "good\n"


def test_pkg_config_finds_it(slmp_prefix, tmp_path):
    flags = pkg_config(slmp_prefix, "spinloom-slmp", "--cflags", "--libs")
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    place = f"-Wl,-rpath,{slmp_prefix}/lib"
    run("cc", *strict, PROJECT / "use.c", "-o", tmp_path / "use", *flags, place, "-lpthread")
    assert run(tmp_path / "use") == "good\n"


def test_a_c_plus_plus_compiler_takes_the_header(slmp_prefix, tmp_path):
    (tmp_path / "use.cpp").write_text("#include <spinloom/slmp.h>\nint main() { return SLMP_OK; }\n")
    run(
        "c++",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        f"-I{slmp_prefix}/include",
        "-c",
        "use.cpp",
        cwd=tmp_path,
    )


def test_only_the_header_s_names_are_exported_and_each_is_used(slmp_prefix):
    header = (slmp_prefix / "include/spinloom/slmp.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^SLMP_API .*?\b(slmp_\w+)\(", header, re.MULTILINE))
    assert exported(slmp_prefix, "libspinloom_slmp.so") == declared
    used = (PROJECT / "use.c").read_text(encoding="utf-8")
    assert [name for name in sorted(declared) if f"{name}(" not in used] == []


def test_the_dissector_is_there(slmp_prefix):
    assert (slmp_prefix / "share/wireshark/slmp.lua").read_bytes() == (ROOT / "tools/slmp.lua").read_bytes()
