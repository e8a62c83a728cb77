/* Operations of a rank on itself: what the target's entry has to say comes before the last word of the operation, which
 * is its acknowledgement or its reply. One queue for all. */
#include "portals_common.h"

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static uint64_t memory[64], local[8];

static void append(unsigned options, ptl_list_t list, ptl_match_bits_t bits) {
  ptl_handle_me_t handle;
  const ptl_me_t me = {.start = memory,
                       .length = sizeof memory,
                       .ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_GET | PTL_ME_OP_PUT | PTL_ME_USE_ONCE | options,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = bits};
  MUST(PtlMEAppend(ni, 0, &me, list, NULL, &handle));
}

/* The kinds of the next events, each as one digit of a number to the base 16. */
static unsigned long long kinds(unsigned count) {
  unsigned long long all = 0;
  for (; count > 0; --count) {
    ptl_event_t event;
    MUST(PtlEQWait(eq, &event));
    if (event.type != PTL_EVENT_SEND) all = all * 16 + event.type;
  }
  return all;
}

/* LINK 12, AUTO_UNLINK 13; GET 0, PUT 2, ATOMIC 4, FETCH_ATOMIC 6; REPLY 8, ACK 10; GET_OVERFLOW 1. */
/* Rules: P4F-7.78, P4F-11.27, P4F-13.17. */
int main(void) {
  static const ptl_size_t lengths[] = {0, 8, 64};
  const uint64_t operand = 0;
  ptl_pt_index_t pt;
  ptl_event_t event;
  begin();
  MUST(PtlEQAlloc(ni, 64, &eq));
  MUST(PtlPTAlloc(ni, 0, eq, 0, &pt));
  const ptl_md_t own = {.start = local, .length = sizeof local, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &own, &md));
  const ptl_process_t me = rank_of(my_rank);
  for (unsigned i = 0; i < 3; ++i) {
    const ptl_size_t length = lengths[i];
    append(0, PTL_PRIORITY_LIST, 1);
    MUST(PtlGet(md, 0, length, me, 0, 1, 0, NULL));
    EXPECT(0xc0d8, kinds(4));
    append(0, PTL_PRIORITY_LIST, 1);
    MUST(PtlPut(md, 0, length, PTL_ACK_REQ, me, 0, 1, 0, NULL, 0));
    EXPECT(0xc2da, kinds(5));
    append(0, PTL_PRIORITY_LIST, 1);
    MUST(PtlAtomic(md, 0, length, PTL_ACK_REQ, me, 0, 1, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    EXPECT(0xc4da, kinds(5));
    append(0, PTL_PRIORITY_LIST, 1);
    MUST(PtlFetchAtomic(md, 0, md, 0, length, me, 0, 1, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    EXPECT(0xc6d8, kinds(5));
    append(0, PTL_PRIORITY_LIST, 1);
    MUST(PtlSwap(md, 0, md, 0, length, me, 0, 1, 0, NULL, 0, &operand, PTL_SWAP, PTL_UINT64_T));
    EXPECT(0xc6d8, kinds(5));
  }
  /* An entry of the overflow list says as much, and a request that nothing takes has only its reply. */
  append(0, PTL_OVERFLOW_LIST, 2);
  MUST(PtlGet(md, 0, 8, me, 0, 2, 0, NULL));
  EXPECT(0xc0d8, kinds(4));
  MUST(PtlGet(md, 0, 8, me, 0, 9, 0, NULL));
  MUST(PtlEQWait(eq, &event));
  EXPECT(PTL_EVENT_REPLY, event.type);
  EXPECT(PTL_NI_DROPPED, event.ni_fail_type);
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
  return end();
}
