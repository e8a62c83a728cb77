"""The manual pages: each function, verb and variable is on one, and man reads them without complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from spinloom.verbs.jobs import PLACES
from spinloom.verbs.run import run

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import man  # noqa: E402

PAGES = [page for book in man.BOOKS for page in man.pages(book)]


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("man")
    man.write_all(out)
    return out


def test_each_function_is_on_one_page_and_found_by_its_name(written):
    named = [name for page in PAGES for name in page.get("functions", [])]
    declared = set(man.prototypes())
    assert len(declared) > 50
    assert sorted(named) == sorted(declared)
    for name in declared:
        text = (written / f"man3/{name}.3").read_text(encoding="utf-8")
        if text.startswith(".so "):
            text = (written / text.split()[1]).read_text(encoding="utf-8")
        assert f"{name}(" in text.split(".SH DESCRIPTION")[0], f"the synopsis of {name}"


def test_each_verb_and_each_variable_has_its_line(written):
    verbs = next(page for page in PAGES if page["name"] == "spinloom")["verbs"]
    assert set(verbs) == set(PLACES)
    settings = (ROOT / "src/live/process/settings.cpp").read_text(encoding="utf-8")
    count = int(re.search(r"std::array<Variable, (\d+)>", settings)[1])
    assert len(man.variables()) == count
    page = (written / "man7/portals.7").read_text(encoding="utf-8")
    assert all(f".B {name}" in page for name, _, _ in man.variables())
    read = (ROOT / "src/mpi/messages/settings.cpp").read_text(encoding="utf-8")
    known = set(re.findall(r'name == "(SPINLOOM_MPI\w*)"', read))
    assert {name for name, _, _ in man.variables("mpi")} == known
    page = (written / "man7/spinloom-mpi.7").read_text(encoding="utf-8")
    assert all(f".B {name}\n" in page for name in known)


def test_the_mpis_are_those_of_the_page():
    page = " ".join((ROOT / "docs/mpi.md").read_text(encoding="utf-8").split())
    mpis = re.search(r"`libspinloom_mpi\.so`\) works under (.*?), for programs in", page)[1]
    assert "MPI 5" in mpis
    assert mpis in " ".join((ROOT / "man/mpi.toml").read_text(encoding="utf-8").split())
    assert mpis in " ".join(run.help.split())


def test_references_lead_somewhere(written):
    for page in PAGES:
        for reference in page["see"]:
            name, section = reference.rstrip(")").split("(")
            assert (written / f"man{section}/{name}.{section}").is_file(), (
                f"{page['name']} refers to {reference}"
            )


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man")
def test_man_formats_every_page_without_a_warning(written):
    for path in sorted(written.glob("man*/*")):
        done = subprocess.run(
            ["man", "--warnings", "-l", str(path)],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MANPATH": str(written)},
            cwd=written,
        )
        assert (done.returncode, done.stderr) == (0, ""), path
