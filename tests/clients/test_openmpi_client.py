"""Open MPI 4 over our live NIC, built from its sources against an installed prefix; MPI programs of ours.

Slow, because Open MPI is built (minutes, once: build/clients keeps it): make test-slow. The sources are what
SPINLOOM_TEST_OPENMPI_SOURCE names, a tarball of Open MPI 4.1 or its unpacked folder, or what `apt-get
source` gets where deb-src is configured. docs/clients.md says the same by hand.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent
CLIENTS = ROOT / "build/clients"
LIMIT_S = 900  # the limit of one run; the machine may be busy with other things
TRANSPORTS = ("shm", "udp", "fabric")
RANKS = (2, 4)

# What no test of ours needs, so that a build takes few minutes.
LEFT_OUT = (
    "io,fs,fbtl,fcoll,sharedfp,common-ompio,pml-v,vprotocol,crcp,crs,snapc,sstore,topo-treematch,op-avx,btl-usnic,"
    "coll-monitoring,common-monitoring,pml-monitoring,osc-monitoring,plm-slurm,ras-slurm,ess-slurm"
)
CONFIGURE = (
    "CFLAGS=-O2",
    "--disable-mpi-fortran",
    "--disable-oshmem",
    "--disable-io-romio",
    "--disable-dependency-tracking",
    "--without-verbs",
    "--without-ucx",
    "--without-ofi",
    "--without-psm",
    "--without-psm2",
    f"--enable-mca-no-build={LEFT_OUT}",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
    pytest.mark.skipif(shutil.which("make") is None, reason="there is no make"),
    pytest.mark.skipif(
        "SPINLOOM_TEST_CFLAGS" in os.environ, reason="MPI libraries are not made for sanitizers"
    ),
]


def ran(*command: object, where: Path | None = None, log: Path | None = None) -> str:
    """What a command prints; its last lines where it fails."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=where,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if log is not None:
        log.write_text(done.stdout)
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-3000:]}"
    return done.stdout


def sources() -> Path:
    """A tarball or folder of Open MPI 4, or a skip that says how to have one."""
    advice = "set SPINLOOM_TEST_OPENMPI_SOURCE to a tarball of Open MPI 4.1, or configure deb-src"
    if named := os.environ.get("SPINLOOM_TEST_OPENMPI_SOURCE"):
        assert Path(named).exists(), f"SPINLOOM_TEST_OPENMPI_SOURCE={named} does not exist"
        return Path(named).resolve()
    kept = CLIENTS / "source"
    if not list(kept.glob("openmpi_4.*.orig.tar.*")):
        if shutil.which("apt-get") is None:
            pytest.skip(f"there are no sources of Open MPI: {advice}")
        kept.mkdir(parents=True, exist_ok=True)
        asked = ["apt-get", "source", "--download-only", "openmpi"]
        done = subprocess.run(asked, cwd=kept, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            pytest.skip(f"apt-get source openmpi brings nothing: {advice}")
    found = sorted(kept.glob("openmpi_4.*.orig.tar.*"))
    if not found:
        pytest.skip(f"the distribution's Open MPI is not 4: {advice}")
    return found[-1]


def unpacked(source: Path, where: Path) -> Path:
    if source.is_dir():
        return source
    with tarfile.open(source) as archive:
        archive.extractall(where, filter="tar")  # dates as they are: otherwise make wants to run autoconf
    (folder,) = [path for path in where.iterdir() if (path / "configure").is_file()]
    return folder


def of_the_system() -> list[str]:
    """The libraries that Open MPI need not build, where their development files are here."""
    pkg_config = shutil.which("pkg-config") or shutil.which("pkgconf")
    if pkg_config is None:
        return []
    places = {}
    for name in ("pmix", "hwloc", "libevent"):
        asked = subprocess.run([pkg_config, "--variable=prefix", name], capture_output=True, text=True)
        if asked.returncode != 0:
            return []
        places[name] = asked.stdout.strip()
    return [f"--with-pmix={places['pmix']}", "--with-hwloc=external", "--with-libevent=external"]


@pytest.fixture(scope="session")
def portals() -> Path:
    """Our library, installed from the build folder that `make` keeps."""
    build = ROOT / "build/release"
    if not (build / "CMakeCache.txt").is_file():
        pytest.skip("there is no build/release: make setup")
    prefix = CLIENTS / "portals"
    ran("cmake", "--build", build, "--target", "spinloom_portals_library")
    ran("cmake", "--install", build, "--component", "portals", "--prefix", prefix)
    return prefix


@dataclass(frozen=True)
class OpenMpi:
    prefix: Path

    def command(self, name: str) -> Path:
        return self.prefix / "bin" / name


@pytest.fixture(scope="session")
def openmpi(portals) -> OpenMpi:
    """Open MPI, built once for its sources and options. It finds our library by its rpath."""
    source = sources()
    options = (
        *CONFIGURE,
        *of_the_system(),
        f"--with-portals4={portals}",
        f"LDFLAGS=-Wl,-rpath,{portals}/lib",
    )
    key = hashlib.sha256("\n".join((str(source), *options)).encode()).hexdigest()[:12]
    folder = CLIENTS / f"openmpi-{key}"
    prefix = folder / "installed"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "build").mkdir(parents=True)
        tree = unpacked(source, folder)
        where = folder / "build"
        ran(tree / "configure", f"--prefix={prefix}", *options, where=where, log=folder / "configure.log")
        ran("make", f"-j{os.cpu_count()}", where=where, log=folder / "make.log")
        ran("make", "install", where=where, log=folder / "install.log")
        shutil.rmtree(where)
        if tree != source:
            shutil.rmtree(tree)
        (folder / "done").touch()
    return OpenMpi(prefix)


