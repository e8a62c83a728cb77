/* An overflow entry that has left its list is free when its last header is taken: PTL_EVENT_AUTO_FREE comes after that
 * header's event, and before PTL_EVENT_AUTO_UNLINK of the entry that took it. For puts, gets and atomics; entries that
 * are used once, and that manage their offset; appends and searches. Two ranks; rank 1 sends. */
#include "portals_common.h"

enum { BLOCK = 64 };
static ptl_handle_eq_t eq, target_eq;
static ptl_handle_md_t md;
static uint64_t memory[BLOCK], local[8];

static ptl_me_t entry_of(ptl_match_bits_t bits, ptl_size_t length, unsigned options) {
  ptl_me_t me = {.start = memory,
                 .length = length,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_GET | PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits,
                 .min_free = 8};
  return me;
}

static void append(const ptl_me_t* me, ptl_list_t list, void* user_ptr) {
  ptl_handle_me_t handle;
  MUST(PtlMEAppend(ni, 0, me, list, user_ptr, &handle));
}

/* The kinds of the events that are there, each as one digit of a number to the base 16. */
static unsigned long long kinds(void) {
  unsigned long long all = 0;
  ptl_event_t event;
  while (PtlEQGet(target_eq, &event) == PTL_OK) all = all * 16 + event.type;
  return all;
}

static void send(unsigned kind, ptl_match_bits_t bits) {
  const ptl_process_t to = rank_of(0);
  if (kind == 0) MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, to, 0, bits, 0, NULL, 0));
  if (kind == 1) MUST(PtlGet(md, 0, 8, to, 0, bits, 0, NULL));
  if (kind == 2) MUST(PtlAtomic(md, 0, 8, PTL_ACK_REQ, to, 0, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  if (kind == 3) MUST(PtlFetchAtomic(md, 0, md, 0, 8, to, 0, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_NI_OK, ended(eq));
}

/* Rules: P4F-7.58, P4F-7.78, P4F-7.79, P4F-7.80, P4F-7.81, P4F-9.10, P4F-9.11, P4F-9.21. */
int main(void) {
  static const unsigned comm[] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC};
  ptl_pt_index_t pt;
  begin();
  MUST(PtlEQAlloc(ni, 64, &eq));
  MUST(PtlEQAlloc(ni, 64, &target_eq));
  MUST(PtlPTAlloc(ni, 0, target_eq, 0, &pt));
  const ptl_md_t own = {.start = local, .length = sizeof local, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &own, &md));
  const ptl_me_t once = entry_of(7, 8, PTL_ME_USE_ONCE), block = entry_of(7, 23, PTL_ME_MANAGE_LOCAL);
  const ptl_me_t stays = entry_of(7, 8, 0);
  for (unsigned kind = 0; kind < 4; ++kind) {
    const unsigned long long came = comm[kind], over = comm[kind] + 1;
    /* One header; then two in a block that is full after the second. */
    for (unsigned two = 0; two < 2; ++two) {
      for (unsigned how = 0; how < 3; ++how) {
        if (my_rank == 0) append(two ? &block : &once, PTL_OVERFLOW_LIST, NULL);
        barrier();
        if (my_rank == 1) {
          send(kind, 7);
          if (two) send(kind, 7);
        }
        barrier();
        if (my_rank == 1) continue;
        EXPECT(two ? (came << 8 | came << 4) + 13 : (came << 4) + 13, kinds());
        if (how == 0) { /* use-once entries; the last one takes the last header */
          append(&once, PTL_PRIORITY_LIST, NULL);
          if (two) EXPECT(over << 4 | 13, kinds());
          if (two) append(&once, PTL_PRIORITY_LIST, NULL);
          EXPECT(over << 8 | 14 << 4 | 13, kinds());
        } else if (how == 1) { /* an entry that stays, and takes all */
          ptl_handle_me_t handle;
          MUST(PtlMEAppend(ni, 0, &stays, PTL_PRIORITY_LIST, NULL, &handle));
          EXPECT(two ? over << 8 | over << 4 | 14 : over << 4 | 14, kinds());
          EXPECT(PTL_OK, PtlMEUnlink(handle));
        } else {
          MUST(PtlMESearch(ni, 0, &stays, PTL_SEARCH_DELETE, NULL));
          EXPECT(two ? over << 8 | over << 4 | 14 : over << 4 | 14, kinds());
        }
      }
    }
  }
  return end();
}
