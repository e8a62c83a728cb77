"""The command line: few verbs, one meaning an option, and every command that a page names is one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from spinloom.cli import cli
from spinloom.verbs.groups import Group
from spinloom.verbs.jobs import HIDDEN, PLACES

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
IN_SENTENCE = re.compile(r"['`]spinloom ([a-z][^'`\"\\\n]*)['`]")
OPTION_LAST = re.compile(r" --[a-z-]+$")  # an option that is named without a value
ENDS = ("&&", "|", ">", ">>", "||", ";", "&", "2>")


def words_of(line: str) -> list[str]:
    """The words of one command, without what follows it."""
    words = shlex.split(line.rstrip("\\"), comments=True)
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    return words[:end]


def parse(words: list[str]) -> str:
    """The verb and sub-verb that are meant, as 'goal run'.

    Raises click.UsageError where there is no such verb or option; operands are not looked at.
    """
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
            break  # the verb as such
        name, found, words = command.resolve_command(context, words)
        context = click.Context(found, info_name=name, parent=context, **found.context_settings)
        command = found
    command.make_parser(context).parse_args(list(words))
    return context.command_path.strip()


def commands_of(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    if page.name == "CHANGELOG.md":
        return  # it says what there was
    yield from IN_BLOCK.findall(text)
    yield from (line.replace("\n", " ") for line in IN_LINE.findall(text))


def named_in_sentences() -> Iterator[tuple[Path, str]]:
    """What sources and manual pages quote as a command, in errors and remarks."""
    for path in (
        *ROOT.glob("python/spinloom/**/*.py"),
        *ROOT.glob("src/**/*.?pp"),
        *ROOT.glob("include/**/*.h"),
    ):
        for line in IN_SENTENCE.findall(path.read_text(encoding="utf-8")):
            yield path, line


def test_every_command_of_a_sentence_is_one():
    found = list(named_in_sentences())
    assert len(found) > 100
    for path, line in found:
        try:
            parse([*words_of(line), "x"] if OPTION_LAST.search(line) else words_of(line))
        except (click.UsageError, ValueError) as error:
            pytest.fail(f"{path.relative_to(ROOT)}: spinloom {line}: {getattr(error, 'message', error)}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_one(page):
    for line in commands_of(page):
        with_value = [*words_of(line), "x"] if OPTION_LAST.search(line) else words_of(line)
        try:
            parse(with_value)
        except click.UsageError as error:
            pytest.fail(f"spinloom {line}: {error.message}")


# ---- words ----

VERBS_MAX = 17
WORD = re.compile(r"`(--?[a-zA-Z][\w-]*)`")


def commands(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Each visible verb and sub-verb with its name, as 'goal run'."""
    if path:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            if not found.hidden:
                yield from commands(found, (*path, name))


COMMANDS = dict(commands())
ALL_COMMANDS = {**COMMANDS, **{name: cli.get_command(click.Context(cli), name) for name in HIDDEN}}


def spellings(command: click.Command) -> list[set[str]]:
    """The spellings of each option; hidden options refuse or are for tests."""
    options = (param for param in command.params if isinstance(param, click.Option) and not param.hidden)
    return [{*option.opts, *option.secondary_opts} for option in options]


def table() -> tuple[list[set[str]], set[str]]:
    """The rows of CONTRIBUTING.md, and the words that are no options."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = text.partition("## Words of the command line")[2].partition("\n## ")[0].splitlines()
    cells = [line.split("|")[1:-1] for line in lines if line.startswith("| `")]
    return [set(WORD.findall(row[0])) for row in cells], {
        word for row in cells for word in WORD.findall(row[2])
    }


def test_verbs_are_few():
    visible = [name for name in PLACES if name in COMMANDS]
    assert len(visible) <= VERBS_MAX
    assert set(PLACES) - set(visible) == set(HIDDEN)


def test_an_option_of_two_verbs_has_one_meaning():
    rows, _ = table()
    words = [word for row in rows for word in row]
    assert len(words) == len(set(words)) > 30
    verbs: dict[str, set[str]] = {}
    for name, command in ALL_COMMANDS.items():
        for option in spellings(command):
            for word in option:
                verbs.setdefault(word, set()).add(name.split()[0])
    assert {word for word, users in verbs.items() if len(users) > 1} - {*words} == set(), "not in the table"
    assert {*words} - verbs.keys() == set(), "no verb has it"


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_spellings_of_a_row_come_together(name):
    rows, replaced = table()
    for option in spellings(ALL_COMMANDS[name]):
        assert not option & replaced, f"spinloom {name} has a word that another one has replaced"
        for row in rows:
            assert not option & row or row <= option, f"spinloom {name} {option}: the table has {row}"
        assert any(word.startswith("--") for word in option) or option == {"-D"}, "an option has a long name"


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_help_has_an_example_that_is_a_command(name):
    command = ALL_COMMANDS[name]
    assert command.help
    assert not command.get_short_help_str(60).endswith("..."), "a short sentence opens it"
    _, found, examples = f"{command.help}\n{command.epilog or ''}".partition("Example")
    assert found
    of_verb = [line for line in re.findall(r"spinloom ([^;]+)", examples) if line.startswith(name)]
    assert of_verb, f"no example of spinloom {name}"
    for line in of_verb:
        parse(words_of(" ".join(line.split())))


@pytest.mark.parametrize("name", COMMANDS)
def test_options_stand_before_and_behind_operands(name):
    """But for the verbs whose operands are another program's words."""
    command = COMMANDS[name]
    if not command.context_settings.get("allow_interspersed_args", True):
        return
    flags = [param.opts[-1] for param in command.params if isinstance(param, click.Option) and param.is_flag]
    if isinstance(command, click.Group) or not flags:
        return
    operands = ["x"] * sum(isinstance(param, click.Argument) for param in command.params)
    context = click.Context(command, **command.context_settings)
    parsed = [
        command.make_parser(context).parse_args(words)[:2]
        for words in ([flags[0], *operands], [*operands, flags[0]])
    ]
    assert parsed[0] == parsed[1]


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("goal -L 2500 app.goal", "goal run"),
        ("goal app.goal -L 2500", "goal run"),
        ("goal run app.goal -L 2500", "goal run"),
        ("goal check app.goal", "goal check"),
        ("calibrate", "calibrate copies"),
        ("calibrate --quiet", "calibrate copies"),
        ("calibrate peers", "calibrate peers"),
        ("info", "info versions"),
        ("info --json", "info versions"),
        ("info nics --json", "info nics"),
    ],
)
def test_a_group_has_a_usual_sub_verb(words, means):
    assert parse(words.split()) == means
