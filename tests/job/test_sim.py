"""C programs on simulated NICs: what a program may do, and do wrong."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from c_programs import compile_with, needs_compiler
from conftest import needs_engine
from patience import until

pytestmark = [needs_engine, needs_compiler]


def test_ranks_have_their_own_globals_arguments_and_environment(sim, source):
    program = source(
        """
        static int counted = 100;
        static _Thread_local int local = 7;
        int main(int argc, char **argv) {
          counted += rank_of();
          local += rank_of();
          int letter, verbose = 0;
          while ((letter = getopt(argc, argv, "v")) != -1) verbose += letter == 'v';
          printf("%d of %d: %d %d %d %s\\n", rank_of(), size_of(), counted, local, verbose, argv[argc - 1]);
          return 0;
        }
        """
    )
    code, ran, said = sim(3, program, "-v", "last")
    assert code == 0, said
    assert ran["output"].splitlines() == [f"{rank} of 3: {100 + rank} {7 + rank} 1 last" for rank in range(3)]


def test_the_clock_is_modelled_time_and_every_run_the_same(sim, source):
    program = source(
        """
        int main(void) {
          struct timespec before, after;
          clock_gettime(CLOCK_REALTIME, &before);
          usleep(5 * rank_of());
          clock_gettime(CLOCK_REALTIME, &after);
          printf("%ld %ld\\n", before.tv_nsec, after.tv_nsec);
          return (int)(after.tv_sec - before.tv_sec);
        }
        """
    )
    first, second = (sim(3, program, options=("--quiet",)) for _ in range(2))
    assert first == second
    assert first[1]["output"].splitlines() == ["0 0", "0 5000", "0 10000"]
    assert first[1]["time_ps"] == 10_000_000


def test_csv_has_a_row_for_each_rank_and_the_output_apart(spinloom, source):
    program = source('int main(void) { puts("said"); return 0; }')
    ran = spinloom("sim", "-n", "2", "--csv", "--quiet", str(program))
    assert (ran.code, ran.err) == (0, "said\nsaid\n")
    assert ran.out.splitlines() == ["rank,end_ps,exit_code,calls", "0,0,0,0", "1,0,0,0"]


def test_lines_of_ranks_do_not_mix_and_have_their_names(sim, source):
    program = source(
        """
        int main(void) {
          for (int part = 0; part < 3; ++part) {
            printf("part %d, ", part);
            usleep(1);
          }
          printf("end\\nunfinished");
          return 0;
        }
        """
    )
    code, ran, _ = sim(2, program, options=("--label",))
    assert code == 0
    line = "part 0, part 1, part 2, end"
    assert ran["output"] == f"[0] {line}\n[0] unfinished\n[1] {line}\n[1] unfinished\n"


@pytest.mark.parametrize(
    ("body", "sentences"),
    [
        ("return rank_of() == 1 ? 3 : 0;", ["rank 1 ended with exit code 3"]),
        ("if (rank_of() == 1) exit(4); usleep(9); return 0;", ["exit code 4", "1 of 2 ranks had not ended"]),
        ("if (rank_of() == 1) abort(); return 0;", ["rank 1 crashed", "abort()"]),
        (
            "if (rank_of() == 1) { volatile int *p = (int *)16; usleep(1); return *p; } return 0;",
            ["rank 1 crashed at 1.000 us", "segmentation fault at address 0x10, in main()"],
        ),
        (
            "return deep(1000);",
            ["ran over the end of its stack"],
        ),
        ("volatile int zero = 0; return 7 / zero;", ["rank 0 crashed", "arithmetic"]),
    ],
)
def test_a_rank_that_goes_wrong_ends_the_run_and_says_who(sim, source, body, sentences):
    program = source(f'int main(void) {{ printf("before\\n"); {body} }}')
    code, ran, said = sim(2, program, options=("--stack", "64KiB"))
    assert code == 1
    assert ran["output"].startswith("before\n")
    assert ran["output"].count("before\n") <= 2  # once a rank
    for sentence in sentences:
        assert sentence in said
        assert sentence in ran["trouble"]


def test_ranks_that_wait_for_ever_are_named_with_their_calls(sim, source):
    program = source(
        """
        int main(void) {
          ptl_handle_ni_t ni = begin(PTL_NI_MATCHING | PTL_NI_LOGICAL);
          ptl_handle_ct_t ct;
          ptl_handle_eq_t eq;
          ptl_ct_event_t count;
          ptl_event_t event;
          PtlCTAlloc(ni, &ct);
          PtlEQAlloc(ni, 8, &eq);
          PtlCTInc(ct, (ptl_ct_event_t){2, 0});
          return rank_of() == 0 ? PtlCTWait(ct, 3, &count) : PtlEQWait(eq, &event);
        }
        """
    )
    code, _, said = sim(2, program)
    assert code == 1
    counter = r"rank 0 waits in PtlCTWait \(test 3, counter 0x[0-9a-f]+ has 2 successes and 0 failures\)"
    assert re.search(counter, said)
    assert re.search(r"rank 1 waits in PtlEQWait \(event queue 0x[0-9a-f]+\)", said)


def test_an_executable_linked_with_the_library_runs_too(sim, source, tmp_path, spinloom):
    program = source(
        'int main(void) { begin(PTL_NI_MATCHING | PTL_NI_PHYSICAL); printf("here\\n"); return 0; }'
    )
    executable = tmp_path / "program"
    flags, libraries = (spinloom("sim", option).out.split() for option in ("--cflags", "--libs"))
    compile_with("cc", *flags, program, "-o", executable, *libraries)
    code, ran, said = sim(3, executable)
    assert (code, ran["output"]) == (0, "here\n" * 3), said


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("int main(void) { return 0; }", ["-no-pie"], "not position-independent"),
        ("_Thread_local int x; int main(void) { return x; }", ["-pie", "-fPIE"], "thread-local variables"),
        ("int main(void) { return optind; }", ["-pie", "-fPIE"], "own copy of the library's variable optind"),
        ("int one(void) { return 0; }", ["-shared", "-fPIC"], "no function main()"),
    ],
)
def test_a_program_that_cannot_be_loaded_is_refused(sim, tmp_path, text, options, sentence):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(f"#include <unistd.h>\n{text}\n", encoding="utf-8")
    compile_with("cc", *options, source, "-o", program)
    code, _, said = sim(2, program)
    assert code == 2
    assert sentence in said


def test_output_that_cannot_be_written_is_told(source):
    program = source('int main(void) { for (int i = 0; i < 100000; ++i) printf("line %d\\n", i); return 0; }')
    command = [sys.executable, "-m", "spinloom.cli", "sim", "-n", "2", str(program)]
    with open("/dev/full", "w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 3
    assert "standard output cannot be written" in ran.stderr
    piped = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$@" | head -1', "bash", *command], capture_output=True, text=True
    )
    assert (piped.returncode, piped.stdout) == (141, "line 0\n")


def test_the_simulation_ends_with_whoever_started_it(source):
    program = source("int main(void) { for (;;); }")
    command = [sys.executable, "-m", "spinloom.cli", "sim", "-n", "1", str(program)]
    started = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    launched = until(
        lambda: [pid for pid in children.read_text().split() if "spinloom-sim" in command_of(pid)]
    )
    started.kill()
    started.wait()
    assert until(lambda: not running(launched[0]))


def command_of(pid: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def running(pid: str) -> bool:
    """Not gone, and not only waiting for somebody who asks how it ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


