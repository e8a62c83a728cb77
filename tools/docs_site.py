"""docs_site.py OUT - builds the pages of docs/ as a site in OUT; no network is needed to build or to read it.

The pages are copied beside OUT first, into OUT.pages. There the reference is written (docs_reference.py).
What a page links outside docs/ becomes a page of its own: Markdown as it is, a source with its text, a folder
with its sources. Warnings of Sphinx are errors; a link that leads nowhere is one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import docs_reference

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^(```|:::).*?^\1", re.DOTALL | re.MULTILINE)
LANGUAGES = {
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".hpp": "cpp",
    ".py": "python",
    ".f90": "fortran",
    ".toml": "toml",
    ".txt": "text",
}


class Pages:
    """The copied pages, and those of the tree that they link to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wanted: list[Path] = []  # of the tree, relative to ROOT
        self.listed: set[Path] = set()

    def place(self, path: Path) -> Path:
        """The page that shows a file or a folder of the tree, relative to the pages."""
        if path.is_relative_to("docs"):
            return path.relative_to("docs")
        if path.is_relative_to("include") and path.suffix == ".h":
            return docs_reference.header_page(path.relative_to("include"))
        if path not in self.listed:
            self.listed.add(path)
            self.wanted.append(path)
        return Path("tree") / (path if path.suffix == ".md" else Path(f"{path}.md"))

    def linked(self, text: str, source: Path, page: Path) -> str:
        """The text of `source` with links as they must be in `page`."""

        def link(match: re.Match[str]) -> str:
            name, anchor = match[1], match[2] or ""
            if re.match(r"\w+:", name):
                return match[0]
            path = Path(os.path.normpath(source.parent / name))
            if not (ROOT / path).exists():
                return match[0]  # Sphinx says that it leads nowhere
            return os.path.relpath(self.place(path), page.parent) + anchor

        done, at = [], 0
        for quoted in FENCE.finditer(text):
            done += [LINK.sub(link, text[at : quoted.start()]), quoted[0]]
            at = quoted.end()
        return "".join([*done, LINK.sub(link, text[at:])])

    def write(self, page: Path, text: str) -> None:
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def copy(self) -> None:
        shutil.copytree(ROOT / "docs", self.folder)
        for path in sorted((ROOT / "docs").rglob("*.md")):
            source = path.relative_to(ROOT)
            self.write(
                self.place(source), self.linked(path.read_text(encoding="utf-8"), source, self.place(source))
            )
        while self.wanted:
            path = self.wanted.pop()
            self.write(self.place(path), "---\norphan: true\n---\n\n" + self.shown(path))

    def shown(self, path: Path) -> str:
        whole = ROOT / path
        if path.suffix == ".md":
            return self.linked(whole.read_text(encoding="utf-8"), path, self.place(path))
        if whole.is_dir():
            return f"# `{path}/`\n\n" + "".join(self.source(each) for each in files_of(path))
        return f"# `{path}`\n\n" + code(path)

    def source(self, path: Path) -> str:
        return f"## `{path.name}`\n\n{code(path)}\n"


def files_of(folder: Path) -> list[Path]:
    names = subprocess.run(
        [
            "git",
            "-c",
            "safe.directory=*",
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            f"{folder}/",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found = [Path(name) for name in names] or [
        path.relative_to(ROOT) for path in sorted((ROOT / folder).iterdir()) if path.is_file()
    ]
    return [path for path in found if path.suffix in LANGUAGES and path.parent == folder]


def code(path: Path) -> str:
    text = (ROOT / path).read_text(encoding="utf-8").rstrip()
    return f"````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"


def build(out: Path) -> int:
    folder = out.with_name(f"{out.name}.pages")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    pages = Pages(folder)
    pages.copy()
    for page, text in docs_reference.pages().items():
        pages.write(page, text)
    options = ["-b", "html", "-E", "-q", "-W", "--keep-going", "-d", str(folder / ".doctrees")]
    from sphinx.cmd.build import main

    return main([*options, str(folder), str(out)])


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1]).resolve()))
