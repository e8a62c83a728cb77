"""The tool's side of docs/formats/nic-control.md: asks a NIC that runs as a process, over its socket."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinloom.common import private
from spinloom.common.errors import EXIT_OF_CODE, Trouble, nearest

VERSION = 1
REQUEST = struct.Struct("<4sHHQII")
ANSWER = struct.Struct("<4sHHHHI")
ENTRY = struct.Struct("<IIIIBB46s")
READ_REGISTERS, WRITE_REGISTER, READ_MEMORY, WRITE_MEMORY, POP_STDOUT, LIST_REGISTERS, STATUS = range(1, 8)
WORDS_MAX, ENTRIES_MAX = 4096, 512
ANSWER_BYTES_MAX = 1 << 17
NO_GUARD = 0xFFFFFFFF
CREDENTIALS = struct.Struct("3i")  # process, user, group of who listens
ACCESS = ("kept", "told", "queue", "command")
CODES = ("", *EXIT_OF_CODE)  # the engine's, in its order (src/base/result.hpp)
ANSWER_S = 10  # a NIC answers at once; longer means that it hangs


def socket_path(nic: str) -> Path:
    return private.runtime_folder() / f"spinloom-{nic}.control"


@dataclass(frozen=True)
class Entry:
    """A register as the NIC lists it."""

    path: str
    address: int
    value: int
    reset: int
    access: str
    width: int
    guard: int | None  # the address of the register that must be 0 for writing


@dataclass(frozen=True)
class Character:
    cluster: int
    core: int
    byte: int


class Nic:
    """A connection to a NIC that this user runs. Trouble where it refuses, does not answer or answers
    nonsense, and where somebody else listens there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(ANSWER_S)
        try:
            owner = path.lstat()
            if stat.S_ISLNK(owner.st_mode):
                raise Trouble("environment", f"{path} is a link, which may lead anywhere: it is not asked")
            check_owner(path, owner.st_uid, "belongs to")
            self.socket.connect(str(path))
            credentials = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            check_owner(path, CREDENTIALS.unpack(credentials)[1], "is answered by")
        except OSError as error:
            self.socket.close()
            raise Trouble(
                "environment",
                f"no NIC answers at {path}: {error.strerror or error}; --socket or --name names another",
            ) from None
        except Trouble:
            self.socket.close()
            raise

    def __enter__(self) -> Nic:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(
        self, kind: int, address: int = 0, count: int = 0, words: Sequence[int] = ()
    ) -> tuple[int, int, bytes]:
        """The numbers of entries and of other things in the answer, and its body."""
        if not 0 <= address < 1 << 64 or any(not 0 <= word < 1 << 64 for word in words):
            raise Trouble("invalid", f"address {address:#x}, values {list(words)}: each has 64 bits at most")
        request = REQUEST.pack(b"SPL?", VERSION, kind, address, count, len(words))
        try:
            self.socket.send(request + struct.pack(f"<{len(words)}Q", *words))
            answer = self.socket.recv(ANSWER_BYTES_MAX)
        except TimeoutError:
            raise Trouble("environment", f"the NIC at {self.path} has not answered in {ANSWER_S} s") from None
        except OSError as error:
            raise Trouble("environment", f"the NIC at {self.path} has gone: {error.strerror}") from None
        return self.read_answer(kind, answer)

    def read_answer(self, kind: int, answer: bytes) -> tuple[int, int, bytes]:
        if not answer:
            raise Trouble("environment", f"the NIC at {self.path} has gone")
        if len(answer) < ANSWER.size or answer[:4] != b"SPL!":
            raise Trouble("environment", f"{self.path} does not speak the protocol of a NIC")
        _, version, answered_kind, code, entries, count = ANSWER.unpack_from(answer)
        body = answer[ANSWER.size :]
        if code:
            raise Trouble(CODES[code] if code < len(CODES) else "fault", text_of(body))
        expected = entries * ENTRY.size + count * (1 if kind == STATUS else 8)
        if version != VERSION or answered_kind != kind or len(body) != expected:
            raise self.nonsense()
        return entries, count, body

    def nonsense(self) -> Trouble:
        return Trouble("environment", f"{self.path} answers something that was not asked")

    def words(self, kind: int, address: int, count: int) -> list[int]:
        """Reads `count` words; with POP_STDOUT fewer where the NIC has printed less."""
        entries, count_read, body = self.ask(kind, address, count)
        if entries or count_read > count or (count_read < count and kind != POP_STDOUT):
            raise self.nonsense()
        return list(struct.unpack(f"<{count_read}Q", body))

    def registers(self) -> dict[str, Entry]:
        """All registers by their paths; a queue's value is 0, nothing is taken out of it."""
        by_path: dict[str, Entry] = {}
        while True:
            before = len(by_path)
            entries, others, body = self.ask(LIST_REGISTERS, before, ENTRIES_MAX)
            if others:
                raise self.nonsense()
            for address, value, reset, guard, access, width, path in ENTRY.iter_unpack(body):
                name = text_of(path.rstrip(b"\0"))
                if access >= len(ACCESS):
                    raise Trouble(
                        "environment", f"{self.path} lists {name} with access {access}, which is unknown here"
                    )
                guarded = None if guard == NO_GUARD else guard
                by_path[name] = Entry(name, address, value, reset, ACCESS[access], width, guarded)
            if not by_path or len(by_path) != before + entries:
                raise self.nonsense()  # no register, or one twice
            if entries < ENTRIES_MAX:
                return by_path

    def read(self, address: int, count: int = 1) -> list[int]:
        return self.words(READ_REGISTERS, address, count)

    def write(self, address: int, value: int) -> None:
        self.ask(WRITE_REGISTER, address, words=[value])

    def read_memory(self, address: int, count: int = 1) -> list[int]:
        return self.words(READ_MEMORY, address, count)

    def write_memory(self, address: int, words: Sequence[int]) -> None:
        self.ask(WRITE_MEMORY, address, words=words)

    def pop_stdout(self) -> Iterator[Character]:
        """Returns what handlers have printed until now."""
        while words := self.words(POP_STDOUT, 0, WORDS_MAX):
            for word in words:
                yield Character(word >> 16 & 0xFF, word >> 8 & 0xFF, word & 0xFF)

    def status(self) -> str:
        entries, _, body = self.ask(STATUS)
        if entries:
            raise self.nonsense()
        return text_of(body)


