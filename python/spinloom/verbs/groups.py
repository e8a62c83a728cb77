"""Verbs that have verbs below them."""

from __future__ import annotations

import importlib
from typing import Any

import click

from spinloom.common.errors import nearest


class Group(click.Group):
    """A verb whose sub-verbs are imported when they are asked for.

    `places` has the module and the name of each. An unknown word is answered with the nearest one. A default
    sub-verb is meant by a first word that names none: by an option always, by another word if the default one
    takes operands, and by nothing at all unless no_args_is_help.
    """

    def __init__(self, *, places: dict[str, str], default: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.places = places
        self.default = default

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
            raise click.UsageError(f"there is no verb '{args[0]}'{nearest(args[0], self.places)}", ctx)
        return super().resolve_command(ctx, args)
