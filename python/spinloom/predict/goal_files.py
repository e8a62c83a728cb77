"""Files of schedules: which form a name asks for, and what that form does not hold.

Contract: write() writes FILE.goal as text, FILE.bin in the binary form of LogGOPSim of 2023 and FILE.spl in
our own form; it says what is dropped and what others cannot read, and raises Trouble where a form cannot say
what the schedule holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spinloom.common import core, files, output
from spinloom.common.errors import Trouble

CONVERTED_MAX = 255
FORMS = "FILE.goal for text, FILE.bin for LogGOPSim's binary form, FILE.spl for our own, which loses nothing."


def check_name(path: Path) -> None:
    if path.suffix not in (".goal", ".bin", ".spl"):
        raise Trouble(
            "invalid",
            f"{path}: end the name in .goal for text, .bin for the binary form or .spl for our own form",
        )


def write(schedule: Any, path: Path) -> None:
    check_name(path)
    if path.suffix == ".spl":
        with files.replacement(path) as file:
            schedule.write_own(file.write)
        return
    try:
        content = schedule.text() if path.suffix == ".goal" else schedule.binary()
    except core.load().SpinloomError as error:
        raise Trouble(error.code, f"{path}: {error.message}") from None
    files.write(path, content)
    words = schedule.words()
    if "layout" in words:
        ends = schedule.count()["layout_ends"]
        output.say(f"{path} does not hold the layouts of {ends:,} ends of transfers; FILE.spl does")
    ours = [word for word in words if word != "layout"]
    if ours:
        output.say(f"{path} has words that LogGOPSim does not know: {', '.join(ours)}")
    for sentence in misread(schedule):
        output.say(f"{path}: {sentence}")


def misread(schedule: Any) -> list[str]:
    """Returns what LogGOPSim would take otherwise than the schedule means it."""
    edges, receivers = schedule.misread()
    counted = schedule.count()
    largest = max(counted["cpu_largest"], counted["nic_largest"])
    short = "LogGOPSim does not wait there, and its times are too short"
    sentences = []
    if edges:
        sentences.append(f"{edges:,} dependencies lead from one CPU to another: {short}")
    if receivers:
        sentences.append(f"{receivers:,} ranks receive on another CPU than was sent on: {short}")
    if largest > CONVERTED_MAX:
        sentences.append(
            f"CPUs and NICs have numbers to {largest:,}: LogGOPSim's converter keeps their lowest 8 bits"
        )
    return sentences


def write_apart(schedule: Any, times: int, between: tuple[int, int, int], path: Path) -> None:
    """The schedule so many times, rank by rank: `between` is (least, most, seed) of computations."""
    least, most, seed = between
    if path.suffix != ".spl":
        raise Trouble("invalid", f"{path}: what --compute makes is written in our own form only: FILE.spl")
    try:
        with files.replacement(path) as file:
            schedule.write_apart(times, least, most, seed, file.write)
    except core.load().SpinloomError as error:
        raise Trouble(error.code, f"{path}: {error.message}") from None
