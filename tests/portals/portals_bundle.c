/* Bundles of triggered operations: they run as outside of one, and the outermost end tells of a refusal. Two ranks. */
#include "portals_common.h"

/* Rules: P4F-16.1, P4F-16.2. */
int main(void) {
  ptl_handle_ct_t trigger, landed;
  ptl_handle_md_t md;
  ptl_handle_me_t handle;
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  char memory[8] = "bundle", in[8] = "";
  begin();
  MUST(PtlCTAlloc(ni, &trigger));
  MUST(PtlCTAlloc(ni, &landed));
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  const ptl_me_t me = {.start = in,
                       .length = sizeof in,
                       .ct_handle = landed,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                       .match_id = {.rank = PTL_RANK_ANY}};
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  const ptl_md_t what = {.start = memory, .length = sizeof memory, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &what, &md));
  const ptl_process_t other = rank_of(1 - my_rank);
  const unsigned most = (unsigned)limits.max_triggered_ops;
  barrier();

  EXPECT(PTL_ARG_INVALID, PtlEndBundle(ni));
  EXPECT(PTL_ARG_INVALID, PtlStartBundle(PTL_INVALID_HANDLE));
  EXPECT(PTL_OK, PtlStartBundle(ni));
  EXPECT(PTL_OK, PtlStartBundle(ni));
  unsigned refused = 0;
  for (unsigned i = 0; i < most + 2; ++i) {
    refused += PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, other, pt, 0, 0, NULL, 0, trigger, 1) != PTL_OK;
  }
  EXPECT(0, refused);
  EXPECT(PTL_OK, PtlEndBundle(ni));
  EXPECT(PTL_NO_SPACE, PtlEndBundle(ni)); /* two too many */
  EXPECT(PTL_ARG_INVALID, PtlEndBundle(ni));
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
  MUST(PtlCTWait(landed, most, &count));
  EXPECT(0, memcmp(in, memory, sizeof in));

  /* An operation of a bundle starts at once where its counter is there already. */
  EXPECT(PTL_OK, PtlStartBundle(ni));
  MUST(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, other, pt, 0, 0, NULL, 0, trigger, 1));
  MUST(PtlCTWait(landed, most + 1, &count));
  EXPECT(most + 1, count.success);
  EXPECT(PTL_OK, PtlStartBundle(ni)); /* both stay open: PtlNIFini ends them */
  return end();
}