FLAG = """
static volatile long flag, one = 1;
__attribute__((noinline)) int run(void) {
  ptl_handle_ni_t ni = begin(PTL_NI_MATCHING | PTL_NI_LOGICAL);
  ptl_pt_index_t pt;
  ptl_handle_ct_t ct;
  ptl_handle_eq_t eq;
  ptl_handle_me_t me;
  ptl_handle_md_t md;
  ptl_ct_event_t count;
  ptl_event_t event;
  unsigned which;
  ptl_size_t test = 1;
  struct timespec now, zero = {0, 1};
  (void)event, (void)which, (void)test, (void)now, (void)zero;
  PtlEQAlloc(ni, 8, &eq);
  PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt);
  PtlCTAlloc(ni, &ct);
  ptl_me_t where = {.start = (void *)&flag, .length = 8, .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT, .match_id.rank = PTL_RANK_ANY};
  PtlMEAppend(ni, pt, &where, PTL_PRIORITY_LIST, NULL, &me);
  if (rank_of() == 1) {
    LOOKS;
    return 0;
  }
  ptl_md_t what = {.start = (void *)&one, .length = 8, .options = PTL_MD_EVENT_CT_ACK,
                   .eq_handle = PTL_EQ_NONE, .ct_handle = ct};
  PtlMDBind(ni, &what, &md);
  do {
    usleep(100);
    PtlCTSet(ct, (ptl_ct_event_t){0, 0});
    PtlPut(md, 0, 8, PTL_CT_ACK_REQ, (ptl_process_t){.rank = 1}, pt, 0, 0, NULL, 0);
    PtlCTWait(ct, 1, &count);
  } while (!count.success);
  return 0;
}
int main(void) { return run(); }
"""


