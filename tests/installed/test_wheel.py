"""The wheel in an environment with nothing else: no compiler, no build tools, only the declared packages."""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import re
import shutil
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

import launchers
from c_library import BIN, ROOT, configure, pkg_config, run, tool
from spinloom import __version__
from spinloom.common import data
from spinloom.papers import rank_benches

PROJECTS = Path(__file__).resolve().parent  # users of each library

WHOLE = "spinloom-[0-9]*.whl"
OLDEST_GLIBC = (2, 28)
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1"}

LAYOUTS = """
from spinloom.layout import Layout
column = Layout("vector(4, 1, 4, double)")
grid = bytes(range(128))
packed = column.pack(grid)
assert bytes(packed) == b"".join(grid[row * 32 : row * 32 + 8] for row in range(4)), bytes(packed)
"""


def made(folder: Path, glibc: str) -> Path:
    """A copy of what `make wheel` puts into out/dist."""
    make = ["make", "--no-print-directory", "-C", ROOT, "wheel", f"WHEEL_GLIBC={glibc}"]
    run(*make, env=os.environ | {"PYTHON": sys.executable})
    return shutil.copytree(ROOT / "out/dist", folder / "dist")


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """For this machine's C library, from what is compiled already."""
    return made(tmp_path_factory.mktemp("built"), "")


@pytest.fixture(scope="session")
def old_wheel(tmp_path_factory) -> Path:
    """For an old C library, from nothing."""
    (found,) = made(tmp_path_factory.mktemp("old"), ".".join(map(str, OLDEST_GLIBC))).glob(WHOLE)
    return found


@pytest.fixture(scope="session")
def wheel(built) -> Path:
    (found,) = built.glob(WHOLE)
    return found


@pytest.fixture(scope="session")
def layout_wheel(built) -> Path:
    (found,) = built.glob("spinloom_layout-*.whl")
    return found


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def declared(requirements: list[str]) -> set[str]:
    """The packages that these requirements bring with them, without extras."""
    found: set[str] = set()
    for requirement in map(Requirement, requirements):
        if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and (
            requirement.name not in found
        ):
            found |= {requirement.name, *declared(importlib.metadata.requires(requirement.name) or [])}
    return found


