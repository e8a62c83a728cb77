"""`spinloom nic read` and its like: registers, memory and handlers' output of a running NIC."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import click

from spinloom.common import output
from spinloom.common.errors import Trouble, nearest
from spinloom.ethernet import nic_control
from spinloom.ethernet.nic_control import Character, Entry, Nic
from spinloom.nics import fpspin_registers
from spinloom.verbs import completion
from spinloom.verbs.options import form_options

PAUSE_S = 0.05  # --follow looks again after so long


def running_nic(function: Callable) -> Callable:
    """--name and --socket as the argument `path`, the control socket of a NIC that runs."""

    @functools.wraps(function)
    def with_path(*arguments: Any, name: str, path: Path | None, **options: Any) -> Any:
        return function(*arguments, path=path or nic_control.socket_path(name), **options)

    decorated = click.option(
        "--socket",
        "path",
        type=click.Path(path_type=Path),
        help="Its socket; without it spinloom-NAME.control in XDG_RUNTIME_DIR or /tmp/spinloom-USER.",
    )(with_path)
    return click.option("--name", default="spinloom0", show_default=True, help="The NIC's name.")(decorated)


def known_paths() -> list[str]:
    """The registers of the board's shape; completion in a shell needs no NIC."""
    registers = fpspin_registers.REGISTERS.values()
    return [f"{register.path}/{i}" for register in registers for i in range(register.count)]


def number_of(text: str, description: str) -> int:
    value = nic_control.number(text)
    if value is None or value < 0:
        raise Trouble("invalid", f"{description} '{text}': a number, such as 12 or 0x1c000000")
    return value


@click.command(epilog="Example: spinloom nic read her_meta/ph_addr/0 4")
@click.argument("register", metavar="NAME|ADDRESS", shell_complete=completion.of(known_paths))
@click.argument("count", type=click.IntRange(1, nic_control.WORDS_MAX), default=1)
@form_options
@running_nic
def read(path: Path, register: str, count: int, form: str) -> None:
    """Print COUNT registers of a running NIC, from one on.

    A register is named by its path, such as me/idx/3, or its address, such as 0x2020. Reading cl/fifo takes a
    character out.
    """
    with Nic(path) as nic:
        registers = nic.registers()
        first = nic_control.resolve(register, registers)
        values = nic.read(first.address, count)
    names = list(registers)
    start = names.index(first.path)
    rows = [
        {"register": name, "value": value, "hexadecimal": f"{value:#010x}"}
        for name, value in zip(names[start:], values, strict=False)
    ]
    emit(rows, form)


def emit(rows: list[dict], form: str, foldable: frozenset[str] = frozenset()) -> None:
    columns = list(rows[0])
    numeric = {name for name in columns if isinstance(rows[0][name], int)}
    cells = [["" if cell is None else str(cell) for cell in row.values()] for row in rows]
    output.emit(rows, form, lambda: output.table(columns, cells, numeric=numeric, foldable=foldable))


@click.command(epilog="Example: spinloom nic write me/valid 1")
@click.argument("register", metavar="NAME|ADDRESS", shell_complete=completion.of(known_paths))
@click.argument("value")
@running_nic
def write(path: Path, register: str, value: str) -> None:
    """Write VALUE to a register of a running NIC.

    The NIC says why where it refuses. A register is named by its path, such as me/idx/3, or its address, such
    as 0x2020.
    """
    wanted = number_of(value, "value")
    with Nic(path) as nic:
        nic.write(nic_control.resolve(register, nic.registers()).address, wanted)


@click.command(epilog="Examples: spinloom nic memory 0x1c000000 --count 8; spinloom nic memory 0x1c000000 7")
@click.argument("address")
@click.argument("value", required=False)
@click.option(
    "--count", metavar="N", type=click.IntRange(1, nic_control.WORDS_MAX), help="How many words to print."
)
@running_nic
def memory(path: Path, address: str, value: str | None, count: int | None) -> None:
    """Print or write 64-bit words of a running NIC's memory.

    Without VALUE the words from ADDRESS on are printed.
    """
    start = number_of(address, "address")
    if value is not None and count is not None:
        raise Trouble("invalid", "a VALUE and --count: print or write, one at a time")
    with Nic(path) as nic:
        if value is not None:
            nic.write_memory(start, [number_of(value, "value")])
            return
        for place, word in enumerate(nic.read_memory(start, count or 1)):
            output.echo(f"{start + 8 * place:#x}: {word:016x}")


