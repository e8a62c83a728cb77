"""The library of real processes, and C programs that are linked with it.

The library is that of `make test` (build/release), of another build folder, or of SPINLOOM_TEST_LIVE.
SPINLOOM_TEST_CFLAGS goes to the compiler of the programs: -fsanitize=thread with a library built so.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import pytest

import launchers
from c_programs import PORTALS, compile_with

ROOT = Path(__file__).resolve().parents[1]
# By what their names begin with: where programs are.
FOLDERS = {
    "portals": PORTALS,
    **{name: ROOT / "tests" / name for name in ("live", "rails", "rma")},
}


def library_folder() -> Path | None:
    named = os.environ.get("SPINLOOM_TEST_LIVE")
    if named:
        return Path(named).resolve()
    found = [path.parent for path in ROOT.glob("build/*/live/libportals.so.4")]
    release = ROOT / "build/release/live"
    return release if release in found else next(iter(found), None)


LIBRARY = library_folder()
needs_library = pytest.mark.skipif(LIBRARY is None, reason="there is no build/*/live/libportals.so.4")


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """build("live_idle.c") is the program's path; others are named from the root: build("bench/x.c")."""
    folder = tmp_path_factory.mktemp("live")

    @functools.cache
    def compiled(name: str) -> Path:
        out = folder / Path(name).stem
        flags = os.environ.get("SPINLOOM_TEST_CFLAGS", "").split()
        linked = [f"-L{LIBRARY}", "-lportals", "-lpthread", f"-Wl,-rpath,{LIBRARY}"]
        compiler = "c++" if name.endswith(".cpp") else "cc"
        place = ROOT if "/" in name else FOLDERS.get(name.split("_")[0], FOLDERS["live"])
        compile_with(compiler, "-O1", "-g", *flags, f"-I{ROOT}/include", place / name, "-o", out, *linked)
        return out

    return compiled


def answers_of(output: str) -> dict[int, int]:
    return {int(rank): int(count) for rank, count in re.findall(r"rank (\d+): (\d+) answers", output)}


def handler_folder() -> Path:
    folder = LIBRARY.parent / "handlers"
    if not (folder / "accumulate.elf").is_file():
        pytest.skip("the library was built without handlers")
    return folder


def offered() -> str:
    """What spinloom-info says that libfabric offers here."""
    said = launchers.finished(LIBRARY.parent / "bin/spinloom-info").stdout
    return re.search(r"^fabrics +(.*)$", said, re.M)[1]


def over(provider: str, **more: str) -> dict[str, str]:
    """The settings of a job over this provider."""
    if provider not in (said := offered()):
        pytest.skip(f"libfabric has no {provider} here: {said}")
    return {"SPINLOOM_TRANSPORT": "fabric", "SPINLOOM_FABRIC": provider, **more}
