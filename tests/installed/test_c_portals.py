"""libportals.so.4 from outside the tree: installed, found by CMake and pkg-config, run live and simulated."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import launchers
from c_library import configure, install, kept_build, pkg_config, run, tool
from conftest import needs_engine

PROJECT = Path(__file__).resolve().parent / "portals"
HEADERS = ("portals4.h", "portals4_spin.h", "spinloom/offload.h", "spinloom/rails.h", "spinloom/rma.h")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="session")
def prefix(tmp_path_factory) -> Path:
    """The component, installed from the build folder that `make` keeps, then moved."""
    return install("portals", kept_build("-DSPINLOOM_HANDLERS=ON"), tmp_path_factory)


def expect_ring(program: Path) -> None:
    """Alone, and as ranks of each launcher of this machine."""
    assert run(program) == "rank 0: 1 ranks, good\n"
    for name in launchers.available():
        ran = launchers.run(name, 2, program)
        lines = [f"rank {rank}: 2 ranks, good" for rank in range(2)]
        assert (ran.returncode, sorted(ran.stdout.splitlines())) == (0, lines), ran.stderr


def test_cmake_finds_it(prefix, tmp_path):
    configure(PROJECT, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(tool("cmake"), "--build", tmp_path)
    for program in ("ring_c", "ring_cpp"):
        expect_ring(tmp_path / program)


@pytest.mark.parametrize("package", ["spinloom-portals", "portals4"])
def test_pkg_config_finds_it(prefix, tmp_path, package):
    flags = pkg_config(prefix, package, "--cflags", "--libs")
    [handlers] = map(Path, pkg_config(prefix, package, "--variable=handlers"))
    assert (handlers / "pingpong.elf").is_file()
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run("cc", *strict, PROJECT / "ring.c", "-o", tmp_path / "ring", *flags, f"-Wl,-rpath,{prefix}/lib")
    expect_ring(tmp_path / "ring")


@needs_engine
def test_the_package_s_flags_make_one_program_for_both_drivers(spinloom, tmp_path):
    flags = [*spinloom("sim", "--cflags").out.split(), *spinloom("sim", "--libs").out.split()]
    run("cc", PROJECT / "ring.c", "-o", tmp_path / "ring", *flags)
    expect_ring(tmp_path / "ring")
    ran = spinloom("sim", "-n", "3", "--quiet", "--json", str(tmp_path / "ring"))
    assert ran.code == 0, ran.err
    assert all(f"rank {rank}: 3 ranks, good" in ran.out for rank in range(3))


def test_the_headers_functions_are_exported_and_nothing_else(prefix):
    # Rules: P4F-1.16, P4F-1.17, P4F-22.4.
    text = "".join((prefix / "include" / name).read_text(encoding="utf-8") for name in HEADERS)
    results = r"int|void|spl_op|const char|ptl_rank_t|uint(?:32|64)_t|unsigned int|spl_rma_\w+"
    pattern = rf"^(?:{results}) ?\*?\s?((?:Ptl|spl_)\w+)\("
    declared = set(re.findall(pattern, text, re.MULTILINE))
    listing = run("nm", "-D", "--defined-only", "--extern-only", prefix / "lib/libportals.so.4")
    assert {line.split()[-1] for line in listing.splitlines()} == declared
    listing = run("nm", "-D", "--defined-only", prefix / "lib/libspinloom-heap.so")
    heap = {line.split()[2].split("@")[0] for line in listing.splitlines() if " A GLIBC_" not in line}
    family = {"malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc"}
    mappings = {"mmap", "mmap64", "munmap", "mremap", "shmat", "madvise"}
    ours = {"spinloom_process_heap_3", "spinloom_zeroed_blocks_1"}
    assert heap == family | mappings | {"malloc_usable_size"} | ours
    dynamic = run("readelf", "-d", prefix / "lib/libportals.so")
    assert "soname: [libportals.so.4]" in dynamic


@pytest.mark.parametrize("language", [("cc", "-xc", "-std=c99"), ("c++", "-xc++", "-std=c++11")])
def test_the_header_is_c99_and_needs_no_other(prefix, language):
    # Rules: P4F-1.15.
    flags = ("-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix}/include")
    run(*language, *flags, prefix / "include/portals4.h")
    texts = [
        (prefix / "include" / name).read_text(encoding="utf-8")
        for name in ("portals4.h", "spinloom/process.h")
    ]
    found = [line for text in texts for line in re.findall(r"#include (\S+)", text)]
    assert set(found) == {"<stdint.h>", '"spinloom/process.h"'}


def test_a_handler_compiles_against_the_installed_headers(prefix, tmp_path):
    source = tmp_path / "mine.c"
    source.write_text(
        '#include "spinloom/handler.h"\n'
        "int payload_handler(const ptl_payload_t p, void *state) { return (void)p, (void)state, PROCEED; }\n",
        encoding="utf-8",
    )
    run("cc", "-fPIC", "-c", source, "-o", tmp_path / "mine.o", "-I", prefix / "include")
    assert not (prefix / "include/spinloom/layout.h").exists(), "that one is of the component layout"


@pytest.mark.parametrize("name", ["alone", *launchers.available()])
def test_info_shows_every_rank_and_how_it_reaches_the_others(prefix, name):
    program = prefix / "bin/spinloom-info"
    if name == "alone":
        out = run(program)
    else:
        ran = launchers.run(name, 3, program, SPINLOOM_COPY="two-copy", SPINLOOM_HPUSS="8")
        assert ran.returncode == 0, ran.stderr
        assert "SPINLOOM_HPUSS is not known; the nearest is SPINLOOM_HPUS" in ran.stderr
        out = ran.stdout
        for rank, others in enumerate(("1-2", "0, 2", "0-1")):
            said = out.split(f"rank {rank}: ")[1]
            assert f"reaches {others} by shared memory, two copies: SPINLOOM_COPY=two-copy" in said
    interface = {"alone": "none", "mpich": "PMI-1", "openmpi": "PMIx"}[name]
    assert re.search(rf"^launcher +{interface}, ranks: \d$", out, re.MULTILINE)
    for word in ("max_pt_index", "SPINLOOM_TRANSPORT", "long messages here", "UDP"):
        assert word in out


def test_info_says_how_udp_reaches_others(prefix):
    for name in launchers.available():
        ran = launchers.run(name, 2, prefix / "bin/spinloom-info", SPINLOOM_TRANSPORT="udp")
        assert ran.returncode == 0, ran.stderr
        assert len(re.findall(r"reaches [01] by UDP [\d.:]+, .* \(SPINLOOM_TRANSPORT=udp\)", ran.stdout)) == 2


def test_info_refuses_what_it_does_not_know(prefix):
    done = subprocess.run([prefix / "bin/spinloom-info", "--macine"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--machine" in done.stderr


def test_a_gateway_explains_itself_and_refuses_what_it_does_not_know(prefix):
    program = prefix / "bin/spinloom-gateway"
    assert "mpiexec -n 1 spinloom-gateway : -n 4" in run(program, "--help")
    done = subprocess.run([program, "x"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage" in done.stderr


def test_the_manual_lies_beside(prefix):
    assert (prefix / "share/man/man3/PtlGet.3").read_text(encoding="utf-8") == ".so man3/PtlPut.3\n"
    assert (prefix / "share/man/man7/portals.7").is_file()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_ranks_in_two_process_namespaces_reach_each_other_by_udp(prefix):
    """As ranks in two containers: what one says of the other names the reason."""
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher with ranks of several programs")
    apart = ["unshare", "--pid", "--fork"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        pytest.skip("namespaces may not be made here")
    program = prefix / "bin/spinloom-info"
    ran = launchers.run("mpich", 1, program, ":", "-n", "1", *apart, program)
    assert ran.returncode == 0, ran.stderr
    ways = re.findall(r"reaches [01] by UDP .* \(another machine or process namespace\)", ran.stdout)
    assert len(ways) == 2, ran.stdout
