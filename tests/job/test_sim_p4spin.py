"""The host's side of sPIN for Portals 4 (SC'17 paper, appendix B.1 and B.2), and what header handlers see."""

from __future__ import annotations

from c_programs import needs_compiler
from conftest import needs_engine

pytestmark = [needs_engine, needs_compiler]

START = """
#include <portals4_spin.h>
static int wrong;
#define IS(expected, what) do { long long x = (long long)(what); if (x != (long long)(expected)) { \\
  ++wrong; printf("line %d: %s is %lld\\n", __LINE__, #what, x); } } while (0)
static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;
static ptl_handle_ct_t landed;
static ptl_process_t to = {.rank = 0};
static ptl_handle_me_t entry;

static ptl_handle_md_t bound(void *start, ptl_size_t length) {
  ptl_md_t from = {.start = start, .length = length, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  IS(PTL_OK, PtlMDBind(ni, &from, &md));
  return md;
}
static int append(void *start, ptl_size_t length, ptl_match_bits_t bits, const ptl_spin_t *handlers) {
  ptl_me_t me = {.start = start, .length = length, .ct_handle = landed, .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                 .match_id = {.rank = PTL_RANK_ANY}, .match_bits = bits};
  return PtlSpinMEAppend(ni, pt, &me, handlers, PTL_PRIORITY_LIST, NULL, &entry);
}
static void wait_for(int messages) {
  ptl_ct_event_t count;
  IS(PTL_OK, PtlCTWait(landed, (ptl_size_t)messages, &count));
  IS(0, count.failure);
}
static void start(void) {
  ni = begin(PTL_NI_MATCHING | PTL_NI_LOGICAL);
  IS(PTL_OK, PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
  IS(PTL_OK, PtlCTAlloc(ni, &landed));
}
"""

ADD = """
#include "spinloom/handler.h"
int payload_handler(const ptl_payload_t p, void *state) {
  uint64_t *const kept = state;
  kept[0] += p.length;
  return PtlHandlerDMAToHostB(kept, 0, 8, PTL_DMA_NO_EVENT);
}
"""


def run(sim, source, tmp_path, handler: str, program: str, ranks: int = 1) -> str:
    path = tmp_path / "mine.c"
    path.write_text(handler, encoding="utf-8")
    code, ran, said = sim(ranks, source(START + program), options=("--handlers", str(path)))
    assert code == 0, said + ran.get("output", "")
    return ran["output"]


def test_hpu_memory_lasts_until_it_is_freed_and_is_written_by_initial_states_only(sim, source, tmp_path):
    """Three entries, one after the other, over the same memory; only the first gives an initial state."""
    # Rules: SPIN-3.2, SPIN-3.5, SPIN-3.6, SPIN-4.6.
    program = """
    int main(void) {
      static char out[100];
      uint64_t sum = 0, first = 1000;
      ptl_hpu_md_h memory;
      start();
      ptl_handle_md_t md = bound(out, sizeof out);
      IS(PTL_OK, PtlHPUAllocMem(8, ni, &memory));
      ptl_spin_t spin = {.image = "mine", .payload_handler = "payload_handler", .hpu_memory = memory,
                         .hpu_initial_state = &first, .hpu_initial_state_length = sizeof first};
      for (int turn = 0; turn < 3; ++turn) {
        IS(PTL_OK, append(&sum, sizeof sum, 1, &spin));
        IS(PTL_OK, PtlPut(md, 0, sizeof out, PTL_NO_ACK_REQ, to, pt, 1, 0, NULL, 0));
        wait_for(turn + 1);
        IS(1000 + 100 * (turn + 1), sum);
        IS(PTL_OK, PtlMEUnlink(entry));
        spin.hpu_initial_state = NULL;
      }
      IS(PTL_OK, PtlHPUFreeMem(&memory));
      IS(PTL_ARG_INVALID, PtlHPUFreeMem(&memory));
      return wrong;
    }
    """
    run(sim, source, tmp_path, ADD, program)