@click.command(name="list", epilog="Example: spinloom nic list her_meta")
@click.argument("group", required=False, shell_complete=completion.of(lambda: fpspin_registers.GROUPS))
@form_options
@running_nic
def list_registers(path: Path, group: str | None, form: str) -> None:
    """List the control registers of a running NIC.

    Each, or each of one GROUP, has its value, its reset value and who may write it.
    """
    with Nic(path) as nic:
        registers = nic.registers()
    groups = dict.fromkeys(name.partition("/")[0] for name in registers)
    if group is not None and group not in groups:
        raise Trouble("invalid", f"no group '{group}'{nearest(group, groups)}")
    at = {entry.address: name for name, entry in registers.items()}
    shown = [entry for entry in registers.values() if group in (None, entry.path.partition("/")[0])]
    emit([row_of(entry, at) for entry in shown], form, frozenset({"meaning"}))


def row_of(entry: Entry, at: dict[int, str]) -> dict:
    register = fpspin_registers.REGISTERS.get(entry.path.rpartition("/")[0])
    return {
        "register": entry.path,
        "address": f"{entry.address:#06x}",
        "value": entry.value,
        "reset": entry.reset,
        "access": entry.access,
        "closed by": at.get(entry.guard, "") if entry.guard is not None else "",
        "meaning": register.about if register else "",
    }


@click.command(epilog="Example: spinloom nic status --name spinloom1")
@running_nic
def status(path: Path) -> None:
    """Say which rules and contexts of a running NIC are in force."""
    with Nic(path) as nic:
        output.echo(nic.status(), nl=False)


def read_core(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """'1.3' as (1, 3)."""
    if text is None:
        return None
    cluster, _, core = text.partition(".")
    if not (cluster.isdecimal() and core.isdecimal()):
        raise Trouble("invalid", f"--core {text}: accepted form: CLUSTER.CORE, such as 1.3")
    return int(cluster), int(core)


@click.command(epilog="Example: spinloom nic stdout --follow --split logs")
@click.option("--follow", is_flag=True, help="Wait for more until interrupted.")
@click.option(
    "--core", callback=read_core, metavar="CLUSTER.CORE", help="Only what this core printed, as it is."
)
@click.option(
    "--split",
    type=click.Path(file_okay=False, path_type=Path),
    help="Append what each core printed to DIR/pspin-stdout-CLUSTER.CORE.log, too.",
)
@running_nic
def stdout(path: Path, follow: bool, core: tuple[int, int] | None, split: Path | None) -> None:
    """Print what handlers on a running NIC have said.

    It is taken out of the NIC; each line stands behind its cluster and core.
    """
    sinks: list[Sink] = [Only(*core) if core else Lines()]
    if split:
        sinks.append(Files(split))
    with Nic(path) as nic:
        try:
            while True:
                deliver(nic.pop_stdout(), sinks)
                if not follow:
                    break
                time.sleep(PAUSE_S)
        finally:
            for sink in sinks:
                sink.close()


class Sink(Protocol):
    """The receiver of characters: one by one, then flush() for those who read, and close() at the end."""

    def __call__(self, character: Character) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


def deliver(characters: Iterable[Character], sinks: list[Sink]) -> None:
    for character in characters:
        for sink in sinks:
            sink(character)
    for sink in sinks:
        sink.flush()


class Only:
    """One core's characters, as they are, except on a terminal."""

    def __init__(self, cluster: int, core: int) -> None:
        self.wanted = (cluster, core)
        self.printed = bytearray()

    def __call__(self, character: Character) -> None:
        if (character.cluster, character.core) == self.wanted:
            self.printed.append(character.byte)

    def flush(self) -> None:
        output.echo(bytes(self.printed), nl=False)
        self.printed.clear()

    def close(self) -> None:
        self.flush()


class Lines:
    """Whole lines of every core, each after 'CLUSTER.CORE: '; what is no whole line comes at the end."""

    def __init__(self) -> None:
        self.begun: dict[tuple[int, int], bytearray] = {}

    def __call__(self, character: Character) -> None:
        who = (character.cluster, character.core)
        line = self.begun.setdefault(who, bytearray())
        if character.byte == ord("\n"):
            self.say(*who)
        else:
            line.append(character.byte)

    def say(self, cluster: int, core: int) -> None:
        text = self.begun.pop((cluster, core)).decode(errors="backslashreplace")
        output.echo(f"{cluster}.{core}: {text}")

    def flush(self) -> None:
        sys.stdout.flush()

    def close(self) -> None:
        for who in sorted(self.begun):
            self.say(*who)


class Files:
    """A file for each core that prints, added to if it is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[tuple[int, int], BinaryIO] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Trouble("environment", f"--split {folder} cannot be written: {error.strerror}") from None

    def __call__(self, character: Character) -> None:
        who = (character.cluster, character.core)
        if who not in self.files:
            path = self.folder / f"pspin-stdout-{who[0]}.{who[1]}.log"
            try:
                self.files[who] = path.open("ab")
            except OSError as error:
                raise Trouble("environment", f"{path} cannot be written: {error.strerror}") from None
        self.files[who].write(bytes([character.byte]))

    def flush(self) -> None:
        for file in self.files.values():
            file.flush()

    def close(self) -> None:
        for file in self.files.values():
            file.close()
