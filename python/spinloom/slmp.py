"""Messages over SLMP by libspinloom_slmp, the library of include/spinloom/slmp.h.

Contract: send() and receive() return when the message is through; a Trouble says why it is not. An interrupt
(Ctrl-C) ends both within a fifth of a second. Times are host time.
"""

from __future__ import annotations

import ctypes
import math
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spinloom.common import data
from spinloom.common.errors import Trouble

PORT = 9330
MESSAGE_BYTES_MAX = 1 << 32
MODES = ("none", "message", "segment")
POLLINGS = ("wait", "original", "busy")
OPTIONS = {
    name: number
    for number, name in enumerate(
        ("mode", "tries", "fixed_window", "polling", "port", "as_original", "silence_ms", "reports")
    )
}
TIMEOUT = -3
CODES = {-1: "invalid", -2: "overflow", TIMEOUT: "stalled", -4: "environment", -5: "exhausted", -7: "fault"}
PATIENCE_MS = 200  # a wait in C, after which an interrupt is seen

Progress = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


class CSocket(ctypes.Structure):
    _fields_ = (("state", ctypes.c_void_p),)


class CMessage(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("msgid", ctypes.c_uint32),
        ("port", ctypes.c_uint16),
        ("source", ctypes.c_uint32),
        ("ns", ctypes.c_uint64),
        ("owner", ctypes.c_void_p),
    )


class CSent(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("packets", "retransmitted", "acknowledged", "duplicates")
    )


class CReceived(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("packets", "repeated", "malformed", "refused", "messages")
    )


def library() -> ctypes.CDLL:
    path = data.PACKAGE / "lib/libspinloom_slmp.so.0"
    if not path.is_file():
        raise Trouble("environment", f"{path} is missing; 'make setup' in the checkout brings it")
    c_library = ctypes.CDLL(str(path))
    pointer, c_int = ctypes.c_void_p, ctypes.c_int
    c_library.slmp_last_error.restype = ctypes.c_char_p
    c_library.slmp_set.argtypes = [pointer, c_int, ctypes.c_int64]
    c_library.slmp_on_progress.argtypes = [pointer, Progress, pointer]
    c_library.slmp_sendmsg.argtypes = [pointer, ctypes.c_uint32, c_int, pointer, ctypes.c_size_t]
    c_library.slmp_listen.argtypes = [pointer, ctypes.c_uint32, c_int, ctypes.c_uint64]
    c_library.slmp_receive.argtypes = [pointer, pointer, c_int]
    for name in ("slmp_receiver_port", "slmp_receiver_close"):
        getattr(c_library, name).argtypes = [pointer]
    c_library.slmp_answer.argtypes = [pointer, c_int]
    c_library.slmp_receiver_counts.argtypes = [pointer, pointer]
    return c_library


def must(c_library: ctypes.CDLL, status: int) -> int:
    """The status, or Trouble with the sentence of this thread's last failure."""
    if status < 0:
        raise Trouble(CODES.get(status, "fault"), c_library.slmp_last_error().decode())
    return status


def counts(values: ctypes.Structure) -> dict[str, int]:
    return {field[0]: getattr(values, field[0]) for field in values._fields_}


def resolve(name: str) -> int:
    """A host's IPv4 address as the C library takes it: in network byte order."""
    try:
        address = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_DGRAM)[0][4][0]
    except (socket.gaierror, UnicodeError) as error:
        raise Trouble("environment", f"there is no IPv4 address of host '{name}': {error}") from None
    return struct.unpack("=I", socket.inet_aton(str(address)))[0]


def parse_place(text: str, host: str) -> tuple[str, int]:
    """'nic0:9331' as ('nic0', 9331); `host` where the text has none."""
    name, colon, port = text.partition(":")
    if colon and not (port.isdecimal() and int(port) <= 65535):
        raise Trouble("invalid", f"'{text}': the port behind the colon must lie from 0 to 65535")
    return name or host, int(port) if colon else PORT


def read(path: Path) -> bytes:
    """A file that fits into a message."""
    try:
        size = path.stat().st_size
        if size > MESSAGE_BYTES_MAX:
            raise Trouble(
                "overflow",
                f"{path} has {size:,} bytes: a message of SLMP has 4 GiB at most, because its offsets have "
                "four bytes; split the file",
            )
        return path.read_bytes()
    except OSError as error:
        raise Trouble("invalid", f"{path} cannot be read: {error.strerror}") from None


@dataclass(frozen=True)
class Sent:
    seconds: float
    packets: int
    retransmitted: int
    acknowledged: int
    duplicates: int


