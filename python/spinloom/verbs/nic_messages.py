"""`spinloom nic send` and `nic receive`: a file as a message over the sPIN lightweight messaging protocol."""

from __future__ import annotations

import hashlib
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from spinloom import slmp as protocol
from spinloom.common import files, output, units
from spinloom.common.errors import Trouble
from spinloom.common.progress import progress
from spinloom.ethernet import nic_receive
from spinloom.verbs.options import form_options, quiet_option

KIB = 1024
NUMBER_IDS = 1 << 32
SILENCE_S = 1.0  # a sender that has waited so long for an answer says so


def read_time(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """The time in ps; None if there is none."""
    if text is None:
        return None
    try:
        return units.parse_time(text)
    except ValueError as error:
        raise Trouble("invalid", f"{parameter.opts[0]} {text}: {error}") from None


def read_bytes(ctx: click.Context, parameter: click.Parameter, text: str) -> int:
    try:
        return units.parse_bytes(text)
    except ValueError as error:
        raise Trouble("invalid", f"{parameter.opts[0]} {text}: {error}") from None


def show(row: dict[str, Any], form: str) -> None:
    """One row: as a table, a line for each field."""

    def table() -> Any:
        fields = dict(row)
        seconds = fields.pop("host_seconds")
        fields["bytes"] = f"{row['bytes']:,}"
        fields["host time"] = units.format_time(round(seconds * units.PS_PER_SECOND))
        rate = fields.pop("host_gbit_per_s")
        fields["throughput"] = f"{rate:.4g} Gbit/s of host time" if rate is not None else "-"
        return output.table(["what", "value"], [[name, str(value)] for name, value in fields.items()])

    output.emit([row], form, table)


class Silence:
    """Says once that nobody has answered for a moment; called with the bytes that are through."""

    def __init__(self, where: tuple[str, int]) -> None:
        self.where = where
        self.timer = threading.Timer(SILENCE_S, self.say)
        self.timer.daemon = True

    def __call__(self, through: int) -> None:
        if through > 0:
            self.timer.cancel()

    def __enter__(self) -> Silence:
        self.timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()

    def say(self) -> None:
        name, port = self.where
        output.say(
            f"nothing answers at port {port} of {name} yet: does a NIC with handlers run there, or "
            "'spinloom nic receive'? Packets are sent again; Ctrl-C ends"
        )


class Refusals:
    """Says once that packets find no room."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.said = False

    def __call__(self, counts: dict[str, int]) -> None:
        if counts["refused"] > 0 and not self.said:
            self.said = True
            output.say(
                f"packets find no room in {self.limit:,} bytes and are not acknowledged; for a larger "
                "message end this, and give a larger --limit"
            )


def rate_of(size: int, seconds: float) -> float | None:
    return size * 8 / seconds / 1e9 if seconds > 0 else None


@click.command(
    epilog="Examples: spinloom nic send data.bin nic0 --window 256 --workers 2; "
    "spinloom nic send data.bin 10.0.0.2:9330 --mode none --gap 5us"
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("place", metavar="HOST[:PORT]")
@click.option(
    "--window",
    metavar="N",
    type=click.IntRange(0, 1 << 16),
    default=64,
    show_default=True,
    help="Packets under way, of all threads; 0: only the first and the last are acknowledged.",
)
@click.option(
    "--align",
    metavar="BYTES",
    default="64",
    show_default=True,
    callback=read_bytes,
    help="Packets carry the largest multiple of this within 1462 B.",
)
@click.option(
    "--mode",
    type=click.Choice(protocol.MODES),
    help="Which packets are acknowledged: none; the first and the last of the message; each (segment).",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Threads that send, each a share of the message.",
)
@click.option(
    "--gap", metavar="TIME", callback=read_time, help="From one packet of a thread to its next: 5us."
)
@click.option(
    "--message-id",
    metavar="N",
    type=click.IntRange(0, NUMBER_IDS - 1),
    help="The first four bytes of the SHA-256 otherwise.",
)
@click.option(
    "--tries",
    metavar="N",
    type=click.IntRange(0, 1000),
    help="A packet leaves so often before the message has failed (12 otherwise); 0: never again.",
)
@click.option(
    "--silence",
    metavar="TIME",
    callback=read_time,
    help="With --tries 0: the wait for an acknowledgement, 1s otherwise; twice as long at the end.",
)
@click.option("--fixed-window", is_flag=True, help="The window neither begins small nor adapts to losses.")
@click.option(
    "--reports",
    is_flag=True,
    help="Ask the receiver how many packets it has room for, and send no more.",
)
@click.option(
    "--polling",
    type=click.Choice(protocol.POLLINGS),
    help="How threads wait: asleep; looking every 100 us as FPsPIN's library; looking all the time.",
)
@click.option(
    "--as-original", is_flag=True, help="Send as FPsPIN does: --tries 0 --fixed-window --polling original."
)
@quiet_option
@form_options
def send(
    path: Path,
    place: str,
    window: int,
    align: int,
    mode: str | None,
    workers: int,
    gap: int | None,
    message_id: int | None,
    tries: int | None,
    silence: int | None,
    fixed_window: bool,
    reports: bool,
    polling: str | None,
    as_original: bool,
    quiet: bool,
    form: str,
) -> None:
    """Send a file as one message over UDP.

    A NIC with handlers takes it, or 'spinloom nic receive'. The protocol is SLMP, the sPIN lightweight
    messaging protocol, at port 9330; a message has 4 GiB at most. Both ends print the SHA-256 of the bytes.
    """
    where = protocol.parse_place(place, "localhost")
    options = {"as_original": int(as_original)}
    if fixed_window:
        options["fixed_window"] = 1
    if reports:
        options["reports"] = 1
    if mode is not None:
        options["mode"] = protocol.MODES.index(mode)
    if polling is not None:
        options["polling"] = protocol.POLLINGS.index(polling)
    if tries is not None:
        options["tries"] = tries
    if silence is not None:
        options["silence_ms"] = -(-silence // units.TIME_PS["ms"])
    content = protocol.read(path)
    digest = hashlib.sha256(content)
    if message_id is None:
        message_id = int.from_bytes(digest.digest()[:4], "big")
    gap_us = -(-(gap or 0) // 10**6)
    size = len(content)

    def reached(through: int) -> None:
        silence(through)
        bar.reach(through // KIB)

    with progress(size // KIB, quiet, "sending, KiB") as bar, Silence(where) as silence:
        sent = protocol.send(
            content,
            where,
            message_id,
            window,
            align,
            gap_us,
            workers,
            options,
            reached,
        )
    row = {
        "file": str(path),
        "to": f"{where[0]}:{where[1]}",
        "message": message_id,
        "bytes": size,
        "sha256": digest.hexdigest(),
        "packets": sent.packets,
        "sent again": sent.retransmitted,
        "acknowledged": sent.acknowledged,
        "host_seconds": sent.seconds,
        "host_gbit_per_s": rate_of(size, sent.seconds),
    }
    show(row, form)


def receive_on_nic(
    path: Path, nic: str, place: str, limit: int, seconds: float | None, linger: int, quiet: bool, form: str
) -> None:
    name, port = protocol.parse_place(place, "0.0.0.0")
    address = int.from_bytes(struct.pack("=I", protocol.resolve(name)), "big")

    def land(message: nic_receive.ReceivedMessage) -> None:
        files.write(path, message.content)
        row = {
            "file": str(path),
            "nic": nic,
            "message": message.message_id,
            "bytes": len(message.content),
            "sha256": hashlib.sha256(message.content).hexdigest(),
            "bytes a packet": message.segment,
            "repeated": message.repeated,
            "malformed": message.wrong,
            "refused": message.refused,
        }
        output.emit(
            [row],
            form,
            lambda: output.table(["what", "value"], [[key, str(value)] for key, value in row.items()]),
        )
        sys.stdout.flush()

    def ready() -> None:
        if not quiet:
            output.say(f"waiting for a message at port {port} of {nic}; Ctrl-C ends")

    linger_s = linger / units.PS_PER_SECOND
    if not nic_receive.receive(nic, (address, port), limit, seconds, linger_s, land, ready):
        raise Trouble("stalled", f"no message has come to port {port} of {nic} in {seconds:g} s")


@click.command(
    epilog="Examples: spinloom nic receive copy.bin; spinloom nic receive copy.bin --listen 127.0.0.1:9331"
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--listen",
    "place",
    metavar="[ADDRESS][:PORT]",
    default=":9330",
    show_default=True,
    help="Where to listen, all addresses of this host otherwise; port 0: a free one.",
)
@click.option(
    "--limit",
    metavar="BYTES",
    default="1GiB",
    show_default=True,
    callback=read_bytes,
    help="Memory for what is not whole.",
)
@click.option(
    "--name",
    help="The handlers of the NIC of this name ('spinloom nic run') receive it, not this process.",
)
@click.option(
    "--seconds", metavar="N", type=click.FloatRange(0, min_open=True), help="Give up after this time."
)
@click.option(
    "--linger",
    metavar="TIME",
    default="2s",
    show_default=True,
    callback=read_time,
    help="Answer repeats until none has come for so long: the last answers may have been lost.",
)
@click.option("--force", is_flag=True, help="Replace FILE.")
@quiet_option
@form_options
def receive(
    path: Path,
    place: str,
    limit: int,
    name: str | None,
    seconds: float | None,
    linger: int,
    force: bool,
    quiet: bool,
    form: str,
) -> None:
    """Receive a message of 'spinloom nic send' as a file.

    This process receives it, or with --name the handlers of a NIC that runs.
    """
    if path.is_file() and not force:
        raise Trouble("invalid", f"{path} is there already: name another file, or replace it with --force")
    if name is not None:
        return receive_on_nic(path, name, place, limit, seconds, linger, quiet, form)
    with protocol.Receiver(protocol.parse_place(place, "0.0.0.0"), limit) as receiver:
        if not quiet:
            output.say(f"waiting for a message at port {receiver.port}; Ctrl-C ends")
        received = receiver.receive(seconds, Refusals(limit))
        with ThreadPoolExecutor(1) as executor:  # a disk or a sum may take longer than the sender waits
            answering = executor.submit(receiver.answer, linger / units.PS_PER_SECOND)
            size = len(received.content)
            row = {
                "file": str(path),
                "from": received.source,
                "message": received.message_id,
                "bytes": size,
                "sha256": hashlib.sha256(received.content).hexdigest(),
                "packets": received.counts["packets"],
                "repeated": received.counts["repeated"],
                "malformed": received.counts["malformed"],
                "refused": received.counts["refused"],
                "host_seconds": received.seconds,
                "host_gbit_per_s": rate_of(size, received.seconds),
            }
            files.write(path, received.content)
            show(row, form)
            sys.stdout.flush()
            answering.result()