class Environment:
    """A virtual environment with the wheel and, copied from this one, what its metadata declares."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        self.bin = folder / "bin"
        pip = [sys.executable, "-m", "pip", "--python", self.bin / "python", "install", "--quiet"]
        run(*pip, "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
        (self.packages,) = folder.glob("lib/python*/site-packages")
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = importlib.metadata.PathDistribution(zipfile.Path(archive, name).parent)
            for package in declared(metadata.requires or []):
                self.copy(importlib.metadata.distribution(package))

    def copy(self, package: importlib.metadata.Distribution) -> None:
        for file in package.files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = self.packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.locate(), target)

    def run(self, *command: str | Path) -> str:
        """A command of this environment, with nothing else on PATH."""
        return run(self.bin / command[0], *command[1:], env={"PATH": str(self.bin), "NO_COLOR": "1"})


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory) -> Environment:
    return Environment(tmp_path_factory.mktemp("environment"), wheel)


@pytest.fixture(scope="session")
def prefix(environment) -> Path:
    return Path(environment.run("spinloom", "--prefix").strip())


def test_the_tag_is_of_all_pythons_and_a_c_library_no_newer_than_here(wheel):
    name, version, _, tags = parse_wheel_filename(wheel.name)
    assert (name, str(version)) == ("spinloom", __version__)
    assert tags <= set(sys_tags())
    assert {(tag.interpreter, tag.abi) for tag in tags} == {("cp311", "abi3")}
    assert all(tag.platform.startswith("manylinux_2_") for tag in tags)


def elf_files(wheel: Path) -> dict[str, ELFFile]:
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    found = {name: io.BytesIO(text) for name, text in contents.items() if text.startswith(b"\x7fELF")}
    machines = {name: ELFFile(text) for name, text in found.items()}
    return {name: file for name, file in machines.items() if file["e_machine"] != "EM_RISCV"}


@pytest.mark.slow
def test_no_file_needs_a_c_library_newer_than_the_oldest(old_wheel):
    files = elf_files(old_wheel)
    assert any(name.endswith("/_core.abi3.so") for name in files)
    for name, file in files.items():
        needed = file.get_section_by_name(".gnu.version_r")
        versions = (
            {version.name for _, uses in needed.iter_versions() for version in uses} if needed else set()
        )
        numbers = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version) for version in versions]
        newest = max(((int(found[1]), int(found[2])) for found in numbers if found), default=(2, 0))
        assert newest <= OLDEST_GLIBC, name
        assert not any(version.startswith(("GLIBCXX_", "CXXABI_")) for version in versions), name


@pytest.mark.slow
def test_no_file_needs_a_library_that_a_system_may_lack(old_wheel):
    for name, file in elf_files(old_wheel).items():
        dynamic = file.get_section_by_name(".dynamic")
        needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")} if dynamic else set()
        others = {library for library in needed if not library.startswith("ld-linux")} - SYSTEM
        assert others <= {"libportals.so.4"}, name


@pytest.mark.slow
def test_libraries_let_no_name_of_c_plus_plus_out(old_wheel):
    for name, file in elf_files(old_wheel).items():
        if ".so" in name and not name.endswith("/_core.abi3.so"):
            symbols = file.get_section_by_name(".dynsym").iter_symbols()
            assert [
                symbol.name
                for symbol in symbols
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name.startswith("_Z")
            ] == [], name


def test_the_metadata_name_the_licence_and_three_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode().split("\n\n")[0]
    assert "\nLicense-Expression: BSD-3-Clause\n" in text
    assert "\nLicense-File: LICENSE\n" in text
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")
    assert re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", text, re.MULTILINE) == [
        "click",
        "nanobind-backend",
        "rich",
    ]


def test_the_command_runs_without_a_compiler(environment):
    assert environment.run("spinloom", "--version") == f"spinloom {__version__}\n"
    table = environment.run(
        "spinloom", "simulate", "--type", "vector(64, 4, 8, double)", "--csv"
    ).splitlines()
    assert {"host-mpitypes", "rw-cp", "seek"} <= {cell for line in table for cell in line.split(",")}
    assert "engine,present" in environment.run("spinloom", "info", "--csv")
    images = environment.run("spinloom", "info", "--csv").count("\nimage ")
    assert images == len(list((ROOT / "handlers").glob("*.c")))


def test_claims_about_programs_have_their_programs_but_need_a_compiler(environment, wheel):
    programs = {f"spinloom/programs/{name}" for name in (rank_benches.RAILS, rank_benches.ONE_SIDED)}
    assert programs <= files_of(wheel)
    (row,) = json.loads(
        environment.run("spinloom", "paper", "validate", "--only", "RED-1", "--quiet", "--json")
    )
    assert row["verdict"] == "not available"
    assert "there is no compiler 'cc' for " in row["remark"]


def test_layouts_work_with_the_declared_packages_alone(environment):
    environment.run("python", "-c", LAYOUTS)


def test_spinloom_info_finds_its_library(environment, prefix):
    assert "long messages here" in run(prefix / "bin/spinloom-info", env={"PATH": ""})
    assert "long messages here" in environment.run("spinloom-info", "--machine")
    assert "mpiexec -n 1 spinloom-gateway" in environment.run("spinloom-gateway", "--help")


def test_programs_on_path_are_ranks_of_a_launcher(environment, prefix, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    flags = [f"-I{prefix}/include", prefix / "lib/libportals.so.4", f"-Wl,-rpath,{prefix}/lib"]
    run("cc", "-std=c11", PROJECTS / "portals/ring.c", "-o", tmp_path / "ring", *flags)
    threads = [environment.bin / "spinloom-threads", "-n", "2", tmp_path / "ring"]
    assert sorted(run(*threads).splitlines()) == [f"rank {rank}: 2 ranks, good" for rank in range(2)]
    for name in launchers.available():
        ran = launchers.run(name, 2, *threads)
        lines = [f"rank {rank}: 4 ranks, good" for rank in range(4)]
        assert (ran.returncode, sorted(ran.stdout.splitlines())) == (0, lines), ran.stderr


PAGES = [["spinloom"], *(["-M", "PREFIX", name] for name in ("spinloom", "PtlGet", "MPIX_Type_free_comm"))]


@pytest.mark.parametrize("words", PAGES)
def test_man_finds_the_pages(environment, prefix, words):
    if shutil.which("man") is None:
        pytest.skip("there is no man")
    words = [str(prefix / "share/man") if word == "PREFIX" else word for word in words]
    path = f"{environment.bin}:/usr/bin:/bin"
    text = run("man", *words, env={"PATH": path, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
    assert ("spinloom VERB" if words[-1] == "spinloom" else f"{words[-1]}(") in text


@pytest.mark.parametrize(
    ("package", "source", "said"),
    [
        ("spinloom-layout", PROJECTS / "layout/use.c", "good\n"),
        ("spinloom-portals", PROJECTS / "portals/ring.c", "rank 0: 1 ranks, good\n"),
    ],
)
def test_c_programs_find_the_libraries_by_pkg_config(environment, prefix, tmp_path, package, source, said):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    flags = pkg_config(prefix, package, "--cflags", "--libs")
    run("cc", "-std=c11", source, "-o", tmp_path / "use", *flags)  # they name the place for the loader
    assert run(tmp_path / "use") == said
    if package == "spinloom-portals":
        simulated = environment.run("spinloom", "sim", "-n", "2", "--quiet", tmp_path / "use")
        assert sorted(simulated.splitlines()) == [f"rank {rank}: 2 ranks, good" for rank in range(2)]


@pytest.mark.parametrize(
    ("project", "programs"), [("layout", ["use_c", "use_c_static"]), ("portals", ["ring_c"])]
)
def test_c_programs_find_the_libraries_by_cmake(prefix, tmp_path, project, programs):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    configure(PROJECTS / project, tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    run(tool("cmake"), "--build", tmp_path)
    for program in programs:
        assert run(tmp_path / program).endswith("good\n")


def test_this_installation_has_a_prefix_too():
    assert (data.prefix() / "include/spinloom/layout.h").is_file()


@pytest.mark.slow
def test_the_wheel_of_the_sources_has_the_same_files(built, wheel, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    out = tmp_path / "wheel"
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out, tree]
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    run(*command, "--config-setting=cmake.args=-GNinja", env=os.environ | {"PATH": path})
    (again,) = out.glob("*.whl")
    names = [files_of(file) for file in (wheel, again)]
    assert names[0] == names[1]


# ---- layouts alone ----

ALONE = """
import spinloom
from spinloom import layout
from spinloom.errors import Trouble
packed = layout.from_text("vector(4, 1, 4, double)").pack(bytes(range(128)))
assert bytes(packed) == b"".join(bytes(range(row * 32, row * 32 + 8)) for row in range(4)), bytes(packed)
try:
    layout.core.load().run_cell({})
