"""comments.py [FILE ...] - lists comments that are hard to read; exit code 1 if there are any.

    long       a line with a comment has more than 120 columns
    fragment   a comment opens with a preposition or as a question (Of, By, Who, What ...): it has no subject
    sentence   a sentence of a comment has more than 40 words
    trailing   a comment behind code opens in small letters with such a word (of, by, that, not ...): it
               only goes on where a name ends

Of Python it reads comments behind code only, and lists the last kind.

Without files: all C and C++ that git knows below src, include, handlers, bench and tests, and the Python
below python.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, WORDS = 120, 40
# Outside of texts, from the first mark of a comment to its end.
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)
OPENS = re.compile(
    r"(?:Of|By|As|With|Whether|Who|Whose|What|Which|How|For what|That of|Those|So many|The same)\b"
)
TRAILS = re.compile(
    r"(?:of|that|with|in|by|for|to|which|who|whom|at|beside|on|from|as|without|until|where|when|if|while|also|but|and|or"
    r"|not|is|are|has|may|does|then|else|because|whose|what|how|why|whether|per|before|after|behind|below|beyond|between"
    r"|among|within|under|into|since|so that|once|unless)(?=[ .,;:]|$)"
)
ENDS = re.compile(r"(?<=[.:;!?])\s+")


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """The line and the words of each comment; lines of // below each other are one comment."""
    first, text_so_far, last = 0, "", -1
    for match in TOKEN.finditer(text):
        token = match.group(0)
        if not token.startswith(("//", "/*")):
            continue
        line = text.count("\n", 0, match.start()) + 1
        alone = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip() == ""
        words = re.sub(r"^/[/*]+<?|^\s*\*+", "", token.removesuffix("*/"), flags=re.MULTILINE).strip()
        if text_so_far and alone and token.startswith("//") and line == last + 1:
            text_so_far += " " + words if words else "\n"
        else:
            if text_so_far:
                yield first, text_so_far
            first, text_so_far = line, words
        last = line if alone else -1
    if text_so_far:
        yield first, text_so_far


def trailing_of(text: str) -> Iterator[tuple[int, str]]:
    """The line and the words of each comment of C and C++ behind code, with nothing behind it."""
    for match in TOKEN.finditer(text):
        token = match.group(0)
        code = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        is_last = text[match.end() : match.end() + 1] in ("", "\n")
        if token.startswith(("//", "/*")) and code.strip() and is_last:
            number = text.count("\n", 0, match.start()) + 1
            yield number, re.sub(r"^/[/*]+<?", "", token.removesuffix("*/")).strip()


def trailing_of_python(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip():
            yield token.start[0], token.string.lstrip("# ")


def trailing_offences(name: Path, comments: Iterator[tuple[int, str]]) -> Iterator[str]:
    for number, words in comments:
        if TRAILS.match(words):
            yield f"{name}:{number}: trailing: {words[:70]}"


def offences(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT)
    if path.suffix == ".py":
        yield from trailing_offences(name, trailing_of_python(text))
        return
    yield from trailing_offences(name, trailing_of(text))
    marked: set[int] = set()  # lines of comments
    for match in TOKEN.finditer(text):
        if match.group(0).startswith(("//", "/*")):
            first = text.count("\n", 0, match.start()) + 1
            marked.update(range(first, first + match.group(0).count("\n") + 1))
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > COLUMNS and number in marked:
            yield f"{name}:{number}: long: {len(line)} columns"
    for number, words in comments_of(text):
        if OPENS.match(words):
            yield f"{name}:{number}: fragment: {words[:70]}"
        for sentence in ENDS.split(words.replace("\n", ". ")):
            if len(sentence.split()) > WORDS:
                yield f"{name}:{number}: sentence: {len(sentence.split())} words: {sentence[:60]}"


def is_read(name: str) -> bool:
    if name.startswith("python/"):
        return name.endswith(".py")
    return name.endswith((".c", ".h", ".cpp", ".hpp", ".cu"))


def main(names: list[str]) -> int:
    if names:
        paths = [Path(name).resolve() for name in names]
    else:
        folders = ("src", "include", "handlers", "bench", "tests", "python")
        tracked = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\0")
        paths = [ROOT / name for name in tracked if is_read(name)]
    offences_found = [offence for path in sorted(paths) if path.is_file() for offence in offences(path)]
    print("\n".join(offences_found) if offences_found else "comments.py: no comment is hard to read")
    return 1 if offences_found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
