"""Verbs that have verbs below them."""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import Any

import click

from spinloom.common.errors import nearest


class Group(click.Group):
    """A verb whose sub-verbs are imported when they are asked for.

    `places` has the module and the name of each. An unknown word is answered with the nearest one: the verb
    that takes files with that ending (`of_files`), a sub-verb of that name, or a name that is like it. A
    default sub-verb is meant by a first word that names none: by an option always, by another word if the
    default one takes operands, and by nothing at all unless no_args_is_help.
    """

    def __init__(
        self,
        *,
        places: dict[str, str],
        default: str | None = None,
        of_files: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.places = places
        self.default = default
        self.of_files = of_files or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.places:
            return None
        module, _, attribute = self.places[name].partition(":")
        return getattr(importlib.import_module(f"spinloom.verbs.{module}"), attribute)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.default is not None and self.means_default(ctx, args, self.default):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def means_default(self, ctx: click.Context, args: list[str], default: str) -> bool:
        if not args:
            return not self.no_args_is_help
        if args[0].startswith("-"):
            return args[0] not in ctx.help_option_names
        command = self.get_command(ctx, default)
        has_operands = any(isinstance(parameter, click.Argument) for parameter in command.params)
        return has_operands and args[0] not in self.places

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.places:
            raise click.UsageError(f"there is no verb '{args[0]}'{self.hint(ctx, args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def hint(self, ctx: click.Context, word: str) -> str:
        verb = self.of_files.get(PurePath(word).suffix)
        if verb is not None:
            return f"; did you mean '{ctx.command_path} {verb} {word}'?"
        commands = {name: self.get_command(ctx, name) for name in self.places}
        for name, command in commands.items():
            if isinstance(command, click.Group) and word in command.list_commands(ctx):
                return f"; did you mean '{name} {word}'?"
        return nearest(word, [name for name, command in commands.items() if not command.hidden])
