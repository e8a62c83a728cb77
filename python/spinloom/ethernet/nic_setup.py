"""The configuration of a live Ethernet NIC: its ports and its contexts, from the command line or a TOML file.

Contract: load(path) reads a file (docs/ethernet.md lists its keys); Trouble names file, key, value. start()
builds images of C sources in a folder, and a NIC whose contexts are active. Rules are (any, [(word, mask,
start, end)], last): a word's first byte is its lowest.
"""

from __future__ import annotations

import ipaddress
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from spinloom.common import core, data, documents
from spinloom.common.errors import Trouble, nearest
from spinloom.handlers import handler_build

Rule = tuple[int, int, int, int]
WIRES = (
    "--wire packet:INTERFACE for frames of an interface, or --wire pcap:IN,OUT for those of a capture file"
)
NEVER: Rule = (0, 0, 1, 0)
Rules = tuple[bool, list[Rule], Rule]
WORD_MAX = 2**32 - 1
NAMES_TRIED = 64
# Shipped handlers that do nothing, or little, without a program, which brings them itself.
PROGRAM_HANDLERS = {
    "slmp_file": "takes no packet until its program asks for a message: "
    "'spinloom nic receive FILE --name NAME' brings these handlers itself, to a NIC on no capture file",
    **dict.fromkeys(
        ("frame_ddt_seek", "frame_ddt_segment"),
        "unpacks what its program gives it as constants: "
        "spinloom.ethernet.nic_types.Unpacked brings these handlers",
    ),
}
LINES_SHOWN = 1000  # the handlers' lines, where nobody finds the NIC by a name
STATE_BYTES = 65536  # spl_eth_open() takes as many


@dataclass(frozen=True)
class Context:
    handlers: str  # FILE.c, FILE.elf, FILE.so or the name of a shipped handler; "": frames go to host memory
    rules: str | dict  # a name, RULE.toml, or a table
    native: bool = False
    constants: bytes | None = None  # None: the NIC's addresses (spl_station_t)
    state_bytes: int = STATE_BYTES
    host_bytes: int = 0


@dataclass(frozen=True)
class Setup:
    wire: str = ""
    host: str | None = None
    address: str | None = None
    contexts: tuple[Context, ...] = field(default=())
    folder: Path = Path()  # file names are relative to this


def integer(where: str, table: dict, key: str, default: int | None = None) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= WORD_MAX:
        raise Trouble("invalid", f"{where}: {key} = {value!r}: a number from 0 to 2^32 - 1")
    return value


