"""Handlers of C programs that `spinloom sim` runs."""

from __future__ import annotations

import re

import pytest

from c_programs import EXAMPLES, NIC, needs_compiler
from conftest import needs_engine
from spinloom.nics import profiles
from spinloom.papers import studies
from spinloom.papers.lab import Lab

pytestmark = [needs_engine, needs_compiler]


@pytest.mark.parametrize("size_bytes", [8, 65536])
def test_handlers_answer_as_the_study_says(sim, size_bytes):
    code, ran, said = sim(2, EXAMPLES / "handlers.c", size_bytes)
    assert code == 0, said
    measured_ns = float(re.fullmatch(r"\d+ B: ([\d.]+) ns\n", ran["output"])[1])
    expected_ps = Lab(1)[studies.probe("pingpong", NIC, "stream", size_bytes)]["time_ps"]
    call_ps = profiles.load(NIC)["host.call"]
    assert measured_ns == pytest.approx((expected_ps + call_ps / 2) / 1000, abs=0.5)


def test_a_handler_of_ones_own_counts_and_wrong_names_are_refused(sim, source, tmp_path):
    # Rules: SPIN-2.3, SPIN-3.3, SPIN-3.5.
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
    code, ran, said = sim(1, program, options=("--handlers", str(handler)))
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
    code, ran, said = sim(1, program, options=("--handlers", str(handler), "--handlers", str(filler)))
    assert code == 0, said + ran.get("output", "")
