"""docs/ as a site: Sphinx has no complaint, each page can be reached, nothing asks a network."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from conftest import needs_engine
from patience import seconds
from spinloom.cli import cli
from spinloom.common import config
from spinloom.verbs.jobs import JOBS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import man  # noqa: E402

VERBS = [name for verbs in JOBS.values() for name in verbs]

pytestmark = needs_engine


class Page(HTMLParser):
    """What a page links to, and what a browser loads with it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if tag == "a":
            self.links.add(found.get("href") or "")
        else:
            self.loaded |= {found[name] or "" for name in ("src", "srcset", "href", "data") if name in found}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    built = subprocess.run(
        [sys.executable, str(ROOT / "tools/docs_site.py"), str(out)],
        capture_output=True,
        text=True,
        timeout=seconds(240),
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stderr
    return out


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_each_page_of_docs_is_reached_from_the_first(site, pages):
    reached: set[Path] = set()
    ahead = [site / "index.html"]
    while ahead:
        path = ahead.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        ahead += [(path.parent / unquote(urldefrag(link)[0])).resolve() for link in pages[path].links]
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in written if site / page.with_suffix(".html") not in reached} == set()


def test_the_start_page_has_a_picture_for_each_job(site):
    parts = (site / "index.html").read_text(encoding="utf-8").split("<h2>")[1:4]
    assert [part.partition("<")[0] for part in parts] == ["Predict", "Accelerate", "Program"]
    assert all("<img " in part for part in parts)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_its_options_in_the_reference(site, verb):
    text = (site / f"reference/cli/{verb}.html").read_text(encoding="utf-8")
    assert f"<h1>spinloom {verb}<" in text
    for option in cli.get_command(None, verb).params:
        if not getattr(option, "hidden", False) and option.opts[0].startswith("-"):
            assert all(f">{name}<" in text for name in option.opts)


def test_each_variable_is_in_the_reference(site):
    text = (site / "reference/environment.html").read_text(encoding="utf-8")
    assert all(f">{name}<" in text for name in config.VARIABLES)


@pytest.mark.parametrize(
    "name", ["layout.from_array", "layout.Layout.pack", "gpu.Pair.send", "simulate", "exchange"]
)
def test_python_is_in_the_reference(site, name):
    text = "".join(path.read_text(encoding="utf-8") for path in site.glob("reference/python/*.html"))
    assert f'id="spinloom.{name}"' in text


def test_each_public_header_is_in_the_reference(site):
    include = ROOT / "include"
    headers = [path.relative_to(include) for path in include.rglob("*.h")]
    assert len(headers) > 20
    assert all((site / f"reference/c/{header}.html").is_file() for header in headers)


def test_each_call_with_a_manual_page_is_in_the_reference(site):
    text = (site / "reference/calls.html").read_text(encoding="utf-8")
    assert all(f'id="c.{name}"' in text for name in man.prototypes())


def test_nothing_asks_a_network(site, pages):
    assert {name for page in pages.values() for name in page.loaded if re.match(r"(\w+:)?//", name)} == set()
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")) == []


def test_search_needs_no_server(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert '"halo"' in index or "halo:" in index
    assert "searchindex.js" in (site / "search.html").read_text(encoding="utf-8")
    assert "DOCUMENTATION_OPTIONS" in (site / "_static/documentation_options.js").read_text(encoding="utf-8")
    assert "SHOW_SEARCH_SUMMARY: false" in (site / "_static/documentation_options.js").read_text(
        encoding="utf-8"
    )
