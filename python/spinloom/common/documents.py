"""TOML and JSON files that users give, or may have changed: one reader, with limits.

Contract: toml() and json() return what a file says. A file that is longer than its limit, nests deeper than
DEPTH_MAX, or is no such document is a Trouble('invalid') with the file's name and the reason; so is a name
that no file can have, a folder, and a file that may not be read. Where there is no such file, it is
MissingFile, which is a Trouble, too. parsed_toml() and parsed_json() do the same for a text, and raise
ValueError.
"""

from __future__ import annotations

import json as json_of_python
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spinloom.common.errors import Refusal, Trouble

DEPTH_MAX = 64  # tables and lists within each other
TOO_DEEP = f"its tables and lists nest deeper than {DEPTH_MAX}"
QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
NO_KEY = re.compile(r"[=\[\]{},#]")
TOML_BYTES_MAX, JSON_BYTES_MAX = 8 << 20, 256 << 20


class MissingFile(Refusal):
    """There is no such file."""


def toml(path: Path, about: str = "") -> dict[str, Any]:
    """`about` stands before the file's name in errors: 'NIC profile '."""
    return document(path, about, TOML_BYTES_MAX, parsed_toml)


def json(path: Path, about: str = "") -> Any:
    return document(path, about, JSON_BYTES_MAX, parsed_json)


def document(path: Path, about: str, bytes_max: int, parse: Callable[[str], Any]) -> Any:
    try:
        with path.open("rb") as file:
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise ValueError(f"it has more than {bytes_max >> 20} MiB")
        return parse(content.decode())
    except FileNotFoundError as error:
        raise MissingFile("invalid", f"{about}{path} cannot be read: {error.strerror}") from None
    except OSError as error:
        raise Trouble("invalid", f"{about}{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # an error of the document, or a name with a NUL
        name = str(path).replace("\0", "\\0")
        raise Trouble("invalid", f"{about}{name} cannot be read: {error}") from None


def parsed_toml(text: str) -> dict[str, Any]:
    for line in text.splitlines():
        if line.count(".") > DEPTH_MAX and dotted(line) > DEPTH_MAX:
            raise ValueError(TOO_DEEP)  # tomllib's time and memory grow with the square of a key's parts
    return shallow(lambda: tomllib.loads(text, parse_float=finite))


def dotted(line: str) -> int:
    """The most dots in what may be a key: outside of quotes, between signs that end one."""
    bare = QUOTED.sub("", "".join(line.split()))
    return max(part.count(".") for part in NO_KEY.split(bare))


def parsed_json(text: str) -> Any:
    value = shallow(lambda: json_of_python.loads(text, parse_float=finite, parse_constant=finite))
    if "\\ud" in text or "\\uD" in text:
        json_of_python.dumps(value, ensure_ascii=False).encode()  # half a character is a UnicodeEncodeError
    return value


def finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a number of finite size")
    return value


def shallow(parse: Callable[[], Any]) -> Any:
    """Returns what parse() returns, unless that nests too deep for whoever walks over it."""
    try:
        value = parse()
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [node for node in level if isinstance(node, dict | list)]
        if not level:
            return value
        level = [node for each in level for node in (each.values() if isinstance(each, dict) else each)]
    raise ValueError(TOO_DEEP)
