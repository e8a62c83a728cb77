"""Ctrl-C, SIGTERM and SIGHUP over a stand-in engine: what was computed is kept, and earlier results stay."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import needs_engine
from patience import seconds
from spinloom.papers import claims, figure_tables
from spinloom.verbs import paper_validate as validate

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]

# Answers so many times; once the main thread has taken the answers, says "busy" and is.
SCRIPT = """
import sys, threading, time, types
sys.path.insert(0, {tests!r})
from conftest import FakeError, TIMES_PS, fake_claim_cell, fake_run_cell
from spinloom.common import data
from spinloom.nics import sweep
from spinloom.papers import lab
answered = taken = 0
every = lab.as_they_end
def as_they_end(futures):
    global taken
    for future in every(futures):
        yield future
        taken += 1  # a caller that asks for the next one has taken this one
sweep.as_they_end = lab.as_they_end = as_they_end
def busy_after(answers):
    global answered
    answered += 1
    if answered > answers:
        while threading.current_thread() is not threading.main_thread() and taken < answers:
            time.sleep(0.001)
        print("busy", file=sys.stderr, flush=True)
        time.sleep(3600)
def run_cell(config):
    busy_after({cells})
    if {like_claims}:
        return fake_claim_cell(config)
    if config["strategy"] not in TIMES_PS:
        raise FakeError("unsupported", "not in this engine")
    return {{**fake_run_cell(config), "data_time_ps": 500_000}}
class Nic:
    def receive(self, index):
        busy_after({messages})
        return {{"served": "prepared", "message": "", "evictions": 0, "nic_memory_bytes": 64,
                 "nic_memory_in_use_bytes": 64, "prepared_blocks": 0, "size_bytes": 98304, "time_ps": 10**6,
                 "checked": True, "destination": b"", "event_log": b""}}
def exchange(config):
    busy_after({messages})
    peer = {{"size_bytes": 1, "blocks": 1, "fallback": "", "program_bytes": 64, "state_bytes": 0,
            "destination": b""}}
    return {{"time_ps": 10**6, "bytes": 2, "packets": 2, "code_bytes": 10, "packet_buffer_peak_bytes": 5,
             "packet_buffer": [(0, 5)], "peers": [peer, peer]}}
