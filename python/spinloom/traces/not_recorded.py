"""Names that hold no recorded program, though a user gave them for one: what they are, and what to do.

Contract: refuse() raises Trouble('invalid') with the sentence.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from spinloom.common.errors import Trouble
from spinloom.traces import foreign, live_trace, text_traces


def refuse(name: str | Path) -> NoReturn:
    if text_traces.is_folder_of_them(Path(name)):
        raise Trouble(
            "invalid", f"{name} holds text traces: 'spinloom trace {name} --import DIR' imports them"
        )
    foreign.refuse(Path(name))
    if live_trace.files_of(str(name)) or live_trace.files_of(str(name), ".state"):
        raise Trouble("invalid", f"{name} is a live job: 'spinloom trace --live {name}' shows it")
    if not os.path.lexists(name):
        raise Trouble("invalid", f"there is no {name}: 'spinloom record -o {name}' makes a recorded program")
    raise Trouble(
        "invalid", f"{name} holds no recorded program (rank-0.trace): 'spinloom record -o DIR' makes one"
    )
