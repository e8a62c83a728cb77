"""The command line: every command that a page, an example or an error names is one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from spinloom.cli import cli
from spinloom.verbs.groups import Group

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("src/**/*.md"),
    *ROOT.glob("examples/**/*.md"),
    *ROOT.glob("data/**/*.md"),
    *ROOT.glob("python/**/*.md"),
]
IN_BLOCK = re.compile(r"^    (?:[^'\"\n]*? )?(?:\.venv/bin/)?spinloom (.*)$", re.MULTILINE)
IN_LINE = re.compile(r"`spinloom ([a-z][^`]*)`")
IN_HELP = re.compile(r"(?:^|[;:,'`] |')spinloom ([a-z][^;`']*)")
OPTION_LAST = re.compile(r" --[a-z-]+$")  # an option that is named without a value
ENDS = ("&&", "|", ">", ">>", "||", ";", "&", "2>")


def words_of(line: str) -> list[str]:
    """The words of one command, without what follows it."""
    words = shlex.split(line.rstrip("\\"), comments=True)
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    return words[:end]


def parse(words: list[str]) -> None:
    """Raises click.UsageError where there is no such verb or option; operands are not looked at."""
    context = click.Context(cli, **cli.context_settings)
    command: click.Command = cli
    while isinstance(command, click.Group):
        if (
            isinstance(command, Group)
            and command.default
            and command.means_default(context, words, command.default)
        ):
            words = [command.default, *words]
        _, words, _ = command.make_parser(context).parse_args(list(words))
        if not words:
            return  # the verb as such
        name, found, words = command.resolve_command(context, words)
        context = click.Context(found, info_name=name, parent=context, **found.context_settings)
        command = found
    command.make_parser(context).parse_args(list(words))


def commands_of(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md":
        return  # it says what there was
    yield from IN_BLOCK.findall(text)
    yield from (line.replace("\n", " ") for line in IN_LINE.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_one(page):
    for line in commands_of(page):
        with_value = [*words_of(line), "x"] if OPTION_LAST.search(line) else words_of(line)
        try:
            parse(with_value)
        except click.UsageError as error:
            pytest.fail(f"spinloom {line}: {error.message}")