def test_two_entries_share_their_hpu_memory(sim, source, tmp_path):
    # Rules: SPIN-3.4, SPIN-3.6.
    program = """
    int main(void) {
      static char out[100];
      uint64_t sums[2] = {0}, zero = 0;
      ptl_hpu_md_h memory;
      start();
      ptl_handle_md_t md = bound(out, sizeof out);
      IS(PTL_OK, PtlHPUAllocMem(8, ni, &memory));
      ptl_spin_t spin = {.image = "mine", .payload_handler = "payload_handler", .hpu_memory = memory,
                         .hpu_initial_state = &zero, .hpu_initial_state_length = sizeof zero};
      IS(PTL_OK, append(&sums[0], 8, 1, &spin));
      spin.hpu_initial_state = NULL;
      IS(PTL_OK, append(&sums[1], 8, 2, &spin));
      for (int turn = 0; turn < 4; ++turn) {
        IS(PTL_OK, PtlPut(md, 0, 10 + turn, PTL_NO_ACK_REQ, to, pt, 1 + turn % 2, 0, NULL, 0));
        wait_for(turn + 1);
      }
      IS(10 + 11 + 12, sums[0]);
      IS(10 + 11 + 12 + 13, sums[1]);
      return wrong;
    }
    """
    run(sim, source, tmp_path, ADD, program)


def test_an_initial_state_fits_the_memory(sim, source, tmp_path):
    # Rules: SPIN-3.1, SPIN-3.7.
    program = """
    int main(void) {
      uint64_t sum = 0, first[2] = {0};
      ptl_hpu_md_h memory;
      start();
      IS(PTL_OK, PtlHPUAllocMem(8, ni, &memory));
      ptl_spin_t spin = {.image = "mine", .payload_handler = "payload_handler", .hpu_memory = memory,
                         .hpu_initial_state = first, .hpu_initial_state_length = 9};
      IS(PTL_ARG_INVALID, append(&sum, sizeof sum, 1, &spin));
      spin.hpu_initial_state_length = 8;
      IS(PTL_OK, append(&sum, sizeof sum, 1, &spin));
      spin.hpu_memory = PTL_HPU_MEM_NONE;
      IS(PTL_ARG_INVALID, append(&sum, sizeof sum, 2, &spin));
      IS(PTL_NO_SPACE, PtlHPUAllocMem((ptl_size_t)1 << 40, ni, &memory));
      IS(PTL_ARG_INVALID, PtlHPUAllocMem(0, ni, &memory));
      return wrong;
    }
    """
    run(sim, source, tmp_path, ADD, program)


HEADERS = """
#include "spinloom/handler.h"
int header_handler(const ptl_header_t h, void *state) {
  uint64_t *const said = state;
  said[0] = h.type;
  said[1] = h.length;
  said[2] = h.target_id.rank;
  said[3] = h.source_id.rank;
  said[4] = h.match_bits;
  said[5] = h.offset;
  said[6] = h.hdr_data;
  if (PtlHandlerDMAToHostB(said, 0, 56, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT) != SUCCESS) return FAIL;
  return PROCEED;
}
"""


