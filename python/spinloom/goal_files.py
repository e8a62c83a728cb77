"""Files of schedules: which form a name asks for, and what that form does not hold.

Contract: write() writes FILE.goal as text, FILE.bin in the binary form of LogGOPSim of 2023 and FILE.spl in
our own form; it says what is dropped and what others cannot read, and raises Trouble where a form cannot say
what the schedule holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom import core, files, output
from spinloom.errors import Trouble

FORMS = "FILE.goal for text, FILE.bin for LogGOPSim's binary form, FILE.spl for our own, which loses nothing."


def check_name(path: Path) -> None:
    if path.suffix not in (".goal", ".bin", ".spl"):
        raise Trouble(
            "invalid",
            f"{path}: end the name in .goal for text, .bin for the binary form or .spl for our own form",
        )


def write(schedule: Any, path: Path) -> None:
    check_name(path)
    try:
        if path.suffix == ".spl":
            content = schedule.own()
        else:
            content = schedule.text() if path.suffix == ".goal" else schedule.binary()
    except core.load().SpinloomError as error:
        raise Trouble(error.code, f"{path}: {error.message}") from None
    files.write(path, content)
    if path.suffix == ".spl":
        return
    words = schedule.words()
    if "layout" in words:
        ends = schedule.count()["layout_ends"]
        output.say(f"{path} does not hold the layouts of {ends:,} ends of transfers; FILE.spl does")
    ours = [word for word in words if word != "layout"]
    if ours:
        output.say(f"{path} has words that LogGOPSim does not know: {', '.join(ours)}")