@pytest.mark.parametrize(
    "looks",
    [
        "while (!flag) PtlCTGet(ct, &count)",
        "while (!flag) PtlEQGet(eq, &event)",
        "while (!flag) PtlCTPoll(&ct, &test, 1, 0, &count, &which)",
        "while (!flag) PtlEQPoll(&eq, 1, 0, &event, &which)",
        "while (!flag) sched_yield()",
        "while (!flag) usleep(1)",
        "while (!flag) clock_nanosleep(CLOCK_MONOTONIC, 0, &zero, NULL)",
        "while (!flag) clock_gettime(CLOCK_MONOTONIC, &now)",
        "while (!flag) time(NULL)",
    ],
)
def test_a_rank_that_looks_by_calls_sees_what_comes(sim, source, looks):
    program = source("#include <sched.h>\n" + FLAG.replace("LOOKS", looks))
    code, first, said = sim(2, program, options=("--quiet",))
    assert code == 0, said
    assert sim(2, program, options=("--quiet",))[1] == first


def test_a_clock_that_is_looked_at_for_long_goes_on(sim, source):
    """A program that waits for a time; the first looks are free, as ever."""
    program = source(
        """
        static long now_ns(void) {
          struct timespec now;
          clock_gettime(CLOCK_MONOTONIC, &now);
          return now.tv_sec * 1000000000 + now.tv_nsec;
        }
        int main(void) {
          for (int i = 0; i < 999; ++i) if (now_ns() != 0) return 1;
          while (now_ns() < 1000000) {}
          return now_ns() > 2000000;
        }
        """
    )
    code, ran, said = sim(1, program, options=("--quiet",))
    assert (code, ran["time_ps"] >= 10**9) == (0, True), said


def test_a_rank_that_looks_at_its_memory_only_ends_the_run_and_says_who(sim, source, monkeypatch):
    monkeypatch.setenv("SPINLOOM_SIM_COMPUTE_S", "1")
    program = source(FLAG.replace("LOOKS", 'printf("looks\\n"); while (!flag) __sync_synchronize()'))
    code, ran, said = sim(2, program)
    assert code == 1
    assert "rank 1 has computed for 1 s without a call, in run(), and modelled time stands still at" in said
    assert "the last Portals call was PtlMEAppend" in said
    assert "SPINLOOM_SIM_COMPUTE_S" in said
    assert ran["output"] == "looks\n"


@pytest.mark.parametrize("limit", ["0", "300"])
def test_a_rank_may_compute_for_long(sim, source, monkeypatch, limit):
    """By its processor time, which the simulation leaves alone; each rank has the limit for itself."""
    monkeypatch.setenv("SPINLOOM_SIM_COMPUTE_S", limit)
    program = source(
        'int main(void) { clock_t end = clock() + CLOCKS_PER_SEC; while (clock() < end) {} puts("end"); }'
    )
    code, ran, said = sim(2, program)
    assert (code, ran["output"]) == (0, "end\nend\n"), said


def test_the_limit_is_each_stretch_s_own(sim, source, monkeypatch):
    """Three ranks that compute for a time shorter than the limit, twice: together longer than it."""
    monkeypatch.setenv("SPINLOOM_SIM_COMPUTE_S", "1")
    program = source(
        """
        static void compute(void) { clock_t end = clock() + CLOCKS_PER_SEC / 2; while (clock() < end) {} }
        int main(void) { compute(); usleep(1); compute(); return 0; }
        """
    )
    code, _, said = sim(3, program)
    assert code == 0, said


@pytest.mark.parametrize("given", ["-1", "1.5", "many", "1000001"])
def test_a_limit_that_is_none_is_told(sim, source, monkeypatch, given):
    monkeypatch.setenv("SPINLOOM_SIM_COMPUTE_S", given)
    code, _, said = sim(1, source("int main(void) { return 0; }"))
    assert code == 2
    assert "SPINLOOM_SIM_COMPUTE_S=" in said
    assert "whole seconds" in said


def test_a_sleep_beyond_the_clock_is_told(sim, source):
    program = source("int main(void) { struct timespec t = {5000000000, 0}; nanosleep(&t, NULL); return 0; }")
    code, _, said = sim(1, program)
    assert code != 0
    assert "sleeps longer than modelled time goes" in said
