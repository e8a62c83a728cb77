/* Thousands of receives wait at the same time, although the program has not asked for any limits: an MPI library
 * opens its interface with the usual limits and appends an entry for each pending receive. */
#include "portals_common.h"

enum { RECEIVES = 5000, PT = 4 };

static uint64_t in[RECEIVES], out[RECEIVES];

int main(void) {
  ptl_pt_index_t pt;
  ptl_handle_ct_t counter;
  ptl_handle_md_t md;
  ptl_ct_event_t count = {0, 0};
  begin();
  MUST(PtlCTAlloc(ni, &counter));
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
  if (my_rank == 1) {
    int appended = 0;
    for (; appended < RECEIVES; ++appended) {
      ptl_handle_me_t handle;
      ptl_me_t entry = {.start = &in[appended],
                        .length = sizeof *in,
                        .ct_handle = counter,
                        .uid = PTL_UID_ANY,
                        .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM,
                        .match_id = {.rank = PTL_RANK_ANY},
                        .match_bits = (ptl_match_bits_t)appended};
      if (PtlMEAppend(ni, PT, &entry, PTL_PRIORITY_LIST, NULL, &handle) != PTL_OK) break;
    }
    EXPECT(RECEIVES, appended);
  }
  barrier();
  if (my_rank == 0) {
    ptl_md_t all = {.start = out, .length = sizeof out, .options = PTL_MD_EVENT_CT_ACK, .ct_handle = counter};
    all.eq_handle = PTL_EQ_NONE;
    MUST(PtlMDBind(ni, &all, &md));
    for (uint64_t i = 0; i < RECEIVES; ++i) {
      out[i] = i * i + 7;
      MUST(PtlPut(md, i * sizeof *out, sizeof *out, PTL_CT_ACK_REQ, rank_of(1), PT, i, 0, NULL, 0));
    }
    MUST(PtlCTWait(counter, RECEIVES, &count));
    EXPECT(RECEIVES, count.success);
  }
  barrier();
  if (my_rank == 1) {
    unsigned long long same = 0;
    for (uint64_t i = 0; i < RECEIVES; ++i) same += in[i] == i * i + 7;
    EXPECT(RECEIVES, same);
    MUST(PtlCTGet(counter, &count));
    EXPECT(RECEIVES, count.success);
  }
  return end();
}
