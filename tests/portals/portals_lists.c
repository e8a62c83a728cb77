/* The initiator hears which list took its operation, by the event of the acknowledgement or of the reply. An MPI
 * library sees by it whether its message was expected. test_portals.py and test_live.py run it with two ranks. */
#include "portals_common.h"

enum { PT = 7, LENGTHS = 4, LONGEST = 100000, ROUNDS = 3 };
static const ptl_size_t lengths[LENGTHS] = {0, 8, 2049, LONGEST};

static ptl_handle_eq_t eq, target_eq;
static ptl_handle_md_t md;
static char memory[LONGEST], local[LONGEST];

static void append(ptl_list_t list, unsigned options, ptl_match_bits_t bits) {
  ptl_me_t me = {.start = memory,
                 .length = sizeof memory,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  ptl_handle_me_t handle;
  MUST(PtlMEAppend(ni, PT, &me, list, NULL, &handle));
}

/* The list in which the operation that was just started ended. */
static ptl_list_t list_told(ptl_event_kind_t kind) {
  ptl_event_t event;
  do {
    MUST(PtlEQWait(eq, &event));
  } while (event.type == PTL_EVENT_SEND);
  EXPECT(kind, event.type);
  EXPECT(PTL_NI_OK, event.ni_fail_type);
  return event.ptl_list;
}

static ptl_list_t put(ptl_size_t length, ptl_match_bits_t bits) {
  MUST(PtlPut(md, 0, length, PTL_ACK_REQ, rank_of(1), PT, bits, 0, NULL, 0));
  return list_told(PTL_EVENT_ACK);
}
static ptl_list_t atomic(ptl_match_bits_t bits) {
  MUST(PtlAtomic(md, 0, 8, PTL_ACK_REQ, rank_of(1), PT, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  return list_told(PTL_EVENT_ACK);
}
static ptl_list_t get(ptl_size_t length, ptl_match_bits_t bits) {
  MUST(PtlGet(md, 0, length, rank_of(1), PT, bits, 0, NULL));
  return list_told(PTL_EVENT_REPLY);
}
static ptl_list_t fetch(ptl_match_bits_t bits) {
  MUST(PtlFetchAtomic(md, 0, md, 8, 8, rank_of(1), PT, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  return list_told(PTL_EVENT_REPLY);
}

/* Rules: P4F-13.10, P4F-13.11. */
int main(void) {
  ptl_pt_index_t pt;
  begin();
  MUST(PtlEQAlloc(ni, 1024, &eq));
  MUST(PtlEQAlloc(ni, 1024, &target_eq));
  MUST(PtlMDBind(ni, &(ptl_md_t){.start = local, .length = sizeof local, .eq_handle = eq, .ct_handle = PTL_CT_NONE},
                 &md));
  MUST(PtlPTAlloc(ni, 0, target_eq, PT, &pt));
  /* Bits 1 and 2: an entry that stays, in the one list and in the other. 3: it keeps no header. */
  if (my_rank == 1) {
    append(PTL_PRIORITY_LIST, 0, 1);
    append(PTL_OVERFLOW_LIST, 0, 2);
    append(PTL_OVERFLOW_LIST, PTL_ME_UNEXPECTED_HDR_DISABLE, 3);
  }
  barrier();
  if (my_rank == 0) {
    for (int i = 0; i < LENGTHS; ++i) {
      EXPECT(PTL_PRIORITY_LIST, put(lengths[i], 1));
      EXPECT(PTL_OVERFLOW_LIST, put(lengths[i], 2));
      EXPECT(PTL_OVERFLOW_LIST, put(lengths[i], 3));
      EXPECT(PTL_PRIORITY_LIST, get(lengths[i], 1));
      EXPECT(PTL_OVERFLOW_LIST, get(lengths[i], 2));
    }
    EXPECT(PTL_PRIORITY_LIST, atomic(1));
    EXPECT(PTL_OVERFLOW_LIST, atomic(2));
    EXPECT(PTL_PRIORITY_LIST, fetch(1));
    EXPECT(PTL_OVERFLOW_LIST, fetch(2));
  }
  /* Entries that are gone when the acknowledgement leaves; the other list's is beside them. */
  for (int round = 0; round < ROUNDS; ++round) {
    barrier();
    if (my_rank == 1) {
      append(PTL_OVERFLOW_LIST, PTL_ME_USE_ONCE | PTL_ME_UNEXPECTED_HDR_DISABLE, 4);
      append(PTL_PRIORITY_LIST, PTL_ME_USE_ONCE, 4);
    }
    barrier();
    if (my_rank == 0) {
      EXPECT(PTL_PRIORITY_LIST, put(lengths[round + 1], 4));
      EXPECT(PTL_OVERFLOW_LIST, put(lengths[round + 1], 4));
    }
  }
  return end();
}