except Trouble as trouble:
    print(trouble.code, trouble.message)
try:
    spinloom.simulate
except AttributeError as error:
    print(error)
"""


def test_the_wheel_of_layouts_is_small_and_of_the_same_pythons(wheel, layout_wheel):
    name, version, _, tags = parse_wheel_filename(layout_wheel.name)
    assert (name, str(version)) == ("spinloom-layout", __version__)
    assert {(tag.interpreter, tag.abi) for tag in tags} == {("cp311", "abi3")}
    assert all(tag.platform.startswith("manylinux_2_") for tag in tags)
    assert layout_wheel.stat().st_size < 3_000_000
    files = files_of(layout_wheel)
    assert "spinloom/py.typed" in files
    assert any(name.endswith("/LICENSE") for name in files)
    assert {name for name in files if name.startswith("spinloom/") and name.endswith(".py")} <= files_of(
        wheel
    )


def test_the_wheel_of_layouts_moves_bytes_and_names_the_whole_package(layout_wheel, tmp_path):
    environment = Environment(tmp_path, layout_wheel)
    engine, face = environment.run("python", "-c", ALONE).splitlines()
    assert engine.startswith("environment ")
    assert "the package spinloom has the rest" in engine
    assert face == "spinloom.simulate is in the package spinloom, not in spinloom-layout"
    assert not (environment.bin / "spinloom").exists()
