/* Puts and gets to the same memory without waiting: each get must find what the put before it brought, and nothing
 * of later puts, up to max_waw_ordered_size and max_war_ordered_size. Two ranks; rank 1 asks. argv[1]: the limit in
 * bytes to wish for, in place of the usual one. */
#include "portals_common.h"

enum { ROUNDS = 400, LONGEST = 1024 };

static unsigned char memory[LONGEST], out[ROUNDS][LONGEST], in[ROUNDS][LONGEST];

/* Rules: P4F-18.3, P4F-18.4. */
int main(int argc, char** argv) {
  ptl_ni_limits_t wish;
  memset(&wish, -1, sizeof wish);
  wish.max_waw_ordered_size = wish.max_war_ordered_size = argc > 1 ? strtoul(argv[1], NULL, 0) : 64;
  begin_with(&wish);
  ptl_handle_me_t handle;
  ptl_pt_index_t pt;
  ptl_handle_ct_t replied;
  ptl_handle_md_t from, to;
  const ptl_size_t length = limits.max_war_ordered_size;
  EXPECT(1, length >= 64 && length <= LONGEST && length == limits.max_waw_ordered_size);
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  MUST(PtlCTAlloc(ni, &replied));
  ptl_me_t me = {.start = memory,
                 .length = length,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
                 .match_id = {.rank = PTL_RANK_ANY}};
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  ptl_md_t source = {.start = out, .length = sizeof out, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  ptl_md_t sink = {.start = in,
                   .length = sizeof in,
                   .options = PTL_MD_EVENT_CT_REPLY,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = replied};
  MUST(PtlMDBind(ni, &source, &from));
  MUST(PtlMDBind(ni, &sink, &to));
  barrier();
  if (my_rank == 1) {
    ptl_ct_event_t count;
    unsigned wrong_ones = 0;
    for (unsigned i = 0; i < ROUNDS; ++i) memset(out[i], (int)(i % 251 + 1), LONGEST);
    for (unsigned i = 0; i < ROUNDS; ++i) {
      MUST(PtlPut(from, i * LONGEST, length, PTL_NO_ACK_REQ, rank_of(0), pt, 0, 0, NULL, 0));
      MUST(PtlGet(to, i * LONGEST, length, rank_of(0), pt, 0, 0, NULL));
    }
    MUST(PtlCTWait(replied, ROUNDS, &count));
    for (unsigned i = 0; i < ROUNDS; ++i) wrong_ones += memcmp(in[i], out[i], length) != 0;
    EXPECT(0, count.failure);
    EXPECT(0, wrong_ones);
  }
  return end();
}
