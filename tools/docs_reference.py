"""The pages of the reference that are made from the sources, so that nothing is said twice.

The command line comes from its click commands, as --help does. Python comes from signatures and docstrings,
C from the headers. Environment variables and columns come from their tables.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

import man
import rules
from spinloom.cli import cli
from spinloom.common import config
from spinloom.verbs import columns as result_columns
from spinloom.verbs.jobs import JOBS

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    "spinloom": ("simulate", "exchange", "Frame"),
    "spinloom.layout": None,
    "spinloom.gpu": None,
    "spinloom.slmp": None,
    "spinloom.errors": ("Trouble",),
}
KINDS_OF_METHODS = {staticmethod: "staticmethod", classmethod: "classmethod"}


def plain(text: str) -> str:
    """Text whose characters mean nothing to Markdown."""
    return re.sub(r"([\\`*_<>\[\]|#~$])", r"\\\1", text)


MARKED = re.compile(r"(?<![\w-])(--?[a-z][\w-]*)|'(spinloom [^']*)'|`([^`]+)`|\bdocs/([\w/-]+)\.md")


def marked(text: str, up: str = "../../") -> str:
    """A text of ours as Markdown: options, quoted commands and `words` are code, pages are links."""

    def mark(found: re.Match[str]) -> str:
        option, quoted, word, page = found.groups()
        return f"[{page}]({up}{page}.md)" if page else f"`{option or quoted or word}`"

    done, at = [], 0
    text = " ".join(text.split())
    for found in MARKED.finditer(text):
        done += [plain(text[at : found.start()]), mark(found)]
        at = found.end()
    return "".join([*done, plain(text[at:])])


def toctree(names: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", *options, "", *names, "```", ""])


# ---- the command line ----


def page_of(words: tuple[str, ...]) -> Path:
    return Path("reference/cli") / f"{words[0]}.md"


def paragraphs(text: str) -> Iterator[str]:
    """The help of a command: paragraphs, and what \\b keeps as it is, as code."""
    for part in inspect.cleandoc(text).split("\f")[0].split("\n\n"):
        if not part.startswith("\b"):
            yield marked(part)
            continue
        lines = part.removeprefix("\b\n").splitlines()
        if not lines[0].startswith(" ") and lines[0].endswith(":"):
            yield plain(lines.pop(0))
        if lines:
            yield "```text\n" + inspect.cleandoc("\n".join(["", *lines])) + "\n```"


def option(each: click.Parameter, context: click.Context) -> str:
    record = each.get_help_record(context)
    if record is None or not record[1] or "--help" in each.opts:
        return ""
    names, meaning = record
    return f":::{{option}} {names}\n\n{marked(meaning)}\n:::\n"


def examples(text: str) -> str:
    """An epilog: its examples, one a line, as code; a sentence as it is."""
    text = " ".join(inspect.cleandoc(text).replace("\b", "").split())
    found = re.match(r"Examples?: (.*)", text)
    if found is None:
        return marked(text) + "\n"
    return "```text\n" + "\n".join(re.split(r"; (?=[a-z]+ )", found[1])) + "\n```\n"


def command(words: tuple[str, ...], each: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(each, info_name=words[-1], parent=parent, **each.context_settings)
    yield f"{'#' * len(words)} spinloom {' '.join(words)}\n"
    usage = " ".join(each.collect_usage_pieces(context))
    yield f"```text\nspinloom {' '.join(words)} {usage}\n```\n"
    yield "\n\n".join(paragraphs(each.help or "")) + "\n"
    if each.epilog:
        yield examples(each.epilog)
    yield f"```{{program}} spinloom {' '.join(words)}\n```\n"
    yield from filter(None, (option(one, context) for one in each.get_params(context)))
    if isinstance(each, click.Group):
        for name in each.list_commands(context):
            below = each.get_command(context, name)
            if below is not None and not below.hidden:
                yield from command((*words, name), below, context)


def command_line() -> Iterator[tuple[Path, str]]:
    root = click.Context(cli, info_name="spinloom", **cli.context_settings)
    text = [
        "# The command line\n",
        "`spinloom VERB --help` prints what is here; both come from the same table.\n",
    ]
    for job, verbs in JOBS.items():
        text += [f"## {job}\n", "| verb | what it does |", "|---|---|"]
        for name in verbs:
            each = cli.get_command(root, name)
            text.append(
                f"| [spinloom {name}](cli/{name}.md) | {marked(each.get_short_help_str(200), '../')} |"
            )
            yield page_of((name,)), "\n".join(command((name,), each, root))
        text.append("")
        text.append(toctree([f"cli/{name}" for name in verbs], ":hidden:"))
    text.append(marked(cli.epilog or "", "../") + "\n")
    yield Path("reference/cli.md"), "\n".join(text)


# ---- Python ----


def signature(each: object) -> str:
    try:
        return str(inspect.signature(each)).replace("'", "")
    except (TypeError, ValueError):
        return "()"


def documented(kind: str, name: str, each: object, inside: str = "") -> str:
    head = name if kind in ("property", "attribute") else name + signature(each)
    head = re.sub(r"\(self(, )?", "(", head)
    if kind == "class":
        head = head.removesuffix(" -> None")
    return f"::::{{py:{kind}}} {head}\n\n{inspect.cleandoc(each.__doc__ or '')}\n\n{inside}\n::::\n"


def methods(each: type) -> Iterator[str]:
    for name, one in vars(each).items():
        if name.startswith("_") or not getattr(one, "__doc__", None):
            continue
        if isinstance(one, property):
            yield documented("property", name, one).replace("::::", ":::")
        elif isinstance(one, (staticmethod, classmethod)) or inspect.isfunction(one):
            kind = KINDS_OF_METHODS.get(type(one), "method")
            yield documented(kind, name, getattr(each, name)).replace("::::", ":::")


def module_page(name: str, names: tuple[str, ...] | None) -> str:
    module: ModuleType = importlib.import_module(name)
    names = names or tuple(sorted(getattr(module, "__all__", None) or own_names(module)))
    text = [
        f"# {name}\n",
        inspect.cleandoc(module.__doc__ or ""),
        "",
        f"```{{py:currentmodule}} {name}\n```\n",
    ]
    for each in names:
        found = getattr(module, each)
        if inspect.isclass(found):
            text.append(documented("class", each, found, "\n".join(methods(found))))
        elif callable(found):
            text.append(documented("function", each, found))
    return "\n".join(text)


def own_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, each in vars(module).items()
        if not name.startswith("_") and getattr(each, "__module__", "") == module.__name__ and each.__doc__
    ]


def python() -> Iterator[tuple[Path, str]]:
    pages = {name: f"python/{name.replace('.', '-')}" for name in MODULES}
    for name, names in MODULES.items():
        yield Path("reference") / f"{pages[name]}.md", module_page(name, names)
    text = ["# Python\n", "| module | what it is |", "|---|---|"]
    for name, page in pages.items():
        first = (importlib.import_module(name).__doc__ or "").partition("\n")[0]
        text.append(f"| [{name}]({page}.md) | {plain(first)} |")
    yield Path("reference/python.md"), "\n".join([*text, "", toctree(list(pages.values()), ":hidden:")])


# ---- C ----


PARAGRAPH = re.compile(r"\n\n|\n(?=[A-Z][a-z]+: )")  # `Contract: ...` begins one


def header_page(header: Path) -> Path:
    return Path("reference/c") / f"{header}.md"


def opening(text: str) -> tuple[str, str]:
    """The comment that a header opens with, as text, and the rest."""
    block = re.match(r"\s*/\*(.*?)\*/\n", text, re.DOTALL)
    lines = re.match(r"(?:\s*//[^\n]*\n)+", text)
    found = block or lines
    if found is None:
        return "", text
    comment = block[1] if block else re.sub(r"^\s*//", "", found[0], flags=re.MULTILINE)
    return re.sub(r"^ ?\*? ?", "", comment.strip("\n"), flags=re.MULTILINE).strip(), text[found.end() :]


def header_text(header: Path) -> str:
    about, rest = opening((ROOT / "include" / header).read_text(encoding="utf-8"))
    up = "../" * (len(header.parts) + 1)
    about = "\n\n".join(shown(part, up) for part in PARAGRAPH.split(about))
    return f"# {plain(str(header))}\n\n{about}\n\n```c\n{rest.strip()}\n```\n"


def shown(part: str, up: str) -> str:
    """A paragraph of a comment; one with an indented line of code is kept as it is."""
    return f"```text\n{part}\n```" if re.search(r"^    +\S", part, re.MULTILINE) else marked(part, up)


def c_headers() -> Iterator[tuple[Path, str]]:
    headers = sorted(
        (path.relative_to(ROOT / "include") for path in (ROOT / "include").rglob("*.h")),
        key=lambda path: (len(path.parts), path),
    )
    text = ["# C headers\n", "| `#include` | what it is |", "|---|---|"]
    for header in headers:
        about, _ = opening((ROOT / "include" / header).read_text(encoding="utf-8"))
        first = re.split(r"(?<=\.)\s", " ".join(about.split("\n\n")[0].split()))[0]
        text.append(f"| [{plain(str(header))}](c/{header}.md) | {marked(first, '../')} |")
        yield header_page(header), header_text(header)
    tree = toctree([f"c/{header}" for header in headers], ":hidden:")
    yield Path("reference/c.md"), "\n".join([*text, "", tree])


def calls() -> Iterator[tuple[Path, str]]:
    """The calls of the manual's third section, as man/*.toml describe them."""
    declared = man.prototypes()
    text = ["# Calls of Portals 4 and of MPI beside it\n", "They are manual pages, too: `man PtlPut`.\n"]
    for page in (page for book in man.BOOKS for page in man.pages(book) if page["section"] == 3):
        text.append(f"## {', '.join(page['functions'])}\n\n{plain(page['short'])}: `{page['header']}`\n")
        text += [f":::{{c:function}} {declared[name].rstrip(';')}\n:::\n" for name in page["functions"]]
        text += [said(part) for part in page["text"].strip().split("\n\n")]
        text += ["| returns | when |", "|---|---|"]
        text += [f"| `{name}` | {plain(meaning)} |" for name, meaning in page["returns"].items()]
        text.append("")
    yield Path("reference/calls.md"), "\n".join(text)