def send(
    content: bytes,
    place: tuple[str, int],
    message_id: int,
    window: int,
    align: int,
    gap_us: int,
    threads: int,
    options: dict[str, int],
    reached: Callable[[int], None],
) -> Sent:
    """`options` are those of OPTIONS; `reached` hears how many bytes are through."""
    c_library = library()
    sock = CSocket()
    stopped: list[BaseException] = []
    ended: list[tuple[int, str]] = []
    through = threading.Event()

    def report(context: int, settled: int, total: int) -> int:
        try:
            reached(settled)
        except BaseException as stop:
            stopped.append(stop)
        return len(stopped)

    def run() -> None:
        signed = message_id - (1 << 32) if message_id >= 1 << 31 else message_id
        try:
            status = c_library.slmp_sendmsg(ctypes.byref(sock), server, signed, content, len(content))
            ended.append((status, c_library.slmp_last_error().decode()))
        except BaseException as stop:
            stopped.append(stop)
        finally:
            through.set()

    called = Progress(report)  # must live as long as it may be called
    server = resolve(place[0])
    must(c_library, c_library.slmp_socket(ctypes.byref(sock), window, align, gap_us, threads))
    try:
        for name, value in {"as_original": 0, **options, "port": place[1]}.items():
            must(c_library, c_library.slmp_set(ctypes.byref(sock), OPTIONS[name], value))
        must(c_library, c_library.slmp_on_progress(ctypes.byref(sock), called, None))
        # An interrupt is seen by this thread, and not within a call of C. The library's call must end before
        # its socket does; after an interrupted join(), some versions of Python say that the thread has ended.
        sending = threading.Thread(target=run)
        began = time.perf_counter()
        sending.start()
        while not through.is_set():
            try:
                through.wait()
            except BaseException as stop:
                stopped.append(stop)
        seconds = time.perf_counter() - began
        sending.join()
        if stopped:
            raise stopped[0]
        status, sentence = ended[0]
        if status < 0:
            raise Trouble(CODES.get(status, "fault"), sentence)
        sent = CSent()
        must(c_library, c_library.slmp_last_sent(ctypes.byref(sock), ctypes.byref(sent)))
        return Sent(seconds, **counts(sent))
    finally:
        c_library.slmp_close(ctypes.byref(sock))


@dataclass(frozen=True)
class Received:
    content: bytes
    message_id: int
    source: str
    seconds: float
    counts: dict[str, int]


class Receiver:
    """A context: a port of this host that takes messages."""

    def __init__(self, place: tuple[str, int], bytes_max: int) -> None:
        self.library = library()
        self.receiver = ctypes.c_void_p()
        address = resolve(place[0])
        must(
            self.library,
            self.library.slmp_listen(ctypes.byref(self.receiver), address, place[1], bytes_max),
        )

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.slmp_receiver_close(self.receiver)

    @property
    def port(self) -> int:
        return must(self.library, self.library.slmp_receiver_port(self.receiver))

    def counts(self) -> dict[str, int]:
        values = CReceived()
        must(self.library, self.library.slmp_receiver_counts(self.receiver, ctypes.byref(values)))
        return counts(values)

    def receive(
        self, seconds: float | None, waiting: Callable[[dict[str, int]], None] = lambda counts: None
    ) -> Received:
        """The next whole message. Raises Trouble('stalled') when none has come in time.

        `waiting` hears now and then what has come so far."""
        end = None if seconds is None else time.monotonic() + seconds
        message = CMessage()
        while True:
            left_ms = PATIENCE_MS if end is None else min(PATIENCE_MS, int((end - time.monotonic()) * 1000))
            status = self.library.slmp_receive(self.receiver, ctypes.byref(message), max(left_ms, 0))
            if status != TIMEOUT:
                must(self.library, status)
                break
            waiting(self.counts())
            if left_ms <= 0:
                raise Trouble(
                    "stalled",
                    f"no message has come whole to port {self.port} within {seconds:g} s "
                    f"({self.counts()['packets']} packets have)",
                )
        content = ctypes.string_at(message.data, message.size) if message.size else b""
        source = socket.inet_ntoa(struct.pack("=I", message.source))
        received = Received(
            content, message.msgid, f"{source}:{message.port}", message.ns / 1e9, self.counts()
        )
        self.library.slmp_message_free(ctypes.byref(message))
        return received

    def answer(self, quiet_s: float) -> None:
        """Acknowledges repeats until none has come for so long, or until another message is whole."""
        before = self.counts()
        end = time.monotonic() + quiet_s
        while (left_s := end - time.monotonic()) > 0:
            quiet_ms = min(PATIENCE_MS, math.ceil(left_s * 1000))
            must(self.library, self.library.slmp_answer(self.receiver, quiet_ms))
            now = self.counts()
            if now["messages"] != before["messages"]:
                return
            if now != before:
                before, end = now, time.monotonic() + quiet_s
