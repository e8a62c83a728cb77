"""docs/rules/*.toml: each rule has the tests that it lists, and each test that names a rule is listed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("rules", ROOT / "tools/rules.py")
rules = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = rules  # its dataclasses look there
SPEC.loader.exec_module(rules)

OPENING = "# Rules of a thing,\n# after its book.\n"
RULE = '\n["A-1.{n}"]\ntext = "It is so."\nsource = "the book"\n{more}\n'
PYTHON = "# Rules: A-1.1.\ndef test_it():\n    pass\n"
CPP = """// Rules: A-1.1,
// A-1.2.
TEST_F(It, IsSo) {
  f();
}

static Result<int> helper(Bed& bed,
                          int seed) {
  // Rules: A-1.3.
  f();
}

INSTANTIATE_TEST_SUITE_P(All, It, Values(1));
/* Rules: A-1.4. */
TEST_P(It, IsAlwaysSo) {}
"""


def made(root: Path, *rows: str, sources: dict[str, str]) -> Path:
    (root / "docs/rules").mkdir(parents=True)
    text = OPENING + "".join(RULE.format(n=n, more=more) for n, more in enumerate(rows, 1))
    (root / "docs/rules/a.toml").write_text(text)
    for name, source in sources.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    return root


def test_the_tables_agree_with_the_tests():
    assert rules.wrong(ROOT, rules.MISSING) == []


def test_a_comment_belongs_to_the_test_below_it_or_around_it():
    assert [(each.number, each.test) for each in rules.named_in("x_test.cpp", CPP)] == [
        ("A-1.1", "x_test.cpp: It.IsSo"),
        ("A-1.2", "x_test.cpp: It.IsSo"),
        ("A-1.3", "x_test.cpp: helper"),
        ("A-1.4", "x_test.cpp: It.IsAlwaysSo"),
    ]
    inside = "def test_it(sim):\n    # Rules: A-1.1.\n    sim()\n"
    assert [each.test for each in rules.named_in("x.py", inside)] == ["x.py: test_it"]


@pytest.mark.parametrize(
    ("more", "source", "complaint"),
    [
        ('tests = ["tests/x.py: test_it"]', PYTHON, None),
        ("tests = []", "", None),
        ('exempt = "It is ours."', "", None),
        ("tests = []", PYTHON, "tests/x.py: test_it names A-1.1, which does not list it"),
        (
            'tests = ["tests/x.py: test_it"]',
            "def test_it():\n    pass\n",
            "A-1.1 lists tests/x.py: test_it, which does not",
        ),
        ('tests = ["tests/x.py: test_it"]', "", "A-1.1 lists tests/x.py: test_it, which is not there"),
        ('tests = ["tests/y.py: test_it"]', "", "A-1.1 lists tests/y.py: test_it, which is not there"),
        ("tests = []", PYTHON.replace("1.1", "1.9"), "tests/x.py:1 names A-1.9, which no table has"),
        ("tests = []", "# Rules: A-1.1.\n", "tests/x.py:1 names A-1.1, but no test stands there"),
        ("", "", "A-1.1 needs either tests or exempt"),
        ('exempt = "ours"', "", "A-1.1 is exempt without a sentence"),
        ('tests = []\nbasis = "hearsay"', "", "A-1.1 has the basis 'hearsay'"),
        ("tests = []\nwhy = 1", "", "A-1.1 has the key 'why'"),
    ],
)
def test_what_does_not_agree_is_said(tmp_path, more, source, complaint):
    root = made(tmp_path, more, sources={"tests/x.py": source})
    found = rules.wrong(root, {"a": int("tests = []" in more)})
    assert [each[: len(complaint or each)] for each in found[:1]] == ([complaint] if complaint else [])


def test_product_code_names_no_rules(tmp_path):
    root = made(
        tmp_path, "tests = []", sources={"src/nic/spin/x.cpp": "// Rules: A-1.1.\nint f(int x) {\n}\n"}
    )
    assert rules.wrong(root, {"a": 1}) == ["src/nic/spin/x.cpp:1 names A-1.1, but only tests name rules"]


@pytest.mark.parametrize(("runner", "complaints"), [("PROGRAMS = ['x.c']\n", 0), ("", 1)])
def test_a_program_that_holds_rules_is_run(tmp_path, runner, complaints):
    program = "/* Rules: A-1.1. */\nstatic void it(void) {\n}\n"
    root = made(
        tmp_path, 'tests = ["tests/x.c: it"]', sources={"tests/x.c": program, "tests/test_x.py": runner}
    )
    found = rules.wrong(root, {})
    assert found == ["tests/x.c holds rules, but no test in Python runs it"] * complaints


@pytest.mark.parametrize(("allowed", "cure"), [(0, "write a test"), (2, "lower the number")])
def test_the_number_of_missing_tests_only_falls(tmp_path, allowed, cure):
    root = made(tmp_path, "tests = []", sources={})
    assert cure in rules.wrong(root, {"a": allowed})[0]


def test_tests_are_put_into_their_tables(tmp_path):
    rows = ['tests = ["tests/gone.py: test_gone"]', "tests = []", "tests = []", 'exempt = "It is ours."']
    root = made(tmp_path, *rows, sources={"src/a/x_test.cpp": CPP.replace("A-1.4", "A-1.3")})
    rules.write(root)
    text = (root / "docs/rules/a.toml").read_text()
    assert text.startswith(OPENING)
    assert rules.wrong(root, {}) == []
    table = rules.tables(root)["a"]
    assert table["A-1.3"]["tests"] == ["src/a/x_test.cpp: helper", "src/a/x_test.cpp: It.IsAlwaysSo"]
    assert rules.counts(table) == {"held": 3, "exempt": 1, "missing": 0}
    rules.write(root)
    assert (root / "docs/rules/a.toml").read_text() == text
