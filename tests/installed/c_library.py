"""A C library of ours, built and installed as a packager would, for programs from outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent  # the environment that requirements.txt fills


def run(*command: str | Path, **more) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ['PATH']}")
    assert found, f"{name} is missing; make setup brings it"
    return found


def configure(source: Path, build: Path, *options: str) -> None:
    run(
        tool("cmake"), "-S", source, "-B", build, "-GNinja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", *options
    )


def new_build(tmp_path_factory) -> Path:
    """A build folder of its own."""
    build = tmp_path_factory.mktemp("library")
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if (ccache := shutil.which("ccache")) else []
    configure(ROOT, build, *launcher)
    return build


def kept_build(*options: str) -> Path:
    """The build folder that `make` keeps; `options` are for one that is not there yet."""
    build = Path(os.environ.get("SPINLOOM_TEST_BUILD", ROOT / "build/release"))
    if not (build / "CMakeCache.txt").is_file():
        configure(ROOT, build, *options)
    return build


def install(component: str, build: Path, tmp_path_factory, *also: str) -> Path:
    """The prefix to which the component was installed, and then moved; targets in `also` are built, too."""
    run(tool("cmake"), "--build", build, "--target", f"spinloom_{component}_library", *also)
    where = tmp_path_factory.mktemp("first")
    run(tool("cmake"), "--install", build, "--component", component, "--prefix", where)
    moved = tmp_path_factory.mktemp("prefix") / "moved"  # an installed tree may be moved
    where.rename(moved)
    return moved


def pkg_config(prefix: Path, package: str, *questions: str) -> list[str]:
    """Its words. The test is skipped where there is no pkg-config."""
    program = shutil.which("pkg-config") or shutil.which("pkgconf")
    if program is None:
        pytest.skip("there is no pkg-config")
    path = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    return run(program, *questions, package, env=path).split()


def exported(prefix: Path, library: str) -> set[str]:
    """The names that the shared library defines for others."""
    listing = run("nm", "-D", "--defined-only", prefix / "lib" / library)
    return {line.split()[-1] for line in listing.splitlines()}
