"""`spinloom run --report`: what ranks have counted, under every MPI here, and how it is put together."""

from __future__ import annotations

import json
import shlex
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conftest import needs_engine
from layer_programs import BIN, TIME_LIMIT_S, Mpi, every_mpi, programs_of
from spinloom.accelerate import mpi_report, mpi_report_page

SOURCE = Path(__file__).parent / "report_program.c"
ROUNDS = 40
PLANE = "vector(64, 64, 4096, int64_t)"
ROW = "vector(16, 1, 4, int64_t)"


@pytest.fixture(scope="module")
def programs():
    return programs_of(SOURCE)


def spinloom_run(mpi: Mpi, program: Path, *options: str, last: str = "", ranks: int = 2):
    job = [mpi.launcher, *mpi.options, "-n", str(ranks), str(program), *([last] if last else [])]
    return subprocess.run(
        [str(BIN / "spinloom"), "run", *options, "--", *job],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )


def messages(document: dict, **of: object) -> int:
    rows = [row for row in document["types"] if all(row[name] == value for name, value in of.items())]
    return sum(row["messages"] for row in rows)


@every_mpi
def test_every_message_is_counted_once(mpi, programs, tmp_path):
    file = tmp_path / "report.json"
    ran = spinloom_run(mpi, programs(mpi), f"--report={file}")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(file.read_text(encoding="utf-8"))
    assert messages(document, text=PLANE) == 2 * ROUNDS + 1
    assert messages(document, text=PLANE, way="within", why="to itself, copied once", peers="itself") == 1
    assert messages(document, text=ROW, count=2, way="pass", why="short", peers="+1 -1") == 2 * ROUNDS
    assert messages(document, kind="contiguous", way="pass", peers="+1 -1") == 2 * ROUNDS
    assert messages(document) == 6 * ROUNDS + 1
    through = [row for row in document["types"] if row["way"] != "pass"]
    assert sum(row["messages"] for row in through) == document["totals"]["sent"] > ROUNDS
    assert sum(row["bytes"] for row in through) == document["totals"]["sent_bytes"]
    assert sum(row["withdrawn"] for row in document["types"]) == document["totals"]["withdrawn"]
    (job,) = document["jobs"]
    assert (job["ranks"], job["with_layer"]) == (2, 2)
    assert len(job["in_calls_seconds"]) == 2
    assert 0 < job["in_calls_seconds"][0] <= job["in_calls_seconds"][1] <= job["seconds"]


@every_mpi
def test_a_rank_that_is_killed_leaves_a_report(mpi, programs, tmp_path):
    file = tmp_path / "report.json"
    ran = spinloom_run(mpi, programs(mpi), f"--report={file}", last="die", ranks=3)
    assert ran.returncode != 0
    assert "did not come to MPI_Finalize" in ran.stderr
    document = json.loads(file.read_text(encoding="utf-8"))
    (job,) = document["jobs"]
    assert job["killed"] == [0, 1, 2]
    # Nothing is told that was not counted, and most of it is.
    assert 2 * ROUNDS < messages(document) <= 9 * ROUNDS + 1


@needs_engine
@every_mpi
def test_the_terminal_names_types_and_commands_that_work(mpi, programs):
    ran = spinloom_run(mpi, programs(mpi), "--report", "--path=pass")
    assert ran.returncode == 0, ran.stderr
    assert f"1 x {PLANE}" in ran.stderr
    assert "asked for" in ran.stderr
    commands = [
        line.strip() for line in ran.stderr.splitlines() if line.strip().startswith("spinloom explain")
    ]
    assert len(commands) == 2
    for command in commands:
        words = [str(BIN / "spinloom"), *shlex.split(command)[1:], "--strategies=none"]
        told = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
        assert told.returncode == 0, told.stderr


@every_mpi
def test_silent_unless_asked(mpi, programs):
    ran = spinloom_run(mpi, programs(mpi))
    assert ran.returncode == 0
    assert "spinloom" not in ran.stderr
    assert "vector" not in ran.stderr


# ---- putting together ----


def line(rank: int, *sent: list, job: str = "j", ranks: int = 2, **more: object) -> dict:
    entry = {"kind": "derived", "text": PLANE, "whole": True, "size": 32768, "extent": 2064896}
    totals = dict.fromkeys(
        (
            "sent",
            "sent_bytes",
            "landed",
            "landed_bytes",
            "refused",
            "offered",
            "withdrawn",
            "within",
            "within_bytes",
            "helped",
            "packs",
            "window_copies",
            "gpu_moves",
            "gpu_bytes",
            "gpu_taken",
            "gpu_taken_bytes",
            "gpu_within",
            "gpu_as_they_are",
        ),
        0,
    )
    totals |= {"seconds": 2.5, "in_calls_seconds": 0.25 * (rank + 1)}
    types = [{**entry, "spread": 1, "block_bytes": 512, "sent": list(sent)}]
    base = {
        "job": job,
        "rank": rank,
        "ranks": ranks,
        "ended": True,
        "on": True,
        "why_off": "",
        "gpu_why": "",
        "machine": "m",
    }
    return {**base, **totals, "types": types, **more}


def sentences(*lines: dict) -> str:
    return " / ".join(mpi_report.sentences(mpi_report.merge(list(lines))))


