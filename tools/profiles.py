"""profiles.py [--check] - writes the tables of docs/formats/profile.md; --check says if they are current.

They are made from the table of fields (python/spinloom/nics/profile_fields.py) and the words for rates
(rate_words.py). Exit code 1: the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/formats/profile.md"
BEGIN, END = "<!-- made by tools/profiles.py: {} -->", "<!-- end -->"
sys.path.insert(0, str(ROOT / "python"))

from spinloom.nics import rate_words  # noqa: E402
from spinloom.nics.profile_fields import FIELDS  # noqa: E402


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def fields() -> str:
    rows = [[f"`{name}`", field.unit, field.range, field.meaning] for name, field in FIELDS.items()]
    return table(["key", "unit", "range", "meaning"], rows)


def number(value: object) -> str:
    return f"{float(value):.9g}"  # type: ignore[arg-type]


def links() -> str:
    rows = [
        [f"`{name}`", number(link.gbit_s), number(rate_words.byte_time(link.gbit_s)), link.source]
        for name, link in rate_words.LINKS.items()
    ]
    return table(["word", "Gbit/s", "ps/B", "source"], rows)


def pcie() -> str:
    rows = [
        [
            f"`gen{number_of}xN`",
            number(each.transfers),
            each.encoding,
            number(rate_words.generation_rate(number_of, 16)),
            each.source,
        ]
        for number_of, each in rate_words.GENERATIONS.items()
    ]
    return table(["word", "GT/s of a lane", "encoding", "ps/B of 16 lanes", "source"], rows)


TABLES = {"fields": fields, "links": links, "pcie": pcie}


def page(text: str) -> str:
    """The page with its tables made again."""
    for name, made in TABLES.items():
        before, begin, rest = text.partition(BEGIN.format(name))
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{PAGE}: the marks of the table {name} are missing")
        text = f"{before}{begin}\n\n{made()}\n{end}{after}"
    return text


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    current = page(text)
    if sys.argv[1:] == ["--check"]:
        if text != current:
            print(f"{PAGE.relative_to(ROOT)} is not current: python tools/profiles.py")
        return text != current
    PAGE.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
