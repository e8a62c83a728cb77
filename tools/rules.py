"""rules.py check | list [SUBJECT] | --write - which rule is held by which test: the tables docs/rules/*.toml.

A rule is one plain sentence with a number. A test that fails when the rule is broken names the number in a
comment, `// Rules: P4F-7.3, P4F-8.2.` (in Python `# Rules: ...`, in C `/* Rules: ... */`). The comment stands
above the test, at the beginning of the line, or indented inside it. A test is a TEST of C++, a suite over
all ways (SPINLOOM_..._SUITE), a test function of Python, or a function of a program that a test runs.

check   says what is wrong with the tables; exit code 1 if anything is
list    counts the rules of each subject, or lists those of one: held by tests, exempt with a reason, missing
--write puts the tests that name a rule into its table
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("docs/rules")
# How many rules of a subject no test holds yet. It only falls, and subjects that are not here lack nothing.
MISSING: dict[str, int] = {}
# Tests and what they run; product code names no rules.
SOURCES = ("src/**/*.cpp", "src/**/*.hpp", "tests/**/*.py", "tests/**/*.c", "tests/**/*.cpp", "tests/**/*.h")
PRODUCT = re.compile(r"src/(?!.*(_test\.cpp$|/testing/|/testbed/)|torture/).*")
KEYS = ("text", "source", "basis", "tests", "exempt")
BASES = ("header", "implementation", "reference test", "specification")

NUMBER = re.compile(r"[A-Z0-9]+-\d+(?:\.\d+)?")
COMMENT = re.compile(
    r"^([ \t]*)(?://|#|/?\*) Rules: ([^\n]*)\n((?:[ \t]*(?://|#|\*)? [A-Z0-9]+-\d[^\n]*\n)*)", re.MULTILINE
)
UNIT = re.compile(
    r"^(?:TEST(?:_F|_P)?|TYPED_TEST(?:_P)?)\(\s*(?P<suite>\w+),\s*(?P<test>\w+)\s*\)"
    r"|^SPINLOOM_\w+_SUITE\(\s*(?P<made>\w+)"
    r"|^(?:async )?def (?P<python>test_\w+)\("
    r"|^[A-Za-z_][\w:<>,&* ]*?[ *&](?P<function>\w+)\([^;{}]*\)\s*\{",
    re.MULTILINE,
)


PARTS = ("suite", "test", "made", "python", "function")  # of the name of a test


@dataclass(frozen=True)
class Named:
    """A test that names a rule."""

    number: str
    test: str  # "" if there is none at the comment
    where: str  # file and line of the comment


def order(number: str) -> tuple[str, list[int]]:
    prefix, _, rest = number.rpartition("-")
    return prefix, [int(part) for part in rest.split(".")]


def tables(root: Path) -> dict[str, dict[str, dict]]:
    """The rules by number, for each subject."""
    return {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8"))
        for path in sorted((root / FOLDER).glob("*.toml"))
    }


def units(text: str) -> list[tuple[int, str]]:
    """Where each test begins, and its name."""
    return [
        (found.start(), ".".join(filter(None, (found[part] for part in PARTS))))
        for found in UNIT.finditer(text)
    ]


def named_in(path: str, text: str) -> Iterator[Named]:
    if " Rules: " not in text:
        return
    all_units = units(text)
    for found in COMMENT.finditer(text):
        inside = bool(found[1])
        before = [name for at, name in all_units if at < found.start()][-1:]
        after = [name for at, name in all_units if at > found.start()][:1]
        test = "".join(before if inside else after)
        line = text.count("\n", 0, found.start()) + 1
        for number in NUMBER.findall(found[2] + found[3]):
            yield Named(number, f"{path}: {test}" if test else "", f"{path}:{line}")


def named(root: Path) -> list[Named]:
    paths = sorted({path for pattern in SOURCES for path in root.glob(pattern)})
    return [
        each
        for path in paths
        if path != root / "tests/house/test_rules.py"
        for each in named_in(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
    ]


def opening(root: Path, subject: str) -> str:
    """The comment that a table opens with."""
    found = re.match(r"(?:#[^\n]*\n)*", (root / FOLDER / f"{subject}.toml").read_text(encoding="utf-8"))
    return found[0] if found else ""


def of_one_rule(number: str, rule: dict) -> Iterator[str]:
    if not NUMBER.fullmatch(number):
        yield f"{number} is no number of a rule: PREFIX-SECTION.NUMBER is one"
    for key in rule.keys() - set(KEYS):
        yield f"{number} has the key '{key}'; there are {', '.join(KEYS)}"
    if not str(rule.get("text", "")).endswith("."):
        yield f"{number} has no text that is a sentence"
    if not rule.get("source"):
        yield f"{number} says no source"
    if rule.get("basis", BASES[0]) not in BASES:
        yield f"{number} has the basis '{rule['basis']}'; there are {', '.join(BASES)}"
    if ("tests" in rule) == ("exempt" in rule):
        yield f"{number} needs either tests or exempt, with a reason"
    if "exempt" in rule and not str(rule["exempt"]).endswith("."):
        yield f"{number} is exempt without a sentence that says why"


def wrong(root: Path, allowed: dict[str, int]) -> list[str]:
    """What is wrong with the tables, in sentences."""
    found: list[str] = []
    listed: dict[str, list[str]] = {}
    for subject, rules in tables(root).items():
        if list(rules) != sorted(rules, key=order):
            found.append(f"{FOLDER}/{subject}.toml does not have its rules in the order of their numbers")
        for number, rule in rules.items():
            found += of_one_rule(number, rule)
            if number in listed:
                found.append(f"{number} stands in two tables")
            listed[number] = rule.get("tests", [])
        missing = sum(rule.get("tests") == [] for rule in rules.values())
        if missing != allowed.get(subject, 0):
            found.append(
                f"{FOLDER}/{subject}.toml has {missing} rules without a test, not {allowed.get(subject, 0)}: "
                + ("write a test" if missing > allowed.get(subject, 0) else "lower the number")
                + " (MISSING in tools/rules.py)"
            )
    python = "".join(path.read_text(encoding="utf-8") for path in root.glob("tests/**/*.py"))
    for file in sorted({test.partition(": ")[0] for tests in listed.values() for test in tests}):
        if re.fullmatch(r"tests/.*\.(c|cpp)", file) and Path(file).name not in python:
            found.append(f"{file} holds rules, but no test in Python runs it")
    by_test: dict[tuple[str, str], str] = {}
    for each in named(root):
        if PRODUCT.fullmatch(each.where.rpartition(":")[0]):
            found.append(f"{each.where} names {each.number}, but only tests name rules")
        elif each.number not in listed:
            found.append(f"{each.where} names {each.number}, which no table has")
        elif not each.test:
            found.append(f"{each.where} names {each.number}, but no test stands there")
        elif each.test not in listed[each.number]:
            found.append(
                f"{each.test} names {each.number}, which does not list it: python tools/rules.py --write"
            )
        by_test[each.number, each.test] = each.where
    for number, tests in listed.items():
        for test in tests:
            if (number, test) in by_test:
                continue
            file, _, name = test.partition(": ")
            if not (root / file).is_file() or name not in dict(
                map(reversed, units((root / file).read_text()))
            ):
                found.append(f"{number} lists {test}, which is not there")
            else:
                found.append(f"{number} lists {test}, which does not name it")
    return found


def text_of(number: str, rule: dict) -> str:
    lines = [f'["{number}"]']
    for key in KEYS:
        value = rule.get(key)
        if isinstance(value, str):
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
        elif value == []:
            lines.append(f"{key} = []")
        elif value is not None:
            lines += [f"{key} = [", *(f"  {json.dumps(each, ensure_ascii=False)}," for each in value), "]"]
    return "\n".join(lines) + "\n"


def write(root: Path) -> None:
    tests: dict[str, list[str]] = {}
    for each in named(root):
        if each.test and each.test not in tests.setdefault(each.number, []):
            tests[each.number].append(each.test)
    for subject, rules in tables(root).items():
        path = root / FOLDER / f"{subject}.toml"
        for number, rule in rules.items():
            if "exempt" not in rule:
                rule["tests"] = tests.get(number, [])
        parts = [
            opening(root, subject),
            *(text_of(number, rules[number]) for number in sorted(rules, key=order)),
        ]
        path.write_text("\n".join(parts), encoding="utf-8")


def state(rule: dict) -> str:
    return "exempt" if "exempt" in rule else "held" if rule["tests"] else "missing"


def counts(rules: dict[str, dict]) -> dict[str, int]:
    states = [state(rule) for rule in rules.values()]
    return {name: states.count(name) for name in ("held", "exempt", "missing")}


def show(root: Path, subject: str | None) -> None:
    for name, rules in tables(root).items():
        if subject is None:
            print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in counts(rules).items()))
        elif name == subject:
            for number, rule in rules.items():
                print(f"{number:10} {state(rule):8} {rule['text']}")


def main(words: list[str]) -> int:
    if words == ["check"]:
        found = wrong(ROOT, MISSING)
        print("\n".join(found), end="\n" if found else "")
        return bool(found)
    if words == ["--write"]:
        write(ROOT)
    elif words[:1] == ["list"] and len(words) <= 2:
        show(ROOT, words[1] if len(words) == 2 else None)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
