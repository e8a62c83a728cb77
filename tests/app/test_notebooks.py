"""The notebooks of examples/: each cell runs, in order, and shows something."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from conftest import needs_engine

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(ROOT.glob("examples/**/*.ipynb"))

pytestmark = needs_engine


def run(source: str, names: dict) -> object:
    """What a cell shows: the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code), "stored outputs"
    names = {"__name__": "__main__"}
    shown = [run("".join(cell["source"]), names) for cell in code]
    assert all(each is not None for each in shown)
    assert any("<svg" in each._repr_svg_() for each in shown if hasattr(each, "_repr_svg_"))  # the picture
    tables = [each for each in shown if hasattr(each, "_repr_html_")]
    assert any("<table>" in each._repr_html_() for each in tables)
