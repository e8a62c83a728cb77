"""C programs as real processes: under the launchers of two MPI libraries, alone, and with ranks that die."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import launchers
from launchers import TIME_LIMIT_S as LIMIT_S
from launchers import finished, nothing_runs
from launchers import output as run
from live_programs import LIBRARY, ROOT, answers_of, build, handler_folder, needs_library
from patience import seconds, until
from pmi_job import Job

__all__ = ["LIBRARY", "ROOT", "answers_of", "build", "finished", "nothing_runs", "run"]
HERE = Path(__file__).resolve().parent


pytestmark = [
    needs_library,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


JOBS = [("mpich", 2), ("mpich", 4), ("mpich", 8), ("openmpi", 2), ("openmpi", 4)]
every_job = pytest.mark.parametrize(("launcher", "ranks"), JOBS)
every_launcher = pytest.mark.parametrize("launcher", ["mpich", "openmpi"])


@every_job
def test_all_pairs_exchange_bytes_of_all_lengths(build, launcher, ranks):
    longest = {2: 8 << 20, 4: 3 << 20, 8: 300001}[ranks]
    output = run(launcher, ranks, build("live_traffic.c"), longest)
    assert set(answers_of(output)) == set(range(ranks))


@every_job
def test_channels_that_are_full_lose_nothing(build, launcher, ranks):
    messages = {2: 2000, 4: 500, 8: 128}[ranks]
    output = run(launcher, ranks, build("live_flood.c"), messages)
    assert set(answers_of(output)) == set(range(ranks))


@pytest.mark.parametrize("copy", ["heap", "single-copy", "two-copy"])
def test_each_way_to_copy(build, copy):
    run("mpich", 2, build("live_traffic.c"), 8 << 20, SPINLOOM_COPY=copy)
    run("mpich", 3, build("live_flood.c"), 300, SPINLOOM_COPY=copy)


@pytest.mark.parametrize("arguments", [("early",), (), ("forbid",), ("early", "forbid")])
def test_a_heap_is_mapped_by_every_peer(build, arguments):
    """Also where processes must not read each other, and where the heap comes after PtlInit."""
    for copy, mapped in (("auto", 2), ("heap", 2), ("single-copy", 0), ("two-copy", 0)):
        output = run("mpich", 3, build("live_heap.c"), *arguments, "mapped", mapped, SPINLOOM_COPY=copy)
        assert set(answers_of(output)) == {0, 1, 2}


PRELOADED = {"LD_PRELOAD": str(LIBRARY / "libspinloom-heap.so")} if LIBRARY else {}
no_sanitizer = pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers have a malloc")


@no_sanitizer
@pytest.mark.parametrize("launcher", ["mpich", "openmpi"])
def test_programs_whose_malloc_is_the_heap_s(build, launcher):
    for name, argument in (("live_traffic.c", 3 << 20), ("live_flood.c", 300), ("live_threads.c", 40)):
        run(launcher, 3, build(name), argument, SPINLOOM_COPY="heap", **PRELOADED)
    run(launcher, 2, build("live_heap.c"), "mapped", 1, **PRELOADED)


@no_sanitizer
def test_any_program_runs_with_the_heap_s_malloc(build):
    def preloaded(*command: object) -> str:
        done = finished(*command, **PRELOADED)
        assert done.stderr == ""
        return done.stdout

    assert preloaded(build("heap_blocks.cpp")) == "0 wrong\n"
    if shutil.which("bash"):
        script = "x=$(seq 1 50000); (y=${x/1/7}; echo ${#y}) | cat; echo ${#x} | tr -d '\n'"
        assert preloaded("bash", "-c", script) == "288893\n288893"
    program = (
        "import os, subprocess, threading\n"
        "block = bytearray(b'p') * 10**7\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    block[0] = 1\n"
        "    os._exit(0 if block[0] == 1 and block[-1] == ord('p') else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0 and block[0] == ord('p')\n"
        "work = lambda: [bytearray(n * 1000) for n in range(300)]\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[one.start() for one in threads], [one.join() for one in threads]\n"
        "print(subprocess.run(['echo', 'good'], capture_output=True, text=True).stdout, end='')\n"
    )
    assert preloaded(sys.executable, "-c", program) == "good\n"


@every_launcher
def test_threads_of_a_rank_wait_side_by_side(build, launcher):
    """A thread that sees the message of another one, which sleeps, wakes it."""
    assert answers_of(run(launcher, 2, build("live_threads.c"), 200)) == {0: 5, 1: 5}


@pytest.mark.parametrize("spin", ["0", "1000"])
def test_threads_wait_however_long_they_poll_first(build, spin):
    run("mpich", 3, build("live_threads.c"), 40, SPINLOOM_SPIN_US=spin)


def test_each_event_goes_to_one_of_the_threads_that_read_its_queue(build):
    assert answers_of(finished(build("live_readers.c"), 20000).stdout) == {0: 1}


def test_threads_that_wait_for_what_is_freed_are_told(build):
    assert answers_of(finished(build("live_release.c")).stdout)[0] >= 24


@every_launcher
def test_an_abort_ends_what_waits_and_what_would_wait(build, launcher):
    assert answers_of(run(launcher, 2, build("live_abort.c"))).keys() == {0, 1}


@pytest.mark.parametrize("seed", [1, 2])
def test_objects_are_freed_at_random_while_others_wait_and_nobody_hangs(build, seed):
    output = run("mpich", 2, build("live_storm.c"), 2000, seed)
    assert len(re.findall(r"rank \d: \d+ waits, \d+ interrupted, 0 wrong", output)) == 2, output


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers have a malloc")
def test_looks_that_need_not_wait_neither_allocate_nor_read_a_clock(build):
    assert answers_of(finished(build("live_counted.c")).stdout) == {0: 4}


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers take time of their own")
@pytest.mark.parametrize("how", ["eqget", "eqpoll", "ctget", "ctpoll", "wait"])
def test_ranks_that_poll_let_each_other_run(build, how):
    """Three on one processor: what each uses of it is independent of what else the machine does."""
    program = build("live_ring.c")
    confine = (
        "import os, sys\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "os.execvp(sys.argv[1], sys.argv[1:])\n"
    )
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    launcher = [*launchers.available()["mpich"], "-n", 3]
    output = finished(sys.executable, "-c", confine, *launcher, program, how, 200).stdout
    used = [float(us) for us in re.findall(r"used ([\d.]+) us a step", output)]
    assert len(used) == 3, output
    assert max(used) < 150, output


@pytest.mark.parametrize(("launcher", "ranks"), [("mpich", 2), ("mpich", 4), ("openmpi", 2)])
def test_a_rank_that_calls_nothing_still_serves(build, launcher, ranks):
    # Rules: P4F-21.2.
    assert set(answers_of(run(launcher, ranks, build("live_sleeper.c")))) == set(range(ranks))


# The home rank's own attempts are ready at once and look at no channel: it must hear of the lock's release
# all the same.
LOCKS = pytest.mark.parametrize(("transport", "ranks"), [("shm", 2), ("shm", 4), ("udp", 2), ("udp", 4)])


@LOCKS
def test_a_lock_over_compare_and_swap_is_passed_on(build, transport, ranks):
    run("mpich", ranks, build("live_locks.c"), 1000, SPINLOOM_TRANSPORT=transport)


@pytest.mark.slow
@LOCKS
def test_a_lock_is_passed_on_many_times(build, transport, ranks):
    run("mpich", ranks, build("live_locks.c"), 100_000, SPINLOOM_TRANSPORT=transport)


@pytest.mark.skipif("SPINLOOM_TEST_CFLAGS" in os.environ, reason="sanitizers have threads of their own")
@every_launcher
def test_waiting_costs_no_processor_time(build, launcher):
    waited_ms = 2000
    output = run(launcher, 3, build("live_idle.c"), waited_ms)
    used = {int(rank): int(us) for rank, us in re.findall(r"rank (\d) used (\d+) us", output)}
    assert set(used) == {0, 1, 2}
    assert max(used.values()) < waited_ms * 1000 / 100, used


def test_a_process_alone_is_a_job_of_one(build):
    for name, argument in (("live_traffic.c", "65536"), ("live_flood.c", "500")):
        done = subprocess.run([build(name), argument], capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        assert set(answers_of(done.stdout)) == {0}


def test_a_process_is_its_user_s_and_opens_the_library_once(build):
    assert answers_of(finished(build("live_user.c")).stdout) == {0: 4}


@pytest.mark.parametrize("what", ["puts", "gets"])
def test_a_chain_to_oneself_needs_no_stack(build, what):
    assert answers_of(finished(build("live_chain.c"), what).stdout) == {0: 6}


@every_launcher
def test_a_cycle_to_oneself_starves_nobody(build, launcher):
    """A persistent triggered put that starts itself for ever: calls, peers and the end are served."""
    assert answers_of(run(launcher, 2, build("live_chain.c"), "cycle")) == {0: 104, 1: 104}


def test_a_rank_that_leaves_waits_for_slow_handlers(build, tmp_path):
    """12 s, longer than a peer that takes nothing would be waited for, twice: by PtlNIFini, and after it."""
    compiled = [tmp_path / "slow_handler.so", "--native", "--include", ROOT / "include"]
    finished(
        sys.executable,
        ROOT / "python/spinloom/handlers/toolchain.py",
        HERE / "slow_handler.c",
        "-o",
        *compiled,
    )
    output = run(
        "mpich",
        2,
        build("live_farewell.c"),
        "slow",
        SPINLOOM_HANDLERS=str(tmp_path),
        SPINLOOM_HANDLER_KIND="native",
        SPINLOOM_HPUS="1",
    )
    assert answers_of(output) == {1: 1}
    assert float(re.search(r"left after ([\d.]+) s", output)[1]) > 10.5, output


@pytest.mark.parametrize("transport", ["shm", "udp"])
def test_a_rank_that_leaves_says_what_a_stopped_peer_has_not_taken(build, transport):
    program = build("live_farewell.c")
    settings = {"SPINLOOM_TRANSPORT": transport, "SPINLOOM_DIRECT": "packets"}  # by packets it takes nothing
    with Job([str(program), "stopped"], 2, env=settings) as job:
        job.wait(LIMIT_S, until=lambda job: "left after" in job.ranks[0].text)
        said = job.ranks[0].text
    told = re.findall(
        r"^spinloom: PtlFini: lost, for it was not taken: (\d+) packets with (\d+) B to rank 1", said, re.M
    )
    assert len(told) == 1, said
    if "SPINLOOM_TEST_CFLAGS" not in os.environ:
        assert int(re.search(r"used (\d+) us", said)[1]) < 30_000, "of a second with a full channel"
    packets, bytes_ = map(int, told[0])
    assert bytes_ == 8 * packets, said
    assert 800 - 512 <= packets <= 800, said
    assert float(re.search(r"left after ([\d.]+) s", said)[1]) < seconds(60), said


DEATHS = ["puts", "large", "gets", "serves", "waits", "full"]


def deaths(program: Path, what: str, **settings: str) -> None:
    with Job([str(program), what], 3, env=settings) as job:
        victim = job.ranks[-1]

        def filled(_) -> bool:
            return all("has filled" in rank.text for rank in job.ranks[:-1])

        if what == "full":
            job.wait(LIMIT_S, until=filled)
            assert filled(job), job.said()
            victim.process.send_signal(signal.SIGKILL)
        assert job.wait(LIMIT_S) == [0, 0, -signal.SIGKILL], job.said()
        assert set(answers_of(job.said())) == {0, 1}, job.said()
    assert nothing_runs(program)


@pytest.mark.parametrize("what", DEATHS)
def test_the_others_hear_of_a_death_and_go_on(build, what):
    program = build("live_death.c")
    for copy in ("single-copy", "two-copy"):
        deaths(program, what, SPINLOOM_COPY=copy)
    if "SPINLOOM_TEST_CFLAGS" not in os.environ:
        deaths(program, what, SPINLOOM_COPY="heap", **PRELOADED)


@pytest.mark.parametrize("what", ["waits", "large", "sends", "blocks", "chain"])
def test_schedules_end_with_an_error_when_a_peer_dies(build, what):
    with Job([str(build("live_schedule_death.c")), what], 3) as job:
        assert job.wait(LIMIT_S) == [0, 0, -signal.SIGKILL], job.said()
        assert answers_of(job.said()) == {0: 6, 1: 6}, job.said()


@pytest.mark.parametrize(("what", "code"), [("killed", -signal.SIGKILL), ("leaves", 0)])
def test_opening_engines_ends_with_an_error_where_a_rank_is_gone(build, what, code):
    with Job([str(build("live_open_death.c")), what], 5) as job:
        assert job.wait(LIMIT_S) == [0, 0, 0, 0, code], job.said()
        assert answers_of(job.said()) == dict.fromkeys(range(4), 4), job.said()


def test_nothing_is_left_of_a_job_whose_rank_was_killed(build):
    """As users see it: mpiexec ends the other ranks, and the next job runs."""
    if "mpich" not in launchers.available():
        pytest.skip("there is no launcher of mpich")
    shared = set(os.listdir("/dev/shm"))
    program = build("live_death.c")
    command = [*launchers.available()["mpich"], "-n", "3", str(program), "large"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    assert done.returncode != 0
    assert nothing_runs(program)
    assert until(lambda: {path.name for path in Path("/dev/shm").glob("*spinloom*")} <= shared)
    run("mpich", 3, build("live_sleeper.c"))


@pytest.mark.parametrize("bytes_", [64, 1024])
@pytest.mark.parametrize("transport", ["shm", "udp"])
def test_data_keep_their_order_as_far_as_the_limits_say(build, transport, bytes_):
    faults = {"SPINLOOM_UDP_FAULTS": "drop=0.03,reorder=0.05,seed=5"} if transport == "udp" else {}
    output = run("mpich", 2, build("portals_order.c"), bytes_, SPINLOOM_TRANSPORT=transport, **faults)
    assert answers_of(output) == {0: 1, 1: 3}


def test_a_rank_that_has_left_and_lives_on_cannot_be_reached(build, tmp_path):
    program = build("live_late.c")
    with Job([str(program), str(tmp_path / "mark")], 3) as job:
        assert job.wait(LIMIT_S) == [0, 0, 0], job.said()
        assert answers_of(job.said()) == {0: 2, 1: 2}, job.said()


def test_handlers_that_are_not_there_are_told(build, tmp_path):
    broken = tmp_path / "broken.elf"
    broken.write_bytes(b"not an image")
    images = handler_folder()
    done = finished(build("live_refused.c"), broken, SPINLOOM_HANDLERS=str(images))
    said = done.stderr.splitlines()
    assert len(said) == 3, said
    assert said[0].startswith("spinloom: no handler image 'no_such_image' in")
    assert str(images) in said[0]
    assert str(broken) in said[1]
    assert said[2] == "spinloom: handler image 'accumulate' has no handler 'no_such_handler'"


@pytest.mark.parametrize("what", ["returns", "last", "forks"])
def test_ranks_leave_as_they_like(build, what):
    program = build("live_leave.c")
    with Job([str(program), what], 3) as job:
        assert job.wait(LIMIT_S) == [0, 0, 0], job.said()
        expected = {0, 1, 2} if what == "forks" else {0, 1}
        assert set(answers_of(job.said())) == expected, job.said()
