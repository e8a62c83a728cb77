"""The library of real processes, and C programs that are linked with it.

The library is that of `make test` (build/release), of another build folder, or of SPINLOOM_TEST_LIVE.
SPINLOOM_TEST_CFLAGS goes to the compiler of the programs: -fsanitize=thread with a library built so.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

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