def test_a_header_handler_sees_the_header_of_a_put_a_get_and_an_atomic(sim, source, tmp_path):
    # Rules: SPIN-4.1, SPIN-4.2, SPIN-4.3, SPIN-4.4, SPIN-4.6, SPIN-4.17.
    program = """
    enum { BITS = 0x123456789abcdefll, DATA = 0xfedcba987654321ll };
    int main(void) {
      static char memory_of_1[100], out[50];
      static uint64_t said[7];
      ptl_hpu_md_h memory;
      ptl_handle_ct_t here;
      ptl_ct_event_t count;
      start();
      to.rank = 1;
      if (rank_of() == 1) {
        IS(PTL_OK, PtlHPUAllocMem(56, ni, &memory));
        ptl_spin_t spin = {.image = "mine", .header_handler = "header_handler", .hpu_memory = memory,
                           .handler_host_mem_start = said, .handler_host_mem_length = sizeof said};
        IS(PTL_OK, append(memory_of_1, sizeof memory_of_1, BITS, &spin));
        static const int lengths[] = {40, 30, 8}, offsets[] = {20, 24, 32};
        for (int turn = 0; turn < 3; ++turn) {
          wait_for(turn + 1);
          IS(turn, said[0]); /* PTL_REQUEST_PUT, PTL_REQUEST_GET, PTL_REQUEST_ATOMIC */
          IS(lengths[turn], said[1]);
          IS(1, said[2]);
          IS(0, said[3]);
          IS(BITS, said[4]);
          IS(offsets[turn], said[5]);
          if (turn != 1) IS(DATA, said[6]);
        }
        IS(7, memory_of_1[31]);
        IS(14, memory_of_1[32]); /* PROCEED has performed the atomic */
        IS(14, memory_of_1[39]);
        IS(7, memory_of_1[40]);
        return wrong;
      }
      usleep(1000);
      memset(out, 7, sizeof out);
      IS(PTL_OK, PtlCTAlloc(ni, &here));
      ptl_md_t from = {.start = out, .length = sizeof out,
                       .options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, .eq_handle = PTL_EQ_NONE,
                       .ct_handle = here};
      ptl_handle_md_t md;
      IS(PTL_OK, PtlMDBind(ni, &from, &md));
      IS(PTL_OK, PtlPut(md, 0, 40, PTL_CT_ACK_REQ, to, pt, BITS, 20, NULL, DATA));
      IS(PTL_OK, PtlCTWait(here, 1, &count));
      usleep(1000);
      memset(out, 0, sizeof out);
      IS(PTL_OK, PtlGet(md, 0, 30, to, pt, BITS, 24, NULL));
      IS(PTL_OK, PtlCTWait(here, 2, &count));
      IS(0, count.failure);
      IS(7, out[29]);
      usleep(1000);
      IS(PTL_OK, PtlAtomic(md, 0, 8, PTL_CT_ACK_REQ, to, pt, BITS, 32, NULL, DATA, PTL_SUM, PTL_UINT64_T));
      IS(PTL_OK, PtlCTWait(here, 3, &count));
      IS(0, count.failure);
      return wrong;
    }
    """
    run(sim, source, tmp_path, HEADERS, program, ranks=2)


SENDS_FROM_ITS_MEMORY = """
#include "spinloom/handler.h"
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  const ptl_process_t me = {.rank = 0};
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  if (PtlHandlerPutFromHost(8, 4, PTL_HANDLER_HOST_MEM, PTL_NO_ACK_REQ, me, 2, 0, NULL, 0) != SUCCESS)
    return FAIL;
  if (PtlHandlerPutFromHost(8, 4, PTL_LOCAL_ME_CT, PTL_NO_ACK_REQ, me, 3, 0, NULL, 0) != SUCCESS) return FAIL;
  if (PtlHandlerPutFromHost(8, 4, PTL_HANDLER_HOST_MEM | PTL_LOCAL_ME_CT, PTL_NO_ACK_REQ, me, 4, 0, NULL, 0)
      != SUCCESS) return FAIL;
  if (PtlHandlerAtomicFromHost(16, 8, PTL_HANDLER_HOST_MEM, PTL_NO_ACK_REQ, me, 5, 0, NULL, 0, PTL_SUM,
                               PTL_UINT64_T) != SUCCESS) return FAIL;
  if (PtlHandlerProcessPut(0, 4, 8, PTL_HANDLER_HOST_MEM, PTL_NO_ACK_REQ, me, 6, 0, NULL, 0) != SUCCESS)
    return FAIL;
  /* The handler's memory has 24 B, the entry's 64: these are inside only there. */
  if (PtlHandlerPutFromHost(20, 8, 0, PTL_NO_ACK_REQ, me, 7, 0, NULL, 0) != SUCCESS) return FAIL;
  const int outside = PtlHandlerPutFromHost(20, 8, PTL_HANDLER_HOST_MEM, PTL_NO_ACK_REQ, me, 7, 0, NULL, 0);
  return outside == SEGV ? SUCCESS : FAIL;
}
int payload_handler(const ptl_payload_t p, void *state) {
  (void)state;
  return PtlHandlerDMAFromHostB(p.offset, (uint8_t *)p.base, p.length, 0);
}
"""


