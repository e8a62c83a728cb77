"""The exception that every function of Spinloom raises where a user can mend the trouble.

    try:
        packed = face.pack(grid)
    except Trouble as trouble:
        print(trouble.code, trouble.message)

Trouble with what was passed is a Refusal, which is also a ValueError: a program that knows nothing of
Spinloom catches it as it catches those of NumPy.
"""

from __future__ import annotations

from spinloom.common.errors import Refusal, Trouble

__all__ = ["Refusal", "Trouble"]
