"""The order of the Python package: python/spinloom/README.md lists its parts, from below."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PART = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def parts_of(package: Path) -> list[str]:
    return PART.findall((package / "README.md").read_text(encoding="utf-8"))


def imports_of(path: Path) -> Iterator[str]:
    """The parts of the package that a module imports from, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "spinloom" and rest and not rest.startswith("_"):
                yield rest.partition(".")[0]


def violations(package: Path) -> list[str]:
    parts = parts_of(package)
    found = []
    for path in sorted(package.rglob("*.py")):
        here = path.relative_to(package)
        if "templates" in here.parts or here == Path("__init__.py"):
            continue
        own = here.parts[0].removesuffix(".py")
        if own not in parts:
            found.append(f"{here}: README.md does not list {own}")
            continue
        found += [
            f"{here} imports {other}: it is not above {own} in README.md"
            for other in sorted({*imports_of(path)})
            if other in parts and parts.index(other) > parts.index(own)
        ]
    return found


def test_each_module_imports_from_above():
    assert violations(ROOT / "python/spinloom") == []


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("common/spoiled.py", "from spinloom.nics import profiles", "common/spoiled.py imports nics"),
        (
            "nics/spoiled.py",
            "def f():\n    from spinloom.verbs.simulate import simulate",
            "nics/spoiled.py imports verbs",
        ),
        ("layout/spoiled.py", "from spinloom import gpu", "layout/spoiled.py imports gpu"),
        ("spoiled.py", "", "does not list spoiled"),
    ],
)
def test_what_is_out_of_order_is_found(tmp_path, file, line, complaint):
    copy = tmp_path / "spinloom"
    shutil.copytree(ROOT / "python/spinloom", copy)
    (copy / file).write_text(line + "\n", encoding="utf-8")
    (found,) = violations(copy)
    assert complaint in found