def test_a_handler_sends_from_the_entry_s_memory_or_from_its_own(sim, source, tmp_path):
    # Rules: SPIN-7.3, SPIN-7.20, SPIN-7.31.
    program = """
    int main(void) {
      static char memory[64], own[24], into[8][16];
      static uint64_t sum = 5;
      ptl_handle_ct_t came;
      ptl_handle_spin_t filling;
      ptl_ct_event_t count;
      ptl_handle_me_t made;
      start();
      for (int i = 0; i < 64; ++i) memory[i] = (char)i;
      for (int i = 0; i < 24; ++i) own[i] = (char)(100 + i);
      *(uint64_t *)(void *)(own + 16) = 7;
      const ptl_spin_t fills = {.image = "mine", .payload_handler = "payload_handler",
                                .hpu_memory = PTL_HPU_MEM_NONE};
      IS(PTL_OK, PtlSpinContextAlloc(ni, &fills, &filling)); /* context 0 */
      const ptl_spin_t sends = {.image = "mine", .completion_handler = "completion_handler",
                                .hpu_memory = PTL_HPU_MEM_NONE, .handler_host_mem_start = own,
                                .handler_host_mem_length = sizeof own};
      IS(PTL_OK, append(memory, sizeof memory, 1, &sends));
      IS(PTL_OK, PtlCTAlloc(ni, &came));
      for (unsigned bits = 2; bits < 8; ++bits) {
        ptl_me_t me = {.start = bits == 5 ? (void *)&sum : into[bits], .length = bits == 5 ? sizeof sum : 16,
                       .ct_handle = came, .uid = PTL_UID_ANY, .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                       .match_id = {.rank = PTL_RANK_ANY}, .match_bits = bits};
        IS(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &made));
      }
      IS(PTL_OK, PtlPut(bound(NULL, 0), 0, 0, PTL_NO_ACK_REQ, to, pt, 1, 0, NULL, 0));
      IS(PTL_OK, PtlCTWait(came, 6, &count));
      usleep(1000);
      IS(108, into[2][0]);
      IS(111, into[2][3]);
      IS(8, into[3][0]);
      IS(108, into[4][0]);
      IS(12, sum);
      IS(104, into[6][0]);
      IS(111, into[6][7]);
      IS(20, into[7][0]);
      IS(PTL_OK, PtlCTGet(came, &count));
      IS(6, count.success);
      IS(PTL_OK, PtlCTGet(landed, &count));
      IS(2, count.success); /* the two sends that are counted */
      IS(1, count.failure); /* the message whose handler left its memory */
      return wrong;
    }
    """
    run(sim, source, tmp_path, SENDS_FROM_ITS_MEMORY, program)


SPREAD = """
#include "spinloom/handler.h"
int payload_handler(const ptl_payload_t p, void *state) {
  (void)state;
  return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT);
}
"""


def test_handler_memory_may_be_a_list_of_ranges(sim, source, tmp_path):
    # Rules: SPIN-2.5.
    program = """
    int main(void) {
      static char out[20], first[8], second[8], third[8], all[1];
      start();
      for (int i = 0; i < 20; ++i) out[i] = (char)(i + 1);
      ptl_handle_md_t md = bound(out, sizeof out);
      ptl_iovec_t list[] = {{first + 1, 5}, {second, 0}, {second + 2, 6}, {third, 8}};
      ptl_spin_t spin = {.image = "mine", .payload_handler = "payload_handler",
                         .hpu_memory = PTL_HPU_MEM_NONE, .options = PTL_SPIN_HANDLER_IOVEC,
                         .handler_host_mem_start = list, .handler_host_mem_length = 4};
      IS(PTL_OK, append(all, 1, 1, &spin));
      memset(list, 0, sizeof list); /* it has been copied */
      IS(PTL_OK, PtlPut(md, 0, 19, PTL_NO_ACK_REQ, to, pt, 1, 0, NULL, 0));
      wait_for(1);
      IS(0, memcmp(first, "\\0\\1\\2\\3\\4\\5\\0\\0", 8));
      IS(0, memcmp(second, "\\0\\0\\6\\7\\x8\\x9\\xa\\xb", 8));
      IS(0, memcmp(third, "\\xc\\xd\\xe\\xf\\x10\\x11\\x12\\x13", 8));
      spin.handler_host_mem_start = NULL;
      IS(PTL_ARG_INVALID, append(all, 1, 2, &spin));
      spin.handler_host_mem_length = (ptl_size_t)1 << 40;
      spin.handler_host_mem_start = list;
      IS(PTL_ARG_INVALID, append(all, 1, 2, &spin));
      ptl_iovec_t wrong_list[] = {{NULL, 5}};
      spin.handler_host_mem_start = wrong_list;
      spin.handler_host_mem_length = 1;
      IS(PTL_ARG_INVALID, append(all, 1, 2, &spin));
      return wrong;
    }
    """
    run(sim, source, tmp_path, SPREAD, program)