def check_keys(where: str, table: dict, known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise Trouble("invalid", f"{where}: there is no key '{key}'{nearest(key, known)}")


def swapped(word: int) -> int:
    return int.from_bytes(word.to_bytes(4, "big"), "little")


def rule_of(where: str, table: Any) -> Rule:
    """`value` is in network order, as headers are described; start and end are as the NIC compares."""
    if not isinstance(table, dict):
        raise Trouble(
            "invalid", f"{where}: a rule is a table, such as {{word = 9, mask = 0xffff0000, value = 7}}"
        )
    check_keys(where, table, ("word", "mask", "value", "start", "end"))
    word, mask = integer(where, table, "word"), integer(where, table, "mask", WORD_MAX)
    if "value" in table:
        if "start" in table or "end" in table:
            raise Trouble("invalid", f"{where}: a rule has either value or start and end")
        value = swapped(integer(where, table, "value"))
        return word, swapped(mask), value, value
    return word, mask, integer(where, table, "start"), integer(where, table, "end")


def rules_of(where: str, table: dict) -> Rules:
    check_keys(where, table, ("mode", "rule", "last"))
    mode = table.get("mode", "all")
    if mode not in ("all", "any"):
        raise Trouble("invalid", f"{where}: mode = {mode!r}: 'all' or 'any' of the rules")
    rules = table.get("rule", [])
    if not isinstance(rules, list):
        raise Trouble("invalid", f"{where}: rule is a list of tables ([[rule]])")
    last = rule_of(where, table["last"]) if "last" in table else NEVER
    return mode == "any", [rule_of(where, rule) for rule in rules], last


def rules_in(engine: ModuleType, setup: Setup, context: Context) -> Rules:
    if isinstance(context.rules, dict):
        return rules_of("rules", context.rules)
    if context.rules.endswith(".toml"):
        path = setup.folder / context.rules
        return rules_of(str(path), documents.toml(path))
    return engine.rules_named(context.rules)


def load(path: Path) -> Setup:
    document = documents.toml(path)
    check_keys(str(path), document, ("wire", "host", "address", "context"))
    contexts = []
    context_tables = document.get("context", [])
    if not isinstance(context_tables, list) or not all(isinstance(table, dict) for table in context_tables):
        raise Trouble("invalid", f"{path}: context is a list of tables ([[context]])")
    for number, table in enumerate(context_tables):
        where = f"{path}: context {number}"
        check_keys(where, table, ("handlers", "rules", "native", "constants", "state_bytes", "host_bytes"))
        if not isinstance(table.get("handlers", ""), str):
            raise Trouble("invalid", f"{where}: handlers = {table['handlers']!r}: a text")
        if not isinstance(table.get("rules", ""), str | dict):
            raise Trouble("invalid", f"{where}: rules = {table['rules']!r}: a text or a table")
        constants = table.get("constants")
        contexts.append(
            Context(
                handlers=table.get("handlers", ""),
                rules=table.get("rules", ""),
                native=bool(table.get("native", False)),
                constants=None if constants is None else words_of(where, constants),
                state_bytes=integer(where, table, "state_bytes", STATE_BYTES),
                host_bytes=integer(where, table, "host_bytes", 0),
            )
        )
    for key in ("wire", "host", "address"):
        if not isinstance(document.get(key, ""), str):
            raise Trouble("invalid", f"{path}: {key} = {document[key]!r}: a text")
    return Setup(
        document.get("wire", ""),
        document.get("host"),
        document.get("address"),
        tuple(contexts),
        path.resolve().parent,
    )


def words_of(where: str, words: Any) -> bytes:
    try:
        return struct.pack(f"<{len(words)}I", *words)
    except (struct.error, TypeError):
        raise Trouble(
            "invalid", f"{where}: constants = {words!r}: a list of numbers from 0 to 2^32 - 1"
        ) from None


def image_of(setup: Setup, context: Context, scratch: Path) -> str:
    """The path of the image that a context's handlers are in; a C source is built in `scratch`."""
    name = context.handlers
    if not name:
        return ""
    suffix = ".so" if context.native else ".elf"
    path = setup.folder / name
    if path.suffix == ".c":
        target = scratch / f"{path.stem}{suffix}"
        if context.native:
            handler_build.build_native(path, target)
        else:
            handler_build.image_of(path, target)
        return str(target)
    if path.suffix in (".elf", ".so"):
        return str(path)
    shipped = data.folder("handlers") / f"{name}{suffix}"
    if not os.path.isfile(shipped):
        stems = sorted(each.stem for each in shipped.parent.glob(f"*{suffix}"))
        raise Trouble(
            "invalid",
            f"handlers '{name}': FILE.c, FILE.elf, FILE.so or a shipped handler{nearest(name, stems)}",
        )
    return str(shipped)


def station(card: Any, address: str | None) -> bytes:
    """spl_station_t of spinloom/frame.h."""
    try:
        ip = int(ipaddress.IPv4Address(address)) if address else 0
    except ValueError:
        raise Trouble("invalid", f"address '{address}': an IPv4 address, such as 10.0.0.2") from None
    return card.mac() + bytes(2) + ip.to_bytes(4, "big")


def is_file(wire: str) -> bool:
    """True if the wire ends by itself. Nobody finds such a NIC by its name."""
    while wire.startswith("record:"):
        wire = wire.partition(",")[2]
    return wire.startswith(("pcap:", "replay:"))


def serve(card: Any, name: str | None) -> str:
    """Lets programs and tools find the NIC by this name, or by the first spinloomN that is free."""
    if name:
        card.serve(name)
        return name
    for number in range(NAMES_TRIED):
        try:
            card.serve(f"spinloom{number}")
            return f"spinloom{number}"
        except Trouble as trouble:
            if trouble.code != "invalid" or number == NAMES_TRIED - 1:
                raise
    raise AssertionError("a name was served or refused")


def start(setup: Setup, scratch: Path, patience_s: float, on_open: Callable[[Any], None]) -> Any:
    """The engine's Card, with contexts that are active. `opened` gets it before a handler runs."""
    if not setup.wire:
        raise Trouble("invalid", f"a NIC needs a wire: {WIRES}")
    if is_file(setup.wire) and not setup.contexts and not setup.host:
        raise Trouble(
            "invalid", "a NIC without handlers and without a host does nothing with a file (--handlers)"
        )
    engine = core.load()
    images = [image_of(setup, context, scratch) for context in setup.contexts]
    rules = [rules_in(engine, setup, context) for context in setup.contexts]
    card = engine.Card(setup.wire, setup.host, max(4, len(setup.contexts)), patience_s)
    on_open(card)
    if is_file(setup.wire):
        card.print_lines(LINES_SHOWN)
    for number, (context, image) in enumerate(zip(setup.contexts, images, strict=True)):
        constants = station(card, setup.address) if context.constants is None else context.constants
        card.install(number, image, constants, b"", context.state_bytes, context.host_bytes)
        if card.initialises(number):
            card.initialise(number)
        card.activate(number, True)
    card.configure(rules)
    return card


def paired_contexts(handlers: tuple[str, ...], rules: tuple[str, ...], native: bool) -> tuple[Context, ...]:
    """Each handlers with its rules, or one for all rules."""
    if handlers and not rules:
        raise Trouble("invalid", f"--handlers {handlers[0]} needs --rules: which frames are for them")
    if len(handlers) not in (1, len(rules)) and (handlers or rules):
        raise Trouble(
            "invalid",
            f"{len(handlers)} --handlers and {len(rules)} --rules: one --rules for each --handlers, in "
            "the same order, or one --handlers for all",
        )
    each = handlers * len(rules) if len(handlers) == 1 else handlers
    return tuple(Context(name, rule, native) for name, rule in zip(each, rules, strict=True))


def described(context: Context) -> str:
    rules = context.rules if isinstance(context.rules, str) else "own rules"
    return f"{Path(context.handlers).name or 'host memory'} ({rules})"


def with_options(setup: Setup, **options: Any) -> Setup:
    """Returns the file's setup; options that the command line gives replace those of the file."""
    return replace(setup, **{key: value for key, value in options.items() if value})