def said(part: str) -> str:
    """A paragraph of a manual page: a heading, a list or words."""
    lines = part.splitlines()
    heading = f"**{plain(lines.pop(0)[2:])}**\n\n" if lines[0].startswith("# ") else ""
    if lines and lines[0].startswith("- "):
        return heading + "\n".join(f"- {marked(line.removeprefix('- '), '../')}" for line in lines) + "\n"
    return heading + marked(" ".join(lines), "../") + "\n"


# ---- tables ----

KINDS = {
    "": ("All of Spinloom", ""),
    "live": ("The live Portals library", "[live.md](../live.md) says when to change them.\n"),
    "MPI": ("The layer of `spinloom run`", "[mpi.md](../mpi.md) says when to change them.\n"),
}


def environment() -> Iterator[tuple[Path, str]]:
    text = ["# Environment variables\n"]
    text.append("An option wins over its variable. `spinloom info settings` prints the values in force.\n")
    for kind, (title, more) in KINDS.items():
        text += [f"## {title}\n", more, "| variable | default | meaning |", "|---|---|---|"]
        for each in config.VARIABLES.values():
            start, colon, rest = each.help.partition(": ")
            of = start if colon and start in KINDS else ""
            if of == kind:
                default = f"`{each.default}`" if each.default else ""
                text.append(f"| `{each.name}` | {default} | {marked(rest if of else each.help)} |")
        text.append("")
    yield Path("reference/environment.md"), "\n".join(text)


