"""Runs docs/questions.md: each block of Python or shell, and the text that it is said to print.

    .venv/bin/python tools/questions.py            # compares; prints what differs, exits with 1
    .venv/bin/python tools/questions.py --update   # writes what comes out now into the page

Contract: a question is a block ```python or ```sh followed by a block ```text. Commands begin with
`spinloom`, and run in an empty folder with COLUMNS=100.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs/questions.md"
BLOCK = re.compile(r"```(?P<kind>python|sh)\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```\n", re.S)


@dataclass(frozen=True)
class Question:
    kind: str
    code: str
    printed: str

    def ask(self) -> str:
        """Runs the code; returns its output, without spaces at the ends of lines."""
        if self.kind == "sh":
            words = shlex.split(self.code.replace("\\\n", " "))
            command = [sys.executable, "-m", "spinloom.cli", *words[1:]]
        else:
            command = [sys.executable, "-c", self.code]
        environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        if ran.returncode != 0:
            raise RuntimeError(f"{self.code}\nexit code {ran.returncode}: {ran.stderr}")
        lines = (line.rstrip() for line in ran.stdout.splitlines())
        return "".join(f"{line}\n" for line in lines if line)


def questions() -> list[Question]:
    return [Question(**found.groupdict()) for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    differ = 0
    for question in questions():
        now = question.ask()
        if now == question.printed:
            continue
        differ += 1
        before = f"{question.code}```\n\n```text\n{question.printed}```"
        text = text.replace(before, f"{question.code}```\n\n```text\n{now}```")
        print(now)
    if differ and "--update" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
