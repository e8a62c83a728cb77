"""Programs find the names of MPI that they would find without the layer, however they ask."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from layer_programs import TIME_LIMIT_S
from spinloom.common import data

SOURCE = Path(__file__).with_name("shown_names.c")
LIBRARIES = {
    "Open MPI 5": f"{sys.prefix}/lib/libmpi.so.40",
    "MPICH 5": f"{sys.prefix}/lib/libmpi.so.12",
    "the standard interface of MPI 5": f"{sys.prefix}/lib/libmpi_abi.so.1",
    "Debian's Open MPI": "/usr/lib/*/libmpi.so.40",
    "Debian's MPICH": "/usr/lib/*/libmpich.so.12",
}
OUR_OWN = re.compile(r"mpix_|MPIX_", re.IGNORECASE)
IN_PYTHON = """
import ctypes, sys
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2], ctypes.RTLD_GLOBAL)
everything = ctypes.CDLL(None)
for name in open(sys.argv[1]).read().split():
    print(name, "found" if hasattr(everything, name) else "-")
"""

pytestmark = pytest.mark.skipif(
    not shutil.which("cc") or not shutil.which("nm"), reason="there is no C compiler, or no nm"
)


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Every function that the layer exports; what no MPI has is its own (spinloom/mpix.h)."""
    told = subprocess.run(
        ["nm", "-D", "--defined-only", data.mpi_layer()], capture_output=True, text=True, check=True
    )
    found = sorted(line.split()[-1].split("@")[0] for line in told.stdout.splitlines())
    found = [name for name in found if "mpi" in name.lower()]
    assert {"MPI_Send", "PMPI_Send", "MPI_Request_get_status_all", "mpix_type_commit_comm_"} <= set(found)
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory, names):
    """built(libraries, *options): shown_names.c, linked with these libraries."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "names.h").write_text("".join(f"NAME({name})\n" for name in names), encoding="utf-8")

    def build(libraries: list[str], *options: str) -> Path:
        path = folder / f"program{len(list(folder.iterdir()))}"
        rpaths = [f"-Wl,-rpath,{Path(library).parent}" for library in libraries]
        flags = ["-fPIC", "-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-all"]
        command = ["cc", *flags, *options, f'-DNAMES="{folder}/names.h"', str(SOURCE), "-o", str(path)]
        subprocess.run([*command, *libraries, *rpaths, "-ldl"], check=True)
        return path

    return build


@pytest.fixture(params=LIBRARIES)
def library(request) -> str:
    found = glob.glob(LIBRARIES[request.param])
    if not found:
        pytest.skip(f"{request.param} is not here")
    return found[0]


def found_by(words: list[str], layer: bool) -> dict[str, str]:
    more = {"LD_PRELOAD": data.mpi_preloads()} if layer else {}
    environment = {**os.environ, **more, "OPAL_PREFIX": sys.prefix}
    ran = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return dict(line.split() for line in ran.stdout.splitlines())


def compare(names: list[str], words: list[str], is_there: str) -> dict[str, str]:
    """The answers are those without the layer, but for the layer's own calls."""
    plain, layered = found_by(words, layer=False), found_by(words, layer=True)
    assert list(plain) == list(layered) == names
    mpis = [name for name in names if not OUR_OWN.match(name)]
    assert {name: layered[name] for name in mpis} == {name: plain[name] for name in mpis}
    assert {name: is_there in layered[name] for name in names if OUR_OWN.match(name)} == {
        name: True for name in names if OUR_OWN.match(name)
    }
    return plain


def test_a_program_that_is_linked_with_the_mpi(library, names, built):
    found = compare(names, [str(built([library]))], "d")
    assert found["MPI_Send"] == "dns-w"
    assert found["PMPI_Send"] == "dns-w"


def test_a_library_beside_the_mpi_with_weak_references_of_its_own(library, names, built):
    """It is bound before the program, and before the layer runs."""
    plugin = built([library], "-shared", "-DPLUGIN")
    caller = built([str(plugin), library])
    found = compare(names, [str(caller), str(plugin)], "w")
    assert found["MPI_Send"] == "w"


def test_an_mpi_that_is_loaded_later(library, names, built):
    found = compare(names, [str(built([])), library], "d")
    assert found["MPI_Send"] == "d-sh-"


def test_a_plugin_that_brings_the_mpi_along(library, names, built):
    """As mpi4py's modules do: their weak references are bound while the MPI is loaded."""
    plugin = built([library], "-shared", "-DPLUGIN")
    found = compare(names, [str(built([])), str(plugin)], "w")
    assert found["MPI_Send"] == "w"


def test_a_process_without_an_mpi(names, built):
    found = compare(names, [str(built([]))], "d")
    assert set(found.values()) == {"-----"}


def test_ctypes(library, names, tmp_path):
    (tmp_path / "names").write_text("\n".join(names), encoding="utf-8")
    words = [sys.executable, "-c", IN_PYTHON, str(tmp_path / "names")]
    assert compare(names, [*words, library], "found")["MPI_Send"] == "found"
    assert set(compare(names, words, "found").values()) == {"-"}