def test_ranks_that_left_nothing_are_named():
    assert "rank 1 of 2 left no report" in sentences(line(0))
    assert "left no report" not in sentences(line(0), line(1))
    assert "ranks 2, 3 of 4 left no report" in sentences(line(0, ranks=4), line(1, ranks=4))
    assert "ranks 0, 1 did not come to MPI_Finalize" in sentences(line(0, ended=False), line(1, ended=False))


def test_times_are_those_that_ranks_measured():
    assert "spent 0.25 s to 0.5 s of 2.5 s in calls" in sentences(line(0), line(1))
    assert "spent 0.25 s of 2.5 s in calls" in sentences(line(0))


def test_jobs_of_one_command_are_told_apart():
    document = mpi_report.merge([line(rank, job=job) for job in "ab" for rank in range(2)])
    assert [job["job"] for job in document["jobs"]] == ["a", "b"]
    assert "between 4 of 4 ranks" in mpi_report.sentences(document)[0]


def test_patterns_are_distances():
    pairs = {("j", rank, rank + step) for rank in range(10, 20) for step in (-1, 1)}
    assert sorted(mpi_report.pattern(pairs).split()) == ["+1", "-1"]
    many = {("j", 0, rank) for rank in range(10)} | {("j", 0, mpi_report.VARIOUS)}
    assert mpi_report.pattern(many).endswith("and 4 more others")


def test_what_takes_the_best_way_gains_nothing():
    for way, why in (
        ("mapped", "one copy takes least here"),
        ("cma", "one copy by system calls takes least"),
    ):
        fine = mpi_report.merge([line(0, [1, 1, way, why, 9, 9, 0, ""])])
        assert fine["gainers"] == []
        assert "no type would gain" in mpi_report.advice(fine)[0]
        page = mpi_report_page.page({"command": ["app"], **fine}, "app")
        assert mpi_report_page.WAYS[way][1] in page
        legend = page.partition('<p class="legend">')[2].partition("</p>")[0]
        assert legend.count(" B, ") == 1  # ways without bytes are left out


def test_the_types_that_gain_most_come_first():
    why = "the buffer cannot be mapped"
    scattered = line(0, [1, 1, "pass", "short", 1, 1000, 0, ""])
    scattered["types"][0] |= {"text": ROW, "spread": 8}
    dense = line(1, [1, 0, "staged", why, 1, 15000, 0, ""], [3, 0, "staged", why, 1, 1000, 0, ""])
    gainers = mpi_report.merge([scattered, dense])["gainers"]
    assert [(one["text"], one["count"], one["lines"]) for one in gainers] == [
        (ROW, 1, 125),
        (PLANE, 1, 117),
        (PLANE, 3, 8),
    ][: len(gainers)]
    assert gainers[2]["explain"] == f"spinloom explain '{PLANE}' --count 3"


@needs_engine
def test_a_long_type_is_explained_from_the_file(tmp_path):
    text = f"idxblock(1, [{', '.join(str(3 * i) for i in range(30_000))}], int64_t)"
    told = line(0, [2, 1, "pass", "short", 5, 5, 0, ""])
    told["types"][0] |= {"text": text}
    document = mpi_report.merge([told])
    file = tmp_path / "report.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert document["gainers"][0]["explain"] is None
    assert f"spinloom explain {file}:0" in mpi_report.advice(document, str(file))[2]
    words = [str(BIN / "spinloom"), "explain", f"{file}:0", "--strategies=none", "--json"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True)
    assert json.loads(ran.stdout)["blocks"] == 59_999  # two that touch
    ran = subprocess.run([*words[:2], f"{file}:1"], capture_output=True, text=True, check=False)
    assert (ran.returncode, "has no datatype 1" in ran.stderr) == (2, True)


# ---- the page ----


class Reader(HTMLParser):
    EMPTY = ("meta", "br", "rect", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.outside: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.outside += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@needs_engine
def test_the_page_stands_alone():
    told = line(0, [1, 1, "staged", "the buffer cannot be mapped", 7, 229376, 0, ""], ended=False)
    page = mpi_report_page.page(mpi_report.merge([told]), "mpiexec -n 2 ./a<b>")
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert reader.outside == []
    assert "<script" not in page
    assert "mpiexec -n 2 ./a<b>" in reader.text
    assert f"spinloom explain '{PLANE}' --count 1" in reader.text
    assert "229,376" in reader.text
    assert "did not come to MPI_Finalize" in reader.text
    assert page.count("<svg") == 1


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--report=report.txt", 2, "must end with .json or .html"),
        ("--report=/nowhere/report.json", 3, "there is no folder /nowhere"),
    ],
)
def test_files_that_cannot_be_are_refused_before_the_job(option, code, said, tmp_path):
    witness = tmp_path / "witness"
    words = [str(BIN / "spinloom"), "run", option, "--", "touch", str(witness)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, said in ran.stderr, witness.exists()) == (code, True, False), ran.stderr


def test_the_word_behind_a_bare_report_is_the_commands():
    words = [str(BIN / "spinloom"), "run", "--report", "echo", "--report"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "--report\n")
    assert "the layer was off" in ran.stderr
