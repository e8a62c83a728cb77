"""The C library of programs at an Ethernet NIC from outside the tree: found by CMake and pkg-config."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from c_library import configure, exported, install, kept_build, pkg_config, run, tool

PROJECT = Path(__file__).resolve().parent / "ethernet"


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    return install("ethernet", kept_build(), tmp_path_factory)


def test_cmake_finds_it(prefix, tmp_path):
    configure(PROJECT, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(tool("cmake"), "--build", tmp_path)
    for program in ("use_c", "use_c_static"):
        assert run(tmp_path / program) == "good\n"


def test_pkg_config_finds_it_and_both_headers_are_strict_c(prefix, tmp_path):
    flags = pkg_config(prefix, "spinloom-ethernet", "--cflags", "--libs")
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
    assert exported(prefix, "libspinloom_ethernet.so") == declared
    used = (PROJECT / "use.c").read_text(encoding="utf-8")
    assert [name for name in sorted(declared) if name not in used] == []
