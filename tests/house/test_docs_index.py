"""docs/README.md lists every page."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_page_is_listed_and_every_listed_page_is_there():
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8")))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"README.md"}
    assert pages <= listed
    assert all((DOCS / page).is_file() for page in listed)
