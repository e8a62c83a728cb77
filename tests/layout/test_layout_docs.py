"""What docs/ says of layouts and of explain is run here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from conftest import needs_engine

pytestmark = needs_engine
ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/layouts.md", "docs/explain.md")


def commands(verb: str) -> list[str]:
    """The lines of the pages that call a verb, without their remarks."""
    lines = [line for page in PAGES for line in (ROOT / page).read_text(encoding="utf-8").splitlines()]
    found = (re.match(rf"    (?:\.venv/bin/)?spinloom {verb} ?([^#]*)", line) for line in lines)
    return [match[1].strip() for match in found if match]


def test_the_python_of_the_page_runs():
    (block,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/layouts.md").read_text(encoding="utf-8"), re.DOTALL
    )
    exec(compile(block, "docs/layouts.md", "exec"), {})


@pytest.mark.parametrize("line", sorted(set(commands("explain"))))
def test_every_explain_of_the_pages_runs(spinloom, line, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = shlex.split(line)
    if "--plot" in arguments:
        arguments[arguments.index("--plot") + 1] = str(tmp_path / "picture.svg")
    monkeypatch.chdir(ROOT)
    ran = spinloom("explain", *arguments)
    assert ran.code == 0, ran.err
    assert ran.out