@pytest.fixture(scope="session")
def program(openmpi):
    """program("mpi_ring.c") is the path of the program, compiled by Open MPI's mpicc."""

    @functools.cache
    def compiled(name: str) -> Path:
        out = openmpi.prefix / "tests" / Path(name).stem
        out.parent.mkdir(exist_ok=True)
        ran(openmpi.command("mpicc"), "-std=gnu11", "-O1", PROGRAMS / name, "-o", out)
        return out

    return compiled


# Open MPI opens osc/portals4 in each of these jobs and never closes it; mpirun ends with 0 all the same.
MTL = {"pml": "cm", "mtl": "portals4"}


def answers(
    openmpi: OpenMpi,
    ranks: int,
    transport: str,
    *command: object,
    mca: dict[str, object],
) -> None:
    """All ranks print answers, none of them wrong, and mpirun has nothing to say about how they end."""
    if transport == "fabric" and find_library("fabric") is None:
        pytest.skip("there is no libfabric")
    words: list[object] = [openmpi.command("mpirun"), "--oversubscribe", "--allow-run-as-root", "-n", ranks]
    for name, value in mca.items():
        words += ["--mca", name, value]
    done = subprocess.run(
        [*map(str, words), "-x", "SPINLOOM_TRANSPORT", "-x", "SPINLOOM_FABRIC", *map(str, command)],
        env={**os.environ, "SPINLOOM_TRANSPORT": transport, "SPINLOOM_FABRIC": "tcp"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    found = re.findall(rf"rank (\d+) of {ranks}: \d+ answers, 0 wrong", done.stdout)
    assert sorted(map(int, found)) == list(range(ranks)), said[-3000:]


def test_components_are_built_and_find_the_library(openmpi, portals):
    listed = ran(openmpi.command("ompi_info"), "--parsable")
    for framework in ("mtl", "coll", "osc", "btl"):
        assert f"mca:{framework}:portals4:version" in listed, framework
        component = openmpi.prefix / f"lib/openmpi/mca_{framework}_portals4.so"
        assert str(portals / "lib/libportals.so.4") in ran("ldd", component), component


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", ["mpi_ring.c", "mpi_random.c", "mpi_unexpected.c", "mpi_collectives.c"])
def test_messages(openmpi, program, name, transport, ranks):
    answers(openmpi, ranks, transport, program(name), mca={**MTL, "coll": "^portals4"})


@pytest.mark.parametrize("name", ["mpi_random.c", "mpi_unexpected.c"])
def test_ranks_by_number(openmpi, program, name):
    logical = {**MTL, "mtl_portals4_use_logical": 1, "coll": "^portals4"}
    answers(openmpi, 4, "shm", program(name), mca=logical)


@pytest.mark.parametrize("ranks", RANKS)
def test_more_messages_than_the_receiver_looks_at(openmpi, program, ranks):
    answers(
        openmpi, ranks, "shm", program("mpi_flood.c"), 900 // (ranks - 1), mca={**MTL, "coll": "^portals4"}
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("ranks", RANKS)
def test_triggered_collectives(openmpi, program, transport, ranks):
    """Those of Open MPI whose steps the NIC triggers; its nonblocking ones end with a random error."""
    answers(openmpi, ranks, transport, program("mpi_collectives.c"), 1, "blocking", mca=MTL)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("ranks", RANKS)
def test_onesided(openmpi, program, transport, ranks):
    """Without derived types: Open MPI counts an origin's lower bound twice."""
    mca = {**MTL, "coll": "^portals4", "osc": "portals4"}
    answers(openmpi, ranks, transport, program("mpi_onesided.c"), "fslar", mca=mca)
