"""C programs on simulated NICs: the examples, and what a program may do wrong."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import launchers
from conftest import needs_engine
from spinloom import jobs, profiles, studies
from spinloom.lab import Lab

EXAMPLES = Path(__file__).resolve().parent.parent / "examples/portals"
NIC = "sc17-discrete"

pytestmark = [
    needs_engine,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


@pytest.fixture
def sim(spinloom):
    """sim(2, "program.c", "argument") is the run's exit code, its JSON, and what was said."""

    def run(ranks: int, *arguments: str, options: tuple[str, ...] = ()) -> tuple[int, dict, str]:
        ran = spinloom("sim", "-n", str(ranks), "--nic", NIC, "--json", *options, *map(str, arguments))
        return ran.code, json.loads(ran.out) if ran.out else {}, ran.err

    return run


@pytest.fixture
def source(tmp_path):
    """source("int main...") is a file with a program's main(), after the usual includes and helpers."""
    before = """
        #include <portals4.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <time.h>
        #include <unistd.h>
        static int rank_of(void) { return atoi(getenv("SPINLOOM_RANK")); }
        static int size_of(void) { return atoi(getenv("SPINLOOM_SIZE")); }
        static int deep(int levels) {
          volatile char frame[1024];
          frame[levels] = (char)levels;
          return levels == 0 ? 0 : deep(levels - 1) + frame[levels];
        }
        static ptl_handle_ni_t begin(unsigned options) {
          ptl_handle_ni_t ni;
          if (PtlInit() != PTL_OK) abort();
          if (PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) abort();
          return ni;
        }
        """

    def write(text: str, name: str = "program.c") -> Path:
        path = tmp_path / name
        path.write_text(before + text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("size_bytes", [8, 4096, 65536])
def test_a_ping_pong_takes_what_the_study_says_and_half_a_call(sim, size_bytes):
    """The program's clock starts before its put, whose call costs o; the study's starts after that."""
    code, ran, said = sim(2, EXAMPLES / "pingpong.c", size_bytes)
    assert code == 0, said
    measured_ns = float(re.fullmatch(r"\d+ B: ([\d.]+) ns\n", ran["output"])[1])
    expected_ps = Lab(1)[studies.probe("pingpong", NIC, "portals4", size_bytes)]["time_ps"]
    call_ps = profiles.load(NIC)["host.call"]
    assert measured_ns == pytest.approx((expected_ps + call_ps / 2) / 1000, abs=0.5)  # its clock counts ns


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
    code, ran, _ = sim(2, program, options=("--prefix",))
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
    assert "rank 0 waits in PtlCTWait (test 3; the counter has 2 successes and 0 failures)" in said
    assert "rank 1 waits in PtlEQWait" in said


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


def compile_with(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


def test_a_broadcast_reaches_every_rank(sim):
    code, ran, said = sim(13, EXAMPLES / "broadcast.c", 1000)
    assert code == 0, said
    assert re.fullmatch(r"1000 B to 13 ranks: \d+ ns\n", ran["output"])


def test_a_broadcast_to_one_rank_takes_what_the_study_says(sim):
    """The study's ranks are one wire further apart, those of a fat tree; the program's first call costs o."""
    code, ran, said = sim(2, EXAMPLES / "broadcast.c", 8)
    assert code == 0, said
    profile = profiles.load(NIC)
    study_ps = Lab(1)[studies.probe("broadcast", NIC, "portals4", 8)]["time_ps"]
    expected_ps = study_ps - profile["link.wire"] + profile["host.call"]
    took_ns = int(ran["output"].split()[-2])
    # Both readings of its clock are whole ns, and a counter is posted before.
    assert took_ns == pytest.approx(expected_ps / 1000, abs=2.5)


def test_unexpected_messages_wait_for_their_entries(sim):
    code, ran, said = sim(4, EXAMPLES / "unexpected.c")
    assert code == 0, said
    early = [f"PUT of rank {rank}, 8 B, entry overflow" for rank in (1, 2, 3)]
    each = [
        (f"PUT_OVERFLOW of rank {rank}, 'early {rank}'", f"PUT of rank {rank}, 'late {rank}'")
        for rank in (1, 2, 3)
    ]
    assert ran["output"].splitlines() == early + [line for pair in each for line in pair]


@pytest.mark.parametrize("size_bytes", [8, 65536])
def test_handlers_answer_as_the_study_says(sim, size_bytes):
    code, ran, said = sim(2, EXAMPLES / "handlers.c", size_bytes)
    assert code == 0, said
    measured_ns = float(re.fullmatch(r"\d+ B: ([\d.]+) ns\n", ran["output"])[1])
    expected_ps = Lab(1)[studies.probe("pingpong", NIC, "stream", size_bytes)]["time_ps"]
    call_ps = profiles.load(NIC)["host.call"]
    assert measured_ns == pytest.approx((expected_ps + call_ps / 2) / 1000, abs=0.5)


def test_a_handler_of_ones_own_counts_and_wrong_names_are_refused(sim, source, tmp_path):
    handler = tmp_path / "count.c"
    handler.write_text(
        """
        #include "spinloom/handler.h"
        int payload_handler(const ptl_payload_t p, void *state) {
          uint64_t *const kept = state;
          kept[0] += p.length * *(const uint32_t *)spl_constants();
          return PtlHandlerDMAToHostB(kept, 0, 8, PTL_DMA_NO_EVENT);
        }
        """,
        encoding="utf-8",
    )
    program = source(
        """
        #include <portals4_spin.h>
        int main(void) {
          ptl_handle_ni_t ni = begin(PTL_NI_MATCHING | PTL_NI_LOGICAL);
          ptl_process_t to = {.rank = 0};
          uint64_t sum = 0, first = 1000;
          uint32_t factor = 3;
          char out[100] = "";
          ptl_pt_index_t pt;
          ptl_handle_ct_t ct;
          ptl_handle_me_t handle;
          ptl_handle_md_t md;
          ptl_hpu_md_h memory;
          ptl_ct_event_t count;
          PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt);
          PtlCTAlloc(ni, &ct);
          PtlHPUAllocMem(8, ni, &memory);
          ptl_me_t me = {.start = &sum, .length = sizeof sum, .ct_handle = ct, .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, .match_id = to};
          ptl_spin_t spin = {.image = "count", .payload_handler = "payload_handler", .hpu_memory = memory,
                             .hpu_initial_state = &first, .hpu_initial_state_length = sizeof first,
                             .constants = &factor, .constants_length = sizeof factor};
          ptl_spin_t wrong = spin;
          wrong.image = "nobody";
          printf("%d ", PtlSpinMEAppend(ni, pt, &me, &wrong, PTL_PRIORITY_LIST, NULL, &handle));
          wrong = spin;
          wrong.payload_handler = "nothing";
          printf("%d ", PtlSpinMEAppend(ni, pt, &me, &wrong, PTL_PRIORITY_LIST, NULL, &handle));
          wrong = spin;
          wrong.hpu_memory = ct;
          printf("%d ", PtlSpinMEAppend(ni, pt, &me, &wrong, PTL_PRIORITY_LIST, NULL, &handle));
          printf("%d ", PtlSpinMEAppend(ni, pt, &me, &spin, PTL_PRIORITY_LIST, NULL, &handle));
          ptl_md_t from = {.start = out, .length = sizeof out, .eq_handle = PTL_EQ_NONE,
                           .ct_handle = PTL_CT_NONE};
          PtlMDBind(ni, &from, &md);
          PtlPut(md, 0, sizeof out, PTL_NO_ACK_REQ, to, pt, 0, 0, NULL, 0);
          PtlCTWait(ct, 1, &count);
          printf("%llu ", (unsigned long long)sum);
          printf("%d ", PtlHPUFreeMem(&memory));
          printf("%d ", PtlMEUnlink(handle));
          printf("%d ", PtlHPUFreeMem(&memory));
          printf("%d\\n", PtlPTFree(ni, pt));
          return 0;
        }
        """
    )
    code, ran, said = sim(1, program, options=("--handler", str(handler)))
    assert code == 0, said
    in_use = 7
    assert ran["output"] == f"1 1 1 0 {1000 + 3 * 100} {in_use} 0 0 0\n"


def test_the_rest_of_spin_is_there_for_c_programs(sim, source, tmp_path):
    """Streams, process-puts, activation, the host's own messages, telemetry, persistent operations."""
    handler = tmp_path / "many.c"
    handler.write_text(
        """
        #include "spinloom/handler.h"
        int payload_handler(const ptl_payload_t p, void *state) {
          uint64_t *const kept = state;
          kept[0] += p.length;
          return PtlHandlerDMAToHostB(kept, 0, 8, PTL_DMA_NO_EVENT);
        }
        """,
        encoding="utf-8",
    )
    filler = tmp_path / "fill.c"
    filler.write_text(
        """
        #include "spinloom/handler.h"
        int payload_handler(const ptl_payload_t p, void *state) {
          (void)state;
          return PtlHandlerDMAFromHostNB(p.offset, (void *)p.base, p.length, PTL_ME_HOST_MEM, NULL);
        }
        """,
        encoding="utf-8",
    )
    program = source(
        """
        #include <portals4_spin.h>
        static int wrong;
        #define IS(expected, what) do { long long x = (long long)(what); if (x != (long long)(expected)) { \\
          ++wrong; printf("line %d: %s is %lld\\\\n", __LINE__, #what, x); } } while (0)
        int main(void) {
          ptl_handle_ni_t ni = begin(PTL_NI_MATCHING | PTL_NI_LOGICAL);
          ptl_process_t to = {.rank = 0};
          static char out[6000], in[6000];
          uint64_t sum = 0, zero = 0, mask = 1;
          ptl_size_t count;
          ptl_pt_index_t pt;
          ptl_handle_ct_t ct, landed, other;
          ptl_handle_me_t plain, spin_entry, host_entry;
          ptl_handle_md_t md;
          ptl_hpu_md_h memory;
          ptl_handle_sput_t sput;
          ptl_handle_spin_t context;
          ptl_ct_event_t now;
          for (unsigned i = 0; i < sizeof out; ++i) out[i] = (char)(i * 11 + i / 256);
          IS(PTL_OK, PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
          PtlCTAlloc(ni, &ct);
          PtlCTAlloc(ni, &landed);
          PtlCTAlloc(ni, &other);
          ptl_me_t me = {.start = in, .length = sizeof in, .ct_handle = landed, .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, .match_id = to, .match_bits = 1};
          IS(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &plain));
          ptl_md_t from = {.start = out, .length = sizeof out, .options = PTL_MD_EVENT_CT_SEND,
                           .eq_handle = PTL_EQ_NONE, .ct_handle = ct};
          IS(PTL_OK, PtlMDBind(ni, &from, &md));

          /* One message of three regions, the last of which comes first in memory. */
          IS(PTL_OK, PtlSPutStart(md, 5000, PTL_NO_ACK_REQ, to, pt, 1, 0, NULL, 0,
                                  (ptl_region_t){3000, 2500}, &sput));
          IS(PTL_ARG_INVALID, PtlMDRelease(md));
          IS(PTL_OK, PtlSPutStream(sput, (ptl_region_t){2000, 1000}, 0));
          IS(PTL_ARG_INVALID, PtlSPutStream(sput, (ptl_region_t){0, 1}, 1));
          IS(PTL_OK, PtlSPutStream(sput, (ptl_region_t){10, 1500}, 1));
          IS(PTL_ARG_INVALID, PtlSPutStream(sput, (ptl_region_t){0, 0}, 1));
          IS(PTL_OK, PtlCTWait(landed, 1, &now));
          IS(0, memcmp(in, out + 3000, 2500) | memcmp(in + 2500, out + 2000, 1000) |
                    memcmp(in + 3500, out + 10, 1500));

          /* Handlers that wait for their activation, on one HPU. */
          IS(PTL_OK, PtlHPUAllocMem(8, ni, &memory));
          ptl_me_t spun = me;
          spun.start = &sum;
          spun.length = sizeof sum;
          spun.match_bits = 2;
          ptl_spin_t spin = {.image = "many", .payload_handler = "payload_handler", .hpu_memory = memory,
                             .hpu_initial_state = &zero, .hpu_initial_state_length = sizeof zero,
                             .options = PTL_SPIN_INACTIVE, .packets_in_row = 1, .virtual_hpus = 1,
                             .core_mask = &mask, .core_mask_words = 1};
          ptl_spin_t bad = spin;
          bad.options = 0x80;
          IS(PTL_ARG_INVALID, PtlSpinMEAppend(ni, pt, &spun, &bad, PTL_PRIORITY_LIST, NULL, &spin_entry));
          IS(PTL_OK, PtlSpinMEAppend(ni, pt, &spun, &spin, PTL_PRIORITY_LIST, NULL, &spin_entry));
          IS(PTL_OK, PtlPut(md, 0, 100, PTL_NO_ACK_REQ, to, pt, 2, 0, NULL, 0));
          usleep(100);
          IS(0, sum);
          IS(PTL_OK, PtlSpinActivate(spin_entry));
          IS(PTL_ARG_INVALID, PtlSpinActivate(spin_entry));
          IS(PTL_ARG_INVALID, PtlSpinActivate(plain));
          IS(PTL_OK, PtlPut(md, 0, 5000, PTL_NO_ACK_REQ, to, pt, 2, 0, NULL, 0));
          IS(PTL_OK, PtlCTWait(landed, 2, &now));
          IS(5000, sum);
          IS(PTL_OK, PtlSpinTelemetry(ni, spin_entry, PTL_SPIN_PAYLOAD_HANDLERS, &count));
          IS(2, count); /* packets of 4 KiB */
          IS(PTL_OK, PtlSpinTelemetry(ni, PTL_INVALID_HANDLE, PTL_SPIN_REFUSED_MESSAGES, &count));
          IS(1, count);
          IS(PTL_ARG_INVALID, PtlSpinTelemetry(ni, spin_entry, PTL_SPIN_COUNT_LAST, &count));

          void *block = NULL;
          IS(PTL_OK, PtlSpinHeapAlloc(100000, &block));
          memset(block, 1, 100000);
          IS(PTL_OK, PtlSpinHeapFree(block));
          IS(PTL_ARG_INVALID, PtlSpinHeapFree(block));

          /* The host's own message, to an entry that matches nothing. */
          spin.options = PTL_SPIN_HOST_ACTIVATED;
          spin.hpu_initial_state = NULL;
          spun.match_bits = 3;
          IS(PTL_OK, PtlSpinMEAppend(ni, pt, &spun, &spin, PTL_PRIORITY_LIST, NULL, &host_entry));
          IS(PTL_OK, PtlSpinInvoke(host_entry, out, 77, 0));
          IS(PTL_OK, PtlCTWait(landed, 3, &now));
          IS(5077, sum);

          /* A put whose packets the sender's handlers fill. */
          memset(in, 0, sizeof in);
          ptl_spin_t filler = {.image = "fill", .payload_handler = "payload_handler",
                               .hpu_memory = PTL_HPU_MEM_NONE};
          IS(PTL_OK, PtlSpinContextAlloc(ni, &filler, &context));
          IS(PTL_OK, PtlProcessPut(md, 500, 5000, 5000, PTL_NO_ACK_REQ, to, pt, 1, 0, NULL, 0, context));
          IS(PTL_OK, PtlCTWait(landed, 4, &now));
          IS(0, memcmp(in, out + 500, 5000));
          IS(PTL_ARG_INVALID,
             PtlProcessPut(md, 5999, 2, 2, PTL_NO_ACK_REQ, to, pt, 1, 0, NULL, 0, context));
          IS(PTL_OK, PtlSpinContextFree(context));
          IS(PTL_ARG_INVALID, PtlSpinContextFree(context));

          /* A persistent operation counts again and again. */
          IS(PTL_OK, PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
          IS(PTL_OK, PtlCTPersist(ct, 2));
          IS(PTL_OK, PtlTriggeredCTInc(other, (ptl_ct_event_t){1, 0}, ct, 2));
          for (int i = 0; i < 6; ++i) IS(PTL_OK, PtlCTInc(ct, (ptl_ct_event_t){1, 0}));
          IS(PTL_OK, PtlCTWait(other, 3, &now));
          IS(3, now.success);
          PtlFini();
          return wrong;
        }
        """
    )
    code, ran, said = sim(1, program, options=("--handler", str(handler), "--handler", str(filler)))
    assert code == 0, said + ran.get("output", "")


def test_wrong_arguments_are_answered_and_stale_handles_name_nothing(sim):
    code, ran, said = sim(2, Path(__file__).parent / "portals_arguments.c")
    assert code == 0, said
    assert ran["output"] == "rank 0: 50 answers\nrank 1: 50 answers\n"


def test_options_decide_what_is_counted_and_told(sim):
    code, ran, said = sim(1, Path(__file__).parent / "portals_options.c")
    assert (code, ran["output"]) == (0, "82 answers\n"), said


def test_gets_and_atomics_bring_back_and_change_what_they_say(sim):
    code, ran, said = sim(2, Path(__file__).parent / "portals_fetch.c")
    assert code == 0, said
    assert ran["output"].splitlines() == ["rank 1: 36 answers", "rank 0: 102 answers"]


CONFORMANCE = {
    # program: (ranks, answers of each rank)
    "portals_status.c": (2, [39, 22]),
    "portals_iovec.c": (2, [114, 114]),
    "portals_flow.c": (2, [426, 62]),
    "portals_later.c": (2, [184, 184]),
    "portals_disable.c": (2, [10, 4]),
    "portals_order.c": (2, [1, 3]),
}


@pytest.mark.parametrize("name", CONFORMANCE)
def test_the_library_does_what_portals_says(sim, name):
    """Programs that rely on messages only, not on modelled time: they hold on any driver."""
    ranks, answers = CONFORMANCE[name]
    code, ran, said = sim(ranks, Path(__file__).parent / name)
    lines = [f"rank {rank}: {answers[rank]} answers" for rank in range(ranks)]
    assert (code, sorted(ran["output"].splitlines())) == (0, lines), said + ran["output"]


def test_list_entries_take_what_comes_and_interfaces_do_not_mix(sim, source):
    """In C++, on physical interfaces; a portal table index beyond an interface's own finds nothing."""
    program = source(
        """
        int main() {
          const ptl_handle_ni_t ni = begin(PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL);
          ptl_process_t me, to;
          ptl_handle_ct_t landed, acked;
          ptl_handle_le_t handle;
          ptl_handle_md_t md;
          ptl_pt_index_t pt;
          ptl_ct_event_t count;
          char in[8] = "", out[8] = "list";
          PtlGetPhysId(ni, &me);
          to = me;
          to.phys.nid = 1 - me.phys.nid;
          PtlPTAlloc(ni, 0, PTL_EQ_NONE, 3, &pt);
          PtlCTAlloc(ni, &landed);
          PtlCTAlloc(ni, &acked);
          ptl_le_t le = {in, sizeof in, landed, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
          ptl_me_t me_entry = {};
          printf("%d ", PtlMEAppend(ni, pt, &me_entry, PTL_PRIORITY_LIST, nullptr, &handle));
          printf("%d ", PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &handle));
          ptl_md_t what = {out, sizeof out, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked};
          PtlMDBind(ni, &what, &md);
          usleep(100);
          if (me.phys.nid == 0) PtlPut(md, 0, sizeof out, PTL_CT_ACK_REQ, to, pt, 99, 0, nullptr, 0);
          if (me.phys.nid == 0) PtlPut(md, 0, sizeof out, PTL_CT_ACK_REQ, to, pt + 64, 99, 0, nullptr, 0);
          if (me.phys.nid == 0) PtlCTWait(acked, 2, &count);
          else PtlCTWait(landed, 1, &count);
          printf("%s %d %d\\n", in, int(count.success), int(count.failure));
          return 0;
        }
        """,
        "program.cpp",
    )
    code, ran, said = sim(2, program)
    assert code == 0, said
    assert sorted(ran["output"].splitlines()) == ["1 0  1 1", "1 0 list 1 0"]


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
    launched = wait_for(
        lambda: [pid for pid in children.read_text().split() if "spinloom-sim" in command_of(pid)]
    )
    started.kill()
    started.wait()
    assert wait_for(lambda: not running(launched[0]))


def command_of(pid: str) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def running(pid: str) -> bool:
    """Not gone, and not only waiting for somebody who asks how it ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_for(ready, seconds: float = 30):
    end = time.monotonic() + seconds
    while not (found := ready()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def test_a_sleep_beyond_the_clock_is_told(sim, source):
    program = source("int main(void) { struct timespec t = {5000000000, 0}; nanosleep(&t, NULL); return 0; }")
    code, _, said = sim(1, program)
    assert code != 0
    assert "sleeps longer than modelled time goes" in said


LIVE_EXAMPLES = {
    # program: (ranks, argument, what each line is)
    "pingpong.c": (2, "5000", [r"5000 B: [\d.]+ ns"]),
    "broadcast.c": (5, "5000", [r"5000 B to 5 ranks: \d+ ns"]),
    "handlers.c": (2, "5000", [r"5000 B: [\d.]+ ns"]),
    "unexpected.c": (
        3,
        "",
        [
            *(rf"PUT of rank {rank}, 8 B, entry overflow" for rank in (1, 2)),
            *(
                rf"{kind} of rank {rank}, '{when} {rank}'"
                for kind, when in (("PUT", "late"), ("PUT_OVERFLOW", "early"))
                for rank in (1, 2)
            ),
        ],
    ),
}


@pytest.mark.parametrize("launcher", launchers.found())
@pytest.mark.parametrize("name", LIVE_EXAMPLES)
def test_an_example_does_the_same_between_processes(tmp_path, name, launcher):
    """The bytes are compared by the programs; here their lines, but for times and for who came first."""
    ranks, argument, expected = LIVE_EXAMPLES[name]
    program = tmp_path / "program"
    compile_with("cc", EXAMPLES / name, "-o", program, *jobs.compile_options(), *jobs.link_options())
    ran = launchers.run(launcher, ranks, program, *argument.split())
    assert ran.returncode == 0, ran.stderr
    lines = sorted(ran.stdout.splitlines())
    assert len(lines) == len(expected), ran.stdout
    for line, pattern in zip(lines, sorted(expected), strict=True):
        assert re.fullmatch(pattern, line)
