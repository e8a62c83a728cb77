"""One HTML page that needs nothing beside it.

Contract: build() returns a page of text, a table for browsers without scripts, numbers, and a script that
draws them; still() one without a script. The same parts give the same bytes. The page loads nothing: its
policy forbids every request, and only the scripts and styles of these packages run, by their hashes. Text
from outside stands in it as text (printable.py).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from spinloom.common.printable import html, printable

HERE = "spinloom.common.pages"


def part(name: str, package: str = HERE) -> str:
    """A file of a package of pages."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def shortened(text: str, most: int) -> str:
    text = printable(text[: most + 1])
    return text if len(text) <= most else text[:most] + "..."


def data_text(content: dict[str, Any]) -> str:
    """JSON that may stand inside of a script element."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def source_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def build(
    title: str, table: str, content: dict[str, Any], main: str, scripts: Sequence[str], style: str = ""
) -> str:
    """`table` and `main` are HTML, `content` is what the scripts read. The frame's own come first."""
    script = part("frame.js") + "".join(scripts)
    styles = part("frame.css") + style
    return filled(
        title,
        styles,
        f'<p id="facts"></p>\n<noscript>{table}</noscript>\n',
        f'<main id="main" hidden>\n{main}</main>\n'
        f'<script type="application/json" id="data">{data_text(content)}</script>\n'
        f"<script>{script}</script>",
        f"script-src '{source_hash(script)}'; style-src '{source_hash(styles)}'",
    )


def still(title: str, head: str, main: str, style: str = "") -> str:
    """A page without a script. `head` and `main` are HTML, whose elements may have styles of their own."""
    styles = part("frame.css") + style
    return filled(title, styles, head, f'<main id="main">\n{main}</main>', "style-src 'unsafe-inline'")


def filled(title: str, style: str, head: str, body: str, policy: str) -> str:
    places = {
        "policy": f"default-src 'none'; {policy}; base-uri 'none'; form-action 'none'",
        "title": html(title),
        "style": style,
        "head": head,
        "body": body,
    }
    pieces = part("frame.html").split("{{")
    text = pieces[0]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        text += places[name] + rest
    return text
