"""Verbs that start a program: the first operand is the program, and all words behind it are the program's."""

from __future__ import annotations

import click

from spinloom.common import output


class Starts(click.Command):
    """Says on stderr which words behind the program are options of the verb. `--` before the program means
    that they are the program's, and nothing is said."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)
        rest = super().parse_args(ctx, args)
        operands = [ctx.params.get(param.name) for param in self.params if isinstance(param, click.Argument)]
        count = sum(len(value) if isinstance(value, tuple) else 1 for value in operands)
        options = {word for param in self.params if isinstance(param, click.Option) for word in param.opts}
        behind = (word.partition("=")[0] for word in words[len(words) - count + 1 :])
        taken = [word for word in behind if word in options]
        if taken and words[-count - 1 : -count] != ["--"]:
            are, them = ("is", "it") if len(taken) == 1 else ("are", "them")
            output.say(
                f"{', '.join(dict.fromkeys(taken))} {are} behind the program, which gets {them}; options of "
                f"'{ctx.command_path}' stand before the program, and '--' between both silences this line"
            )
        return rest
