"""The exception that every function of Spinloom raises where a user can mend the trouble."""

from __future__ import annotations

from spinloom.common.errors import Trouble as Trouble