engine = types.ModuleType("spinloom._core")
engine.exchange = exchange
engine.SpinloomError, engine.run_cell, engine.share = FakeError, run_cell, lambda config: Nic()
sys.modules["spinloom._core"] = engine
data.handler_images = lambda: {{"seek": b"image"}}
from spinloom.cli import main
main({arguments!r})
"""


def stopped(number, *arguments, cells=10**9, messages=10**9, like_claims=False):
    """Runs the command, sends the signal when the engine is busy; returns exit code, stdout and stderr."""
    script = SCRIPT.format(
        tests=str(Path(__file__).resolve().parents[1]),
        cells=cells,
        messages=messages,
        like_claims=like_claims,
        arguments=list(arguments),
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while (line := process.stderr.readline()) != "busy\n":
            assert line, "the command ended before it was busy"
        process.send_signal(number)
        try:
            printed, said = process.communicate(timeout=seconds(60))
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError("it waited for what was running") from None
    return process.returncode, printed, said


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_ddt_keeps_what_was_done(tmp_path, number, code):
    out = tmp_path / "out"
    arguments = ["simulate", "MILC:16^4", "--out", str(out), "--json", "--workers", "1"]
    ended, printed, said = stopped(number, *arguments, cells=4)
    assert ended == code
    assert "4 of 6 cells" in said
    for document in (json.loads(printed), json.loads((out / "simulate.json").read_text())):
        assert document["partial"] is True
        assert [row["strategy"] for row in document["rows"]] == ["host-mpitypes", "host-warm", "specialised"]
    assert json.loads((out / "manifest.json").read_text())["partial"] is True


@pytest.mark.usefixtures("fake_engine")
def test_a_partial_result_never_replaces_an_earlier_one(spinloom, tmp_path):
    arguments = ["simulate", "MILC:16^4", "--out", str(tmp_path), "--workers", "1"]
    assert spinloom(*arguments).code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    ended, _, said = stopped(signal.SIGINT, *arguments, "--force", cells=2)
    assert ended == 130
    assert "keeps its earlier results" in said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert json.loads((tmp_path / "partial/manifest.json").read_text())["partial"] is True
    assert len(json.loads((tmp_path / "partial/simulate.json").read_text())["rows"]) == 2


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_share_prints_the_messages_that_came(number, code):
    arguments = ["simulate", "--together", "MILC:16^4", "MILC:8^4", "--rounds", "4", "--json"]
    ended, printed, said = stopped(
        number, *arguments, messages=4 + 5
    )  # two baselines, each tried in place and by the host
    assert ended == code
    assert "5 of 8 messages" in said
    document = json.loads(printed)
    assert (len(document["rows"]), document["partial"], document["summary"]["messages"]) == (5, True, 5)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_share_of_peers_prints_what_it_had_found(number, code):
    ended, printed, said = stopped(
        number, "simulate", "--together", "MILC:16^4", "--peers", "2", "--json", messages=2
    )
    assert ended == code
    assert "what it had found is printed" in said
    document = json.loads(printed)
    assert document["host_ps"] == {"host-mpitypes": 10**6}
    assert [row["half_time_ps"] for row in document["kinds"]] == [None] * 4


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_validate_prints_the_claims_that_were_tested(tmp_path, number, code):
    claim = claims.claims()["DDT-2"]
    cells = len(claims.probes_of(claims.Trial(claim.nic), claim.holds))
    (tmp_path / "validate.csv").write_text("earlier\n")
    arguments = ["paper", "validate", "--only", "DDT-2,DDT-7", "--workers", "1", "--json"]
    ended, printed, said = stopped(
        number, *arguments, "--out", str(tmp_path), "--force", cells=cells, like_claims=True
    )
    assert ended == code
    assert f"1 of 2 claims were tested and stand in {tmp_path / 'partial'}" in said
    assert [(row["id"], row["verdict"]) for row in json.loads(printed)] == [("DDT-2", claims.HOLDS)]
    assert (tmp_path / "validate.csv").read_text() == "earlier\n"
    assert json.loads((tmp_path / "partial/validate.json").read_text()) == json.loads(printed)


def test_a_killed_validate_has_kept_the_claims_that_were_done(tmp_path):
    claim = claims.claims()["DDT-2"]
    trials = [(), *(each.changes for each in claims.alternatives() if each.concerns(claim.nic))]
    cells = sum(len(claims.probes_of(claims.Trial(claim.nic, changes), claim.holds)) for changes in trials)
    out = tmp_path / "out"
    arguments = ["paper", "validate", "--only", "DDT-2,DDT-7", "--workers", "1", "--out", str(out)]
    ended, _, _ = stopped(signal.SIGKILL, *arguments, cells=cells, like_claims=True)
    assert ended == -signal.SIGKILL
    (line,) = (out / validate.KEPT).read_text().splitlines()
    assert json.loads(line)["result"]["row"]["verdict"] == claims.HOLDS
    ended, printed, said = stopped(
        signal.SIGINT, *arguments, "--json", cells=1, like_claims=True
    )  # the first claim needs no cell now
    assert ended == 130
    assert [row["id"] for row in json.loads(printed)] == ["DDT-2"]
    assert f"1 of 2 claims were tested and stand in {out / 'partial'}; the same command goes on" in said


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_figure_writes_the_figures_that_are_complete(tmp_path, number, code):
    probes = {
        name: {probe for cell in figure_tables.cells(each, True) for probe in (cell.baseline, cell.probe)}
        for name, each in figure_tables.figures().items()
    }
    first, *_ = probes.values()
    complete = {name for name in probes if probes[name] <= first}  # figures share cells
    assert 0 < len(complete) < len(probes)
    arguments = ["paper", "figure", "all", "--quick", "--workers", "1", "--out", str(tmp_path)]
    ended, printed, said = stopped(number, *arguments, cells=len(first))
    assert ended == code
    assert f"{len(complete)} of {len(probes)} figures were complete" in said
    assert f"{len(complete)} figures of {len(first)} cells" in printed
    assert {path.name for path in tmp_path.glob("*.csv")} == {f"fig{name}.csv" for name in complete}
    for path in tmp_path.glob("*.csv"):
        assert any(row["status"] == "ok" for row in csv.DictReader(path.open()))


BENCH = """
import sys
from pathlib import Path
from spinloom.common import pictures
from spinloom.bench import measure, peers
from spinloom.cli import main
from spinloom.common.errors import Terminated
def one_row(row, *more):
    if Path({out!r}, "stop").exists():
        raise {interrupt}
    Path({out!r}, "stop").touch()
    return [dict(row=row.name, operation="pack")]
measure.measure, peers.hand_library, pictures.available = one_row, lambda folder, rows: None, lambda: False
main(["bench", "layout", "--quick", "--no-mpi", "--csv", "--out", {out!r}])
"""


@needs_engine
@pytest.mark.parametrize(("interrupt", "code"), [("KeyboardInterrupt", 130), ("Terminated", 143)])
def test_bench_keeps_the_rows_that_were_measured(tmp_path, interrupt, code):
    (tmp_path / "layout.csv").write_text("earlier\n", encoding="utf-8")
    script = BENCH.format(out=str(tmp_path), interrupt=interrupt)
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=seconds(60))
    assert ran.returncode == code, ran.stderr
    assert "interrupted; 1 of" in ran.stderr
    assert ran.stdout.splitlines()[0] == "row,operation"
    assert len(ran.stdout.splitlines()) == 2
    assert (tmp_path / "partial/layout.csv").read_text(encoding="utf-8") == ran.stdout
    assert (tmp_path / "layout.csv").read_text(encoding="utf-8") == "earlier\n"
