"""What a live job recorded: every message with its time, from files of real ranks and from broken ones."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

import launchers
import test_live
from live_programs import over
from pmi_job import Job
from spinloom.cli import cli
from spinloom.common import perfetto_file
from spinloom.traces import live_trace
from spinloom.traces.live_trace import Message, State
from test_live import LIMIT_S, build, run

__all__ = ["build"]
HANGS = [
    r"waits in PtlCTWait \(test 3, counter 0x[0-9a-f]+ has 2 successes and 0 failures\)",
    r"waits in PtlEQWait \(event queue 0x[0-9a-f]+\)",
    r"waits in PtlCTPoll for one of 2 \(test 3, counter 0x[0-9a-f]+ has 2 successes and 0 failures; "
    r"test 7, counter 0x[0-9a-f]+ has 0 successes and 0 failures\)",
    r"is between two calls; the last one was PtlCTWait.*",
    r"makes calls; the latest is PtlCTGet \(counter 0x[0-9a-f]+ has 2 successes and 0 failures\)",
    r"has left the job",
]
HEAD = ",".join(live_trace.COLUMNS) + "\n"


def spinloom(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli, [str(one) for one in arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value or 0, result.stdout


@pytest.fixture
def job(tmp_path):
    """Writes the files of a job by rank, of lines without their newlines, and gives their name."""

    def write(*ranks: list[str]) -> str:
        for rank, lines in enumerate(ranks):
            (tmp_path / f"run.{rank}").write_text(HEAD + "".join(f"{line}\n" for line in lines))
        return str(tmp_path / "run")

    return write


def test_a_message_is_timed_from_its_first_packet_to_its_last(job):
    name = job(
        [
            "1000,send,1,put,7,3,42,0,8192,10000",
            "1100,send,1,put,7,3,42,8192,1808,10000",
            "1900,arrive,1,ack,7,0,0,0,0,0",
        ],
        [
            "1500,arrive,0,put,7,3,42,0,8192,10000",
            "1700,arrive,0,put,7,3,42,8192,1808,10000",
            "1750,send,0,ack,7,0,0,0,0,0",
        ],
    )
    put, ack = live_trace.read(name)
    assert put == Message(0, 1, "put", 7, 10000, 3, 42, 1000, 1500, 1700, 10000)
    assert (put.took_ns, ack.took_ns, ack.operation) == (700, 150, "ack")


def test_what_is_read_from_the_senders_memory_is_there_when_it_is_copied(job):
    name = job(
        ["1000,send,1,put,7,3,42,0,99999,99999"],
        ["1500,arrive,0,put,7,3,42,0,99999,99999", "9000,copied,0,put,7,3,42,0,99999,99999"],
    )
    assert [one.took_ns for one in live_trace.read(name)] == [8000]


def test_what_could_not_be_read_did_not_arrive(job):
    name = job(
        ["1000,send,1,put,7,3,42,0,99999,99999"],
        ["1500,arrive,0,put,7,3,42,0,99999,99999", "9000,failed,0,put,7,3,42,0,99999,99999"],
    )
    assert [(one.complete, one.took_ns) for one in live_trace.read(name)] == [(False, None)]


def test_what_did_not_arrive_is_counted_and_the_verb_says_no(job):
    name = job(
        [
            "1000,send,1,put,1,3,42,0,10,20",
            "1001,send,1,put,1,3,42,10,10,20",
            "1100,send,1,put,2,3,42,0,5,5",
            "2000,lost,1,,,,,,,",
        ],
        ["1500,arrive,0,put,1,3,42,0,10,20"],
    )
    code, said = spinloom("trace", "--live", name, "--json")
    (row,) = json.loads(said)
    assert code == 1
    assert (row["operation"], row["messages"], row["bytes"], row["missing"]) == ("put", 2, 25, 2)
    assert row["median_us"] is None


def test_a_number_that_comes_again_is_another_message(job):
    name = job(
        ["1000,send,1,put,1,3,42,0,4,4", "2000,send,1,put,1,3,42,0,4,4"],
        ["1200,arrive,0,put,1,3,42,0,4,4", "2300,arrive,0,put,1,3,42,0,4,4"],
    )
    assert [one.took_ns for one in live_trace.read(name)] == [200, 300]


def test_an_answer_may_come_in_any_order(job):
    name = job(
        ["1000,send,1,reply,1,0,0,0,9,9", "2000,send,1,reply,1,0,0,0,9,9"],
        [
            "1200,arrive,0,reply,1,0,0,4,5,9",
            "1300,arrive,0,reply,1,0,0,0,4,9",
            "2300,arrive,0,reply,1,0,0,4,5,9",
            "2400,arrive,0,reply,1,0,0,0,4,9",
        ],
    )
    assert [(one.complete, one.took_ns) for one in live_trace.read(name)] == [(True, 300), (True, 400)]


@pytest.mark.parametrize(
    "rest", ["1000,send,1,pu", "2000,send,1,put,2,3,42,0,40,", "2000,send,1,put,2,3,42,0,40,4"]
)
def test_a_rank_that_was_killed_leaves_a_line_without_an_end(job, tmp_path, rest):
    name = job(["1000,send,1,put,1,3,42,0,4,4"])
    with (tmp_path / "run.0").open("a") as file:
        file.write(rest)
    assert len(live_trace.read(name)) == 1


def test_a_name_may_have_any_characters(tmp_path):
    for rank in ("0", "10", "x"):
        (tmp_path / f"a[1]*.b.{rank}").write_text(HEAD)
    (tmp_path / "a[1]*.b.2").mkdir()
    found = live_trace.files_of(str(tmp_path / "a[1]*.b"))
    assert [(rank, file.name) for rank, file in found] == [(0, "a[1]*.b.0"), (10, "a[1]*.b.10")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "run the job with SPINLOOM_TRACE="),
        ("hello\n", "is no trace"),
        (HEAD + "x,send,1,put,1,3,42,0,4,4\n", "'x' is no time_ns"),
        (HEAD + "1,send,-1,put,1,3,42,0,4,4\n", "'-1' is no peer"),
    ],
)
def test_files_that_are_no_trace_are_told(tmp_path, content, says):
    if content is not None:
        (tmp_path / "run.0").write_text(content)
    with pytest.raises(Exception, match=says):
        live_trace.read(str(tmp_path / "run"))


def state_file(folder, rank: int, line: str) -> None:
    (folder / f"run.{rank}.state").write_text(line.ljust(2047) + "\n")


def test_a_rank_that_has_ended_without_leaving_is_dead(job, tmp_path):
    name = job(["1000,send,1,put,1,3,42,0,4,4"], ["1500,arrive,0,put,1,3,42,0,4,4"])
    state_file(tmp_path, 0, "1000 runs waits in PtlCTWait (test 3, counter 0x5 has 2 successes)")
    state_file(tmp_path, 1, "2000 left has left the job")
    code, said = spinloom("trace", "--live", name, "--states", "--json")
    dead, left = json.loads(said)
    assert (code, dead["state"], dead["since_ns"], left["state"]) == (1, "dead", 1000, "left")
    assert dead["says"] == "waits in PtlCTWait (test 3, counter 0x5 has 2 successes)"
    assert spinloom("trace", "--live", name)[0] == 1


def test_a_rank_whose_process_is_there_runs(tmp_path):
    """Another process has the lock of its file."""
    began = time.time_ns() - 5_000_000_000
    state_file(tmp_path, 0, f"{began} runs waits in PtlEQWait (event queue 0x3)")
    path = tmp_path / "run.0.state"
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX);"
         "print(flush=True); sys.stdin.read()", path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        holder.stdout.readline()
        (state,) = live_trace.states(str(tmp_path / "run"))
        assert (state.state, state.since_ns) == ("runs", began)
        code, said = spinloom("trace", "--live", tmp_path / "run", "--states")
        assert code == 0
        assert re.search(r"0 +runs +waits in PtlEQWait \(event queue 0x3\), for [5-9]\.\d s", said)
    finally:
        holder.communicate()
    assert live_trace.states(str(tmp_path / "run"))[0].state == "dead"


@pytest.mark.parametrize("line", ["", "x runs waits", "1 flies high", "1"])
def test_a_state_that_is_none_says_so(tmp_path, line):
    state_file(tmp_path, 1, line)
    unknown, dead = live_trace.states(str(tmp_path / "run"))
    assert unknown == State(0, "unknown", None, "has left no file")
    assert dead == State(1, "dead", None, "has told nothing")


def test_no_byte_of_a_state_reaches_the_terminal_raw(tmp_path):
    state_file(tmp_path, 0, "1 runs waits in \x1b[31mred")
    assert live_trace.states(str(tmp_path / "run"))[0].says == "waits in ?[31mred"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["program", "--states"], "--states is for live jobs: add --live"),
        (["--live", "run", "--calls"], "--calls is for recorded programs; leave out --live"),
        (["run"], "run is a live job: 'spinloom trace --live .*run' shows it"),
    ],
)
def test_views_are_of_one_kind_of_trace(tmp_path, words, says):
    (tmp_path / "program").mkdir()
    (tmp_path / "program/rank-0.trace").write_bytes(b"SPLTRC01")
    state_file(tmp_path, 0, "1 left has left the job")
    with pytest.raises(Exception, match=says):
        spinloom("trace", *(word if word.startswith("--") else tmp_path / word for word in words))


@pytest.mark.skipif(not perfetto_file.available(), reason="there is no perfetto package")
def test_the_timeline_joins_what_was_sent_with_what_arrived(job):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

    name = job(
        ["1000,send,1,put,7,3,42,0,100,100", "1010,send,1,put,8,3,42,0,100,100"],
        ["1500,arrive,0,put,7,3,42,0,100,100", "1600,arrive,0,put,8,3,42,0,100,100"],
    )
    trace = proto.Trace.FromString(live_trace.timeline(live_trace.read(name), "run"))
    names = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in trace.packet}
    begun = [packet for packet in trace.packet if packet.track_event.name]
    seen = [
        (
            names[one.track_event.track_uuid],
            one.timestamp,
            one.track_event.name,
            list(one.track_event.flow_ids),
        )
        for one in begun
    ]
    assert seen == [
        ("out", 0, "put 100 B to 1", [1]),
        ("out 1", 10, "put 100 B to 1", [2]),
        ("in", 500, "put 100 B of 0", [1]),
        ("in", 600, "put 100 B of 0", [2]),
    ]


@pytest.mark.skipif(test_live.LIBRARY is None, reason="there is no build/*/live/libportals.so.4")
@pytest.mark.parametrize("transport", ["shm", "udp", "fabric"])
@pytest.mark.usefixtures("build")
def test_every_message_of_a_real_job_is_recorded(build, transport, tmp_path):
    settings = over("tcp") if transport == "fabric" else {"SPINLOOM_TRANSPORT": transport}
    launcher = next(iter(launchers.available()), None)
    if launcher is None:
        pytest.skip("there is no mpiexec")
    name = tmp_path / "run"
    run(launcher, 2, build("live_traffic.c"), 100_000, SPINLOOM_TRACE=str(name), **settings)
    messages = live_trace.read(str(name))
    assert {(one.source, one.target) for one in messages} == {(0, 1), (1, 0)}
    assert {"put", "get", "reply"} <= {one.operation for one in messages}
    assert max(one.bytes for one in messages) == 65_553
    assert all(one.complete and one.took_ns is not None and one.took_ns >= 0 for one in messages)
    code, said = spinloom("trace", "--live", name, "--timeline", tmp_path / "run.pftrace", "--json")
    assert code == 0
    assert sum(row["messages"] for row in json.loads(said)) == len(messages)
    assert (tmp_path / "run.pftrace").stat().st_size > 1000


def says(name: str, sentences: list[str], wanted: list[str]) -> bool:
    """Whether the ranks tell these sentences, and are in these states."""
    states = live_trace.states(name)
    if [one.state for one in states] != wanted:
        return False
    return all(re.fullmatch(sentence, one.says) for sentence, one in zip(sentences, states, strict=True))


@pytest.mark.skipif(test_live.LIBRARY is None, reason="there is no build/*/live/libportals.so.4")
@pytest.mark.parametrize("settings", [{}, {"SPINLOOM_TRANSPORT": "udp"}, {"SPINLOOM_RAILS": "shm,udp"}])
def test_a_job_that_hangs_says_who_waits_for_what(build, tmp_path, settings):
    name = str(tmp_path / "run")
    with Job([str(build("live_hang.c"))], 6, env={"SPINLOOM_TRACE": name, **settings}) as job:
        job.wait(LIMIT_S, until=lambda _: says(name, HANGS, ["runs"] * 5 + ["left"]))
        assert says(name, HANGS, ["runs"] * 5 + ["left"]), f"{live_trace.states(name)}\n{job.said()}"
        for rank in job.ranks[:5]:
            rank.process.send_signal(signal.SIGKILL)
            rank.process.wait()
    assert says(name, HANGS, ["dead"] * 5 + ["left"]), live_trace.states(name)
    code, said = spinloom("trace", "--live", name, "--states", "--json")
    assert (code, [row["state"] for row in json.loads(said)]) == (1, ["dead"] * 5 + ["left"])


@pytest.mark.skipif(test_live.LIBRARY is None, reason="there is no build/*/live/libportals.so.4")
def test_a_program_that_leaves_its_interfaces_open_has_ended_well(build, tmp_path):
    name = str(tmp_path / "run")
    with Job([str(build("live_hang.c")), "open"], 2, env={"SPINLOOM_TRACE": name}) as job:
        assert job.wait(LIMIT_S) == [0, 0], job.said()
    assert says(name, ["has ended without closing its interfaces"] * 2, ["left"] * 2)


@pytest.mark.skipif(test_live.LIBRARY is None, reason="there is no build/*/live/libportals.so.4")
def test_ranks_that_wait_in_ptlinit_say_so(build, tmp_path):
    name = str(tmp_path / "run")
    waits = "waits in PtlInit for the other ranks of 3"
    with Job(
        [str(build("live_hang.c")), "init"], 3, env={"SPINLOOM_TRACE": name, "SPINLOOM_MEET": "start"}
    ) as job:
        job.wait(LIMIT_S, until=lambda _: says(name, [waits, ".*", waits], ["starts", "unknown", "starts"]))
        assert says(name, [waits, "has left no file", waits], ["starts", "unknown", "starts"]), job.said()
        code, _ = spinloom("trace", "--live", name)
        assert code == 0


@pytest.mark.skipif(test_live.LIBRARY is None, reason="there is no build/*/live/libportals.so.4")
def test_a_job_that_is_run_again_leaves_the_file_of_one_that_hangs_alone(build, tmp_path):
    """The first job's processes keep what they wrote to; the trace is that of the second one."""
    name = str(tmp_path / "run")
    with Job(
        [str(build("live_hang.c")), "init"], 2, env={"SPINLOOM_TRACE": name, "SPINLOOM_MEET": "start"}
    ) as first:
        first.wait(LIMIT_S, until=lambda _: [one.state for one in live_trace.states(name)] == ["starts"])
        with Job([str(build("live_idle.c"))], 1, env={"SPINLOOM_TRACE": name}) as second:
            assert second.wait(LIMIT_S) == [0], second.said()
        assert first.ranks[0].process.poll() is None
    assert [one.state for one in live_trace.states(name)] == ["left"]
