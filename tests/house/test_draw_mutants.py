"""tools/draw_mutants.py: what it draws, and that what it knows still stands in the sources."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def loaded():
    spec = importlib.util.spec_from_file_location("draw_mutants", ROOT / "tools/draw_mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


draw_mutants = loaded()

SOURCE = """#include <a + 1>
#define LESS(a, b) \\
  ((a) < (b))
// while a < b
bool f(int a, int b) {
  SPL_ASSERT(a < b, "a + 1",
             a + 1);
  if (!g(a)) return false;
  log("a < b", 'x', 10'000 + 1);
  for (int i = 0; i < b; ++i) {
    if (i == a && b > 1) continue;
    this->h(i,
            g(a));
    g(a);
  }
#ifdef __CUDACC__
  g(a < b);
#else
  h(a, b);
#endif
  return std::min(a, b) == 0 || g(a);
}
"""


def drawn(source: str) -> list[tuple[int, str, str]]:
    return [(one.line, one.change, one.by) for one in draw_mutants.mutants_of("src/live/x.cpp", source)]


def test_each_operator_of_each_line_is_one_mistake():
    assert drawn(SOURCE) == [
        (8, "if (! becomes if (", "if (g(a)) return false;"),
        (8, "false becomes true", "if (!g(a)) return true;"),
        (9, "+ becomes -", """log("a < b", 'x', 10'000 - 1);"""),
        (9, "+ 1 becomes nothing", """log("a < b", 'x', 10'000);"""),
        (9, "the call is left out", ";"),
        (10, "< becomes <=", "for (int i = 0; i <= b; ++i) {"),
        (11, "> becomes >=", "if (i == a && b >= 1) continue;"),
        (11, "== becomes !=", "if (i != a && b > 1) continue;"),
        (11, "&& becomes ||", "if (i == a || b > 1) continue;"),
        (11, "continue becomes break", "if (i == a && b > 1) break;"),
        (14, "the call is left out", ";"),
        (19, "the call is left out", ";"),
        (21, "== becomes !=", "return std::min(a, b) != 0 || g(a);"),
        (21, "|| becomes &&", "return std::min(a, b) == 0 && g(a);"),
        (21, "std::min becomes std::max", "return std::max(a, b) == 0 || g(a);"),
    ]


def test_a_mistake_is_put_into_its_line_only():
    for one in draw_mutants.mutants_of("src/live/x.cpp", SOURCE):
        before, after = SOURCE.split("\n"), one.applied(SOURCE).split("\n")
        changed = [
            number for number, pair in enumerate(zip(before, after, strict=True), 1) if len({*pair}) > 1
        ]
        assert changed == [one.line]


def test_an_edit_elsewhere_changes_no_draw():
    def ranks(source: str) -> list[str]:
        return [one.rank(1) for one in draw_mutants.mutants_of("src/live/x.cpp", source)]

    assert ranks("int moved;\n" + SOURCE) == ranks(SOURCE)
    twice = SOURCE + SOURCE
    assert len(set(ranks(twice))) == 2 * len(ranks(SOURCE))


def test_each_folder_has_enough_to_draw_from():
    for folder in draw_mutants.FOLDERS:
        possible = draw_mutants.candidates(folder, 1)
        assert len(possible) > 100
        assert [one.key for one in possible[:10]] == [
            one.key for one in draw_mutants.candidates(folder, 1)[:10]
        ]
        assert [one.key for one in possible[:10]] != [
            one.key for one in draw_mutants.candidates(folder, 2)[:10]
        ]


@pytest.mark.parametrize("one", draw_mutants.named(), ids=lambda one: one.name)
def test_what_is_named_still_applies(one):
    source = (ROOT / one.file).read_text(encoding="utf-8")
    assert one.applied(source) != source


def test_what_is_equivalent_still_stands_there():
    for file, text, change in draw_mutants.reasons():
        possible = draw_mutants.mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))
        assert any((one.text, one.change) == (text, change) for one in possible), f"{file}: {text}"
