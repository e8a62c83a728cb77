"""Columns of whole numbers as text: differences of neighbours, zigzag, seven bits a byte, base64.

Contract: life.js reads back what text_of() writes. Numbers are below 2^52, so JavaScript has them exactly.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable


def text_of(numbers: Iterable[int]) -> str:
    content = bytearray()
    last = 0
    for number in numbers:
        step, last = number - last, number
        step = step * 2 if step >= 0 else -step * 2 - 1
        while step >= 128:
            content.append(step % 128 + 128)
            step //= 128
        content.append(step)
    return base64.b64encode(content).decode("ascii")
