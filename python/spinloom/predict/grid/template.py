"""Datatypes with {names}: 'vector({n}, {b}, {2*b}, double)' for values of n and b.

Contract: names() are those that a text uses, filled() puts numbers in their places. In braces stand whole
numbers, names, + - * // and parentheses. Both raise Trouble('invalid').
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from spinloom.common.errors import Trouble

BRACES = re.compile(r"\{([^{}]*)\}")
OPERATIONS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def parsed(expression: str, text: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        raise wrong(expression, text) from None


def wrong(expression: str, text: str) -> Trouble:
    return Trouble(
        "invalid",
        f"'{text}': in {{{expression}}} may stand whole numbers, names of axes, + - * // and parentheses",
    )


def names(text: str) -> list[str]:
    """In the order of their first use."""
    identifiers = (
        node.id
        for expression in BRACES.findall(text)
        for node in ast.walk(parsed(expression, text))
        if isinstance(node, ast.Name)
    )
    return list(dict.fromkeys(identifiers))


def filled(text: str, values: Mapping[str, int]) -> str:
    def number(match: re.Match[str]) -> str:
        def value_of(node: ast.expr) -> int:
            match node:
                case ast.Constant(value=int(value)) if not isinstance(value, bool):
                    return value
                case ast.Name(id=name):
                    return values[name]
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    return -value_of(operand)
                case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATIONS:
                    return OPERATIONS[type(sign)](value_of(left), value_of(right))
            raise wrong(expression, text)

        expression = match[1]
        try:
            return str(value_of(parsed(expression, text)))
        except ZeroDivisionError:
            raise Trouble("invalid", f"'{text}': {{{expression}}} divides by zero") from None

    return BRACES.sub(number, text)