def columns() -> Iterator[tuple[Path, str]]:
    text = [
        "# Columns of the results\n",
        "`spinloom info columns` prints the same table.",
        "With `--send` or `--together`, rows have columns of `simulate`, too.\n",
    ]
    text += ["| command | column | meaning |", "|---|---|---|"]
    text += [
        f"| `spinloom {row['command']}` | `{row['column']}` | {marked(row['meaning'])} |"
        for row in result_columns.rows()
    ]
    yield Path("reference/columns.md"), "\n".join([*text, ""])


# ---- rules ----


def held_by(rule: dict) -> str:
    if "exempt" in rule:
        return plain(rule["exempt"])
    return "<br>".join(f"`{test}`" for test in rule["tests"]) or "*missing*"


def rule_pages() -> Iterator[tuple[Path, str]]:
    """A page for each table of docs/rules, and one that counts."""
    tables = rules.tables(ROOT)
    text = ["# Rules and their tests\n"]
    text.append(
        "Each rule of an interface that Spinloom follows is a sentence with a number. A test that would fail "
        "if the rule were broken names that number. Tables also say which rules Spinloom does not follow, "
        "and why.\n"
    )
    text += ["| subject | rules | held by tests | exempt | missing |", "|---|---|---|---|---|"]
    for subject, table in tables.items():
        numbers = " | ".join(str(count) for count in rules.counts(table).values())
        text.append(f"| [{subject}](rules/{subject}.md) | {len(table)} | {numbers} |")
        about = " ".join(rules.opening(ROOT, subject).replace("#", " ").split())
        rows = [f"# Rules: {subject}\n", plain(about) + "\n"]
        rows += ["| number | rule | source | held by |", "|---|---|---|---|"]
        for number, rule in table.items():
            rows.append(f"| {number} | {plain(rule['text'])} | {plain(rule['source'])} | {held_by(rule)} |")
        yield Path(f"reference/rules/{subject}.md"), "\n".join([*rows, ""])
    tree = toctree([f"rules/{subject}" for subject in tables], ":hidden:")
    yield Path("reference/rules.md"), "\n".join([*text, "", tree])


def pages() -> dict[Path, str]:
    tables = (*environment(), *columns(), *rule_pages())
    return dict((*command_line(), *python(), *c_headers(), *calls(), *tables))
