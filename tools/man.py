"""man.py OUT [BOOK] - writes the manual pages of man/BOOK.toml, or of all books, below OUT: man1, man3, man7.

Prototypes come from the headers, variables from src/live/process/settings.cpp or docs/mpi.md: they are said
once. A function that shares a page has a page of its own that refers to it.
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOKS = ("portals", "mpi")
HEADERS = ("portals4.h", "portals4_spin.h", "spinloom/mpix.h")
PROTOTYPE = re.compile(r"^(?:int|void) ((?:Ptl|MPIX_)\w+)\([^;]*\);", re.MULTILINE)
OWN_PROTOTYPE = re.compile(r"^(?:const )?\w+(?: int)? \*?spl_\w+\([^;]*\);", re.MULTILINE)
VARIABLES = {
    "portals": ("src/live/process/settings.cpp", r'\{"(SPINLOOM_\w+)",\s*"([^"]*)",\s*"([^"]*)"\}'),
    "mpi": ("docs/mpi.md", r"^\| `(SPINLOOM_MPI\w*)` \|(.*?)\| (.*) \|$"),
}


def prototypes() -> dict[str, str]:
    """Each function of the headers, as it is declared, on one line."""
    declarations = {}
    for name in HEADERS:
        text = (ROOT / "include" / name).read_text(encoding="utf-8")
        declarations |= {match[1]: " ".join(match[0].split()) for match in PROTOTYPE.finditer(text)}
    return declarations


def own_prototypes(header: str) -> list[str]:
    """All functions of one of our own headers, in its order."""
    text = (ROOT / "include" / header).read_text(encoding="utf-8")
    return [" ".join(match[0].split()) for match in OWN_PROTOTYPE.finditer(text)]


def variables(book: str = "portals") -> list[tuple[str, str, str]]:
    """Name, values and meaning of each variable of the live library, or of the MPI layer."""
    path, pattern = VARIABLES[book]
    found = re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    return [(name, values.strip(), re.sub(r"`|\]\(.*?\)|\[", "", meaning)) for name, values, meaning in found]


def pages(book: str) -> list[dict]:
    data = tomllib.loads((ROOT / f"man/{book}.toml").read_text(encoding="utf-8"))
    common = data["common"]
    for page in data["page"]:
        page["book"] = book
        page.setdefault("section", 3)
        page.setdefault("header", common["header"])
        page["see"] = page.get("see", []) + (common["see"] if page["section"] == 3 else [])
        if page["section"] == 3:
            page["returns"] = common["returns"] | page.get("returns", {})
    return data["page"]


def escape(text: str) -> str:
    """Text that no line of which is a request, with its back quotes as italics."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`(\w+)`", r"\\fI\1\\fR", text)
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.splitlines())


def paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith("- "):
            head, _, rest = line[2:].partition(": ")
            lines += [".TP", f".B {escape(head)}", escape(rest)]
        elif line.startswith("# "):
            lines[-1:] = [f".SH {line[2:]}"]
        elif not line and lines[-1].startswith(".SH"):
            continue
        elif not line:
            lines.append(".PP")
        else:
            lines.append(escape(line))
    return lines


def items(entries: dict[str, str]) -> list[str]:
    return [line for head, rest in entries.items() for line in (".TP", f".B {escape(head)}", escape(rest))]


def described(book: str) -> dict[str, str]:
    found = variables(book)
    return {name: f"{meaning} ({values})" if values else meaning for name, values, meaning in found}


def synopsis(page: dict, declared: dict[str, str]) -> list[str]:
    if page["section"] == 3:
        head = [f"#include <{page['header']}>", ""]
        folded = (textwrap.wrap(declared[name], 76, subsequent_indent="    ") for name in page["functions"])
        body = head + [line for prototype in folded for line in prototype]
    elif "all_of" in page:
        body = [f"#include <{page['all_of']}>", ""]
        for prototype in own_prototypes(page["all_of"]):
            body += textwrap.wrap(prototype, 76, subsequent_indent="    ")
    else:
        body = page.get("synopsis", [])
    return [".SH SYNOPSIS", ".nf", *map(escape, body), ".fi"] if body else []


def written(page: dict, declared: dict[str, str]) -> str:
    section = page["section"]
    names = ", ".join(page.get("functions", [page["name"]]))
    before, _, after = page["text"].partition("{verbs}")
    lines = [
        f'.TH {page["name"]} {section} "" Spinloom "Spinloom"',
        ".SH NAME",
        f"{names} \\- {escape(page['short'])}",
        *synopsis(page, declared),
        ".SH DESCRIPTION",
        *paragraphs(before),
        *items(page.get("verbs", {})),
        *([".PP", *paragraphs(after)] if after else []),
    ]
    if page.get("variables"):
        lines.append(".SH ENVIRONMENT")
        lines += items(described(page["book"]))
    if "returns" in page:
        lines += [".SH RETURN VALUE", *items(page["returns"])]
    lines += [".SH SEE ALSO", escape(", ".join(page["see"]))]
    return "\n".join(lines) + "\n"


def write_all(out: Path, books: Sequence[str] = BOOKS) -> list[Path]:
    declared = prototypes()
    paths = []
    for page in (page for book in books for page in pages(book)):
        folder = out / f"man{page['section']}"
        folder.mkdir(parents=True, exist_ok=True)
        texts = {page["name"]: written(page, declared)}
        for name in page.get("functions", []):
            texts.setdefault(name, f".so man3/{page['name']}.3\n")
        for name, text in texts.items():
            path = folder / f"{name}.{page['section']}"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
    return paths


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), sys.argv[2:] or BOOKS)
