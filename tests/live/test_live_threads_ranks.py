"""Ranks as threads: other tests' programs under spinloom-threads, alone and under mpiexec; how ranks end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import launchers
from c_programs import compile_with
from conftest import needs_engine
from live_programs import ROOT
from test_live import HERE, LIBRARY, LIMIT_S, answers_of, build, finished, run

__all__ = ["build"]
STARTER = LIBRARY.parent / "bin/spinloom-threads" if LIBRARY else Path()

pytestmark = [
    pytest.mark.skipif(not STARTER.is_file(), reason="there is no build/*/bin/spinloom-threads"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]

SHAPES = [(1, 4), (2, 2)]  # processes, ranks of each
every_shape = pytest.mark.parametrize(("processes", "each"), SHAPES)


def threads(processes: int, each: int, program: Path, *arguments: object, **settings: str) -> str:
    """What the ranks print; all succeed."""
    command = (STARTER, "-n", each, program, *arguments)
    if processes == 1:
        return finished(*command, **settings).stdout
    return run("mpich", processes, *command, **settings)


def ended(program: Path, how: str, each: int = 3) -> subprocess.CompletedProcess[str]:
    words = [STARTER, "-n", str(each), program, how]
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)


@every_shape
def test_all_pairs_exchange_bytes_of_all_lengths(build, processes, each):
    output = threads(processes, each, build("live_traffic.c"), 8 << 20)
    assert answers_of(output).keys() == {0, 1, 2, 3}


@every_shape
@pytest.mark.parametrize("copy", ["heap", "single", "two-copy"])
def test_each_way_to_copy(build, processes, each, copy):
    threads(processes, each, build("live_traffic.c"), 1 << 20, SPINLOOM_COPY=copy)


@every_shape
def test_channels_that_are_full_lose_nothing(build, processes, each):
    assert answers_of(threads(processes, each, build("live_flood.c"), 300)).keys() == {0, 1, 2, 3}


@every_shape
def test_threads_that_a_rank_makes_are_the_rank_s(build, processes, each):
    output = threads(processes, each, build("live_threads.c"), 40)
    assert answers_of(output) == dict.fromkeys(range(4), 5)


@pytest.mark.parametrize("transport", ["udp"])
def test_other_ways_serve_threads_too(build, transport):
    threads(1, 3, build("live_traffic.c"), 100_000, SPINLOOM_TRANSPORT=transport)


def test_long_messages_need_nothing_of_the_kernel(build):
    output = finished(build("no_peer_calls.c"), STARTER, "-n", 3, build("live_traffic.c"), 4 << 20)
    assert answers_of(output.stdout).keys() == {0, 1, 2}
    assert output.stderr == ""


def test_objects_are_freed_at_random_while_others_wait(build):
    assert threads(1, 2, build("live_storm.c"), 1000, 1).count(" 0 wrong") == 2


@pytest.mark.parametrize(("how", "code"), [("return", 1), ("exit", 0), ("thread", 0), ("open", 0)])
def test_a_rank_ends_alone_with_globals_of_its_own(build, how, code):
    done = ended(build("live_end_ways.c"), how)
    assert done.returncode == code, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    assert sorted(said) == ["ended: 100", "ended: 101", "ended: 102"]


def test_a_rank_that_only_starts_leaves_well(build):
    assert ended(build("live_end_ways.c"), "early").returncode == 0


OWN = [f"rank {rank}: {10 + rank} {20 + rank} {30 + rank}" for rank in range(3)]


@pytest.mark.parametrize("form", [("-pie", "-fPIE"), ("-shared", "-fPIC")])
def test_what_cpp_calls_inline_is_each_rank_s_own(tmp_path, form):
    program = tmp_path / "inline"
    linked = [f"-L{LIBRARY}", "-lportals", f"-Wl,-rpath,{LIBRARY}"]
    source = HERE / "live_inline.cpp"
    compile_with("c++", "-std=c++17", *form, f"-I{ROOT}/include", source, "-o", program, *linked)
    assert sorted(finished(STARTER, "-n", 3, program).stdout.splitlines()) == OWN


def test_a_function_of_atexit_may_exit(build):
    assert ended(build("live_end_ways.c"), "again").returncode == 1


@pytest.mark.skipif("mpich" not in launchers.available(), reason="there is no launcher of mpich")
@pytest.mark.parametrize("meet", ["start", "contact"])
def test_ranks_on_threads_beside_a_process_without_are_told(build, meet):
    program = build("live_idle.c")
    command = [
        *launchers.available()["mpich"],
        "-n",
        "1",
        STARTER,
        "-n",
        "2",
        program,
        ":",
        "-n",
        "1",
        program,
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "SPINLOOM_MEET": meet},
        timeout=LIMIT_S,
    )
    assert done.returncode != 0
    # Each process finds it by itself, and the launcher ends the others when the first has.
    assert (
        "a process of this job has its ranks on threads (spinloom-threads), and this one not" in done.stderr
        or "process 1 of the job does not have its ranks on threads" in done.stderr
        or (meet == "contact" and "set SPINLOOM_MEET=start for all ranks" in done.stderr)
    ), done.stderr


@needs_engine
def test_a_process_that_a_simulated_rank_forks_ends_alone(sim):
    code, ran, said = sim(3, HERE / "live_end_ways.c", "child")
    assert code == 0, said
    assert ran["output"].splitlines().count("children: 1 2 3 4") == 3


@needs_engine
def test_what_cpp_calls_inline_is_each_simulated_rank_s_own(sim):
    code, ran, said = sim(3, HERE / "live_inline.cpp")
    assert (code, sorted(ran["output"].splitlines())) == (0, OWN), said


def test_a_process_that_a_rank_forks_ends_alone(build):
    done = ended(build("live_end_ways.c"), "child")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said.count("children: 1 2 3 4") == 3
    own = [said.count(f"ended: {rank}") for rank in (100, 101, 102)]
    assert own == [3, 3, 3]  # the rank's, and those of its children that do not end by _exit()


def test_a_rank_that_fails_ends_the_process(build):
    assert ended(build("live_end_ways.c"), "fail").returncode == 7


def test_a_crash_is_that_of_the_process_and_names_the_rank(build):
    done = ended(build("live_end_ways.c"), "crash")
    assert done.returncode == -signal.SIGSEGV
    assert "rank number 1 of the 3 of this process crashed" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "usage:"),
        (["-n", "0", "x"], "-n 0: 1 to 1024 ranks"),
        (["-n", "2x", "x"], "-n 2x"),
        (["-n", "2", "/no/such/program"], "/no/such/program: it cannot be read"),
        (["-n", "2", __file__], "this is no program that a linker made"),
        (["-n", "2", "/tmp"], "/tmp: this is no file"),
        (["-n", "2", "/dev/null"], "/dev/null: this is no file"),
    ],
)
def test_what_cannot_run_is_an_error(words, says):
    done = subprocess.run([STARTER, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
