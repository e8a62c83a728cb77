"""Shared by `handler run`, `profile` and `test`: a handler, its setup, and options that change the setup."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from spinloom.common.errors import Trouble
from spinloom.handlers import handler_build, handler_runs, handler_setup
from spinloom.handlers.handler_build import Image
from spinloom.handlers.handler_runs import Expect, HandlerRun
from spinloom.handlers.handler_setup import HandlerSetup
from spinloom.nics.profiles import Profile
from spinloom.verbs.options import host_option, hpus_option, mtu_option, seed_option, set_option


@dataclass(frozen=True)
class Chosen:
    image: Image
    setup: HandlerSetup
    expect: Expect | None
    seed: int
    message: bytes | None = None  # None: random bytes

    @property
    def profile(self) -> Profile:
        return self.setup.nic

    def with_message(self, path: Path | None, size: str | None, count: int | None) -> Chosen:
        if path is not None and size is not None:
            raise Trouble("invalid", "--message and --size: one of them says what is sent")
        content = read_message(path) if path is not None else None
        message_bytes = len(content) if content is not None else parsed_bytes("--size", size)
        return replace(
            self, message=content, setup=self.setup.with_overrides(message_bytes=message_bytes, count=count)
        )

    def run(self, **options: Any) -> HandlerRun:
        message = self.message
        if message is None:
            message = handler_runs.random_message(self.setup.message_bytes, self.seed)
        return handler_runs.run(self.image, self.setup, message, seed=self.seed, **options)

    def differences(self, ran: HandlerRun) -> list[str]:
        return handler_runs.compare(ran, self.expect) if self.expect else []


def read_message(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Trouble("invalid", f"--message {path} cannot be read: {error.strerror}") from None


def parsed_bytes(option: str, text: str | None) -> int | None:
    try:
        return None if text is None else handler_setup.size(text)
    except ValueError as error:
        raise Trouble("invalid", f"{option} '{text}': {error}") from None


def choose(
    path: Path,
    nic: str | None,
    host: str | None,
    changes: list[tuple[str, str]],
    hpus: int | None,
    mtu: str | None,
    order: str | None,
    seed: int,
) -> Chosen:
    image = handler_build.image_of(path)
    options = {"profile": nic, "host": host, "hpus": hpus, "order": order}
    setup = handler_setup.load(image.beside(".toml"))
    setup = setup.with_overrides(
        **options, packet_bytes=parsed_bytes("--mtu", mtu), changes=(*setup.changes, *changes)
    )
    try:
        handler_setup.order_of(setup.order)
    except ValueError as error:
        raise Trouble("invalid", f"--order '{order}': {error}") from None
    return Chosen(image, setup, handler_runs.expectation(image.beside("_expect.py")), seed)


def run_options(function: Callable) -> Callable:
    """FILE, --nic, --host, --set, --hpus, --mtu, --order and --seed as the argument `chosen`."""

    @functools.wraps(function)
    def with_chosen(*arguments: Any, **options: Any) -> Any:
        option_names = ("path", "nic", "host", "changes", "hpus", "mtu", "order", "seed")
        chosen = choose(**{name: options.pop(name) for name in option_names})
        return function(*arguments, chosen=chosen, **options)

    decorators = [
        click.argument("path", metavar="FILE", type=click.Path(path_type=Path)),
        click.option("--nic", help="NIC profile, by name or path; FILE.toml says otherwise."),
        host_option,
        set_option,
        hpus_option,
        mtu_option,
        click.option(
            "--order", metavar="ORDER", help="'in'; 'window:N' or 'all:N': shuffled within N packets."
        ),
        seed_option,
    ]
    return functools.reduce(
        lambda decorated, decorator: decorator(decorated), reversed(decorators), with_chosen
    )
