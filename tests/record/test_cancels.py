"""Cancelled requests in traces: what came of each cancel, in every view and by way of an archive."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from layer_programs import Mpi, every_mpi, program_for
from patience import seconds
from spinloom.traces import otf2_export, recorded
from test_record import BIN, HERE, record, rows

TIME_LIMIT_S = seconds(240)
CANCELLED = -4
NEVER = ("not received", "not sent", "truncated", "types differ")


def spinloom(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(BIN / "spinloom"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)


def check(directory: Path, doubted: int = 0) -> None:
    """Each message has its receive, and what was cancelled is not missed; it is predicted, too.

    An archive does not tell the source of a receive that was freed: `doubted` findings are not sure.
    """
    looked = spinloom("trace", directory, "--check", "--json")
    assert looked.returncode == 0, looked.stdout + looked.stderr
    found = [row["sure"] for row in json.loads(looked.stdout) if row["finding"] in NEVER]
    assert found == [False] * doubted
    priced = spinloom("predict", directory, "--nic", "sc19-slingshot", "--strategies", "rw-cp", "--json")
    assert priced.returncode == 0, priced.stderr


@every_mpi
@pytest.mark.parametrize("accelerate", [False, True], ids=["looks on", "accelerates"])
def test_what_came_of_a_cancel_is_recorded(mpi: Mpi, accelerate, tmp_path):
    program = program_for(mpi, HERE / "cancels.c")
    how = ["--accelerate"] if accelerate else []
    ran = record(tmp_path / "trace", *how, "--", mpi.launcher, *mpi.options, "-n", "2", program)
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.split("\n")[:-1]) == ["early 1", "late 0", "late 0"]
    traces = recorded.read(tmp_path / "trace")
    told = [match for row in rows(traces[1], "Wait", "Waitall", "Testany") for match in row["matches"]]
    assert [match[1:] for match in told] == [
        (CANCELLED, -1, 0),
        (CANCELLED, -1, 0),
        (CANCELLED, -1, 0),
        (-1, -1, 0),
        (0, 4, 70),
    ]
    sizes = sorted(message[-1] for message in recorded.core.load().trace_messages(traces))
    assert sizes == [50, 60, 70, 80, 90]
    check(tmp_path / "trace")
    if otf2_export.available():
        done = spinloom("trace", tmp_path / "trace", "--otf2", tmp_path / "archive")
        assert done.returncode == 0, done.stderr
        assert "is not known" not in done.stderr
        made = spinloom("trace", tmp_path / "archive/trace.otf2", "--import", tmp_path / "again")
        assert made.returncode == 0, made.stderr
        again = recorded.core.load().trace_messages(recorded.read(tmp_path / "again"))
        assert sorted(message[-1] for message in again) == sizes
        check(tmp_path / "again", doubted=1)
