"""Errors that a user can mend: a code, one sentence, and an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Self, cast

from spinloom.common.printable import printable

EXIT_OK, EXIT_NEGATIVE, EXIT_USAGE, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CLOSED_PIPE = 141  # a shell reports SIGPIPE so
EXIT_TERMINATED = 143  # a shell reports SIGTERM so

# The engine's codes (src/base/result.hpp) and the exit code of each.
EXIT_OF_CODE = {
    "invalid": EXIT_USAGE,
    "overflow": EXIT_USAGE,
    "unsupported": EXIT_USAGE,
    "mismatch": EXIT_NEGATIVE,
    "stalled": EXIT_NEGATIVE,
    "fault": EXIT_NEGATIVE,
    "exhausted": EXIT_NEGATIVE,
    "environment": EXIT_ENVIRONMENT,
}


class Trouble(Exception):
    """An error with one of the engine's codes; one sentence with the values and what to change.

    `code` says what kind it is, `message` is the sentence, `exit_code` is what the command ends with.
    Trouble with what was passed (the codes invalid, overflow and unsupported) is a Refusal, which is also a
    ValueError. Trouble of other codes is none: a missing library, or bytes that differ, is no wrong value.
    """

    code: str
    message: str

    def __new__(cls, code: str = "", *_: object, **__: object) -> Self:
        """Makes a Refusal if the code is one of a Refusal. Subclasses may take other arguments."""
        refuses = cls is Trouble and EXIT_OF_CODE.get(code) == EXIT_USAGE
        return super().__new__(cast("type[Self]", Refusal) if refuses else cls)

    def __init__(self, code: str, message: str) -> None:
        message = printable(message)  # it may hold names and parts of files
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def exit_code(self) -> int:
        return EXIT_OF_CODE[self.code]

    def __reduce__(self) -> tuple[Callable[..., Trouble], tuple[type[Trouble], str, str]]:
        return remade, (type(self), self.code, self.message)


def remade(kind: type[Trouble], code: str, message: str) -> Trouble:
    """Trouble of a kind that came through a pickle, whatever that kind is usually made of."""
    trouble = kind.__new__(kind)
    Trouble.__init__(trouble, code, message)
    return trouble


class Refusal(Trouble, ValueError):
    """Trouble with what was passed: an argument, or what a file says. Trouble(code, message) makes it."""


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM: verbs end as at Ctrl-C."""


def exit_of_interrupt(interrupt: BaseException) -> int:
    return EXIT_TERMINATED if isinstance(interrupt, Terminated) else EXIT_INTERRUPTED


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for an unknown name: '; did you mean ...?' or the list of what exists.

    A name that begins with the unknown one is nearer than one that is spelt alike.
    """
    names = list(known)
    wanted = name.casefold()
    folded = {candidate.casefold(): candidate for candidate in names}
    longer = [candidate for candidate in folded if wanted and candidate.startswith(wanted)]
    close = longer or difflib.get_close_matches(wanted, folded, n=1, cutoff=0.5)
    if close:
        return f"; did you mean '{folded[min(close, key=len)]}'?"
    return f"; there are: {', '.join(names)}" if names else ""