def check_owner(path: Path, owner: int, relation: str) -> None:
    if not private.is_this_user(owner):
        raise Trouble(
            "environment", f"{path} {relation} user {owner}, not this one ({os.geteuid()}): it is not asked"
        )


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")


def number(text: str) -> int | None:
    """A number in decimal, 0x or 0b; None if the text is none."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def resolve(text: str, registers: dict[str, Entry]) -> Entry:
    """The register of an address or a path; its index may be left out where there is one of that name."""
    address = number(text)
    if address is not None:
        for entry in registers.values():
            if entry.address == address:
                return entry
        raise Trouble("invalid", f"no register at address {text}; 'spinloom nic list' prints them")
    if text in registers:
        return registers[text]
    of_that_name = [path for path in registers if path.rpartition("/")[0] == text]
    if len(of_that_name) == 1:
        return registers[of_that_name[0]]
    if of_that_name:
        first, last = of_that_name[0], of_that_name[-1]
        raise Trouble(
            "invalid", f"'{text}' is {len(of_that_name)} registers; name one, from {first} to {last}"
        )
    names = dict.fromkeys(path.rpartition("/")[0] for path in registers)
    candidates = registers if text.rpartition("/")[0] in names else names
    raise Trouble("invalid", f"no register '{text}'{nearest(text, candidates)}")
