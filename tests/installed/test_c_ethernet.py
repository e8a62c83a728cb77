"""The C library of programs at an Ethernet NIC from outside the tree: found by CMake and pkg-config."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from test_c_layout import ROOT, configure, run, tool

PROJECT = Path(__file__).resolve().parent / "ethernet"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    build = tmp_path_factory.mktemp("library")
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if (ccache := shutil.which("ccache")) else []
    configure(ROOT, build, *launcher)
    run(tool("cmake"), "--build", build, "--target", "spinloom_ethernet_library")
    where = tmp_path_factory.mktemp("prefix") / "made"
    run(tool("cmake"), "--install", build, "--component", "ethernet", "--prefix", where)
    return where


def test_cmake_finds_it(prefix, tmp_path):
    configure(PROJECT, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(tool("cmake"), "--build", tmp_path)
    for program in ("use_c", "use_c_static"):
        assert run(tmp_path / program) == "good\n"


def test_pkg_config_finds_it_and_both_headers_are_strict_c(prefix, tmp_path):
    program = shutil.which("pkg-config") or shutil.which("pkgconf")
    if program is None:
        pytest.skip("there is no pkg-config")
    path = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    flags = run(program, "--cflags", "--libs", "spinloom-ethernet", env=path).split()
    strict = ["-std=c11", "-Wall", "-Wextra", "-Werror"]
    (tmp_path / "fpspin.c").write_text(
        "#include <spinloom/fpspin_compat.h>\n"
        "int main(void) { fpspin_ctx_t ctx; fpspin_ruleset_t rs; fpspin_ruleset_udp(&rs);\n"
        '  return fpspin_init(&ctx, "/dev/pspin9", "/no.so", 0, &rs, 1, 16) ? 1 : 0; }\n'
    )
    place = f"-Wl,-rpath,{prefix}/lib"
    for source, said in ((PROJECT / "use.c", "good\n"), (tmp_path / "fpspin.c", "")):
        run("cc", *strict, source, "-o", tmp_path / "use", *flags, place)
        assert run(tmp_path / "use") == said


def test_only_the_header_s_names_are_exported_and_each_is_used(prefix):
    header = (prefix / "include/spinloom/ethernet.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^SPL_ETH_API .*?\b(spl_eth_\w+)\(", header, re.MULTILINE))
    listing = run("nm", "-D", "--defined-only", prefix / "lib/libspinloom_ethernet.so")
    assert {line.split()[-1] for line in listing.splitlines()} == declared
    used = (PROJECT / "use.c").read_text(encoding="utf-8")
    assert [name for name in sorted(declared) if name not in used] == []
