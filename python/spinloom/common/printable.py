r"""Text from outside as a terminal or a page may show it.

Contract: printable() leaves letters, blanks, tabs and the ends of lines as they are. What a terminal or a
browser would obey or hide stands there as Python writes it in a string: control characters and escapes
(\x1b), bytes that are no UTF-8 (\xff, which Python reads as surrogates), halves of surrogate pairs,
characters that change the direction of text (\u202e) and those without width. A text that went through it
once stays the same. src/base/printable.cpp is the same for the engine; a test compares the two.
"""

from __future__ import annotations

import html as pages
import re

ESCAPED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f"
    "\ufeff\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def printable(text: str) -> str:
    return text if text.isascii() and text.isprintable() else ESCAPED.sub(written, text)


def written(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def html(text: str) -> str:
    """For a page."""
    return pages.escape(printable(text))
