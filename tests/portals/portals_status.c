/* Checks which operations are refused, why, and which register counts them; test_portals.py runs it with two ranks. */
#include "portals_common.h"

static ptl_handle_eq_t eq;
static char memory[64];

static ptl_handle_me_t append(ptl_pt_index_t pt, unsigned options, ptl_uid_t uid, ptl_match_bits_t bits) {
  ptl_me_t me = {.start = memory,
                 .length = sizeof memory,
                 .ct_handle = PTL_CT_NONE,
                 .uid = uid,
                 .options = options | PTL_ME_EVENT_LINK_DISABLE,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  return handle;
}

static int status(ptl_sr_index_t which) {
  ptl_sr_value_t value = -1;
  EXPECT(PTL_OK, PtlNIStatus(ni, which, &value));
  return value;
}

/* Rules: P4F-3.28, P4F-3.29, P4F-3.30, P4F-3.31, P4F-3.32, P4F-3.34, P4F-3.35, P4F-5.11, P4F-7.14, P4F-7.16,
 * P4F-7.19, P4F-7.22, P4F-7.24, P4F-7.25, P4F-8.1, P4F-8.2, P4F-8.10. */
int main(void) {
  ptl_uid_t uid;
  ptl_pt_index_t pt;
  ptl_event_t event;
  begin();
  MUST(PtlGetUid(ni, &uid));
  MUST(PtlEQAlloc(ni, 64, &eq));
  MUST(PtlPTAlloc(ni, 0, eq, 0, &pt));
  MUST(PtlPTAlloc(ni, PTL_PT_ALLOC_DISABLED, eq, 1, &pt));
  if (my_rank == 1) {
    append(0, PTL_ME_OP_PUT, uid + 1, 1); /* somebody else's */
    append(0, PTL_ME_OP_PUT | PTL_ME_OP_GET, PTL_UID_ANY, 1);
    append(0, PTL_ME_OP_PUT, uid, 2);
    append(0, PTL_ME_OP_GET, uid, 3);
    append(1, PTL_ME_OP_PUT, uid, 1); /* this entry of the portal table is disabled */
  }
  int before[3];
  for (int i = 0; i < 3; ++i) before[i] = status((ptl_sr_index_t)i);
  barrier();

  ptl_md_t what = {.start = memory, .length = sizeof memory, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  MUST(PtlMDBind(ni, &what, &md));
  if (my_rank == 0) {
    const struct {
      ptl_pt_index_t pt;
      ptl_match_bits_t bits;
      ptl_ni_fail_t put, get;
    } rows[] = {
        {0, 1, PTL_NI_PERM_VIOLATION, PTL_NI_PERM_VIOLATION}, /* the first match decides, not the one behind it */
        {0, 2, PTL_NI_OK, PTL_NI_OP_VIOLATION},
        {0, 3, PTL_NI_OP_VIOLATION, PTL_NI_OK},
        {0, 9, PTL_NI_DROPPED, PTL_NI_DROPPED},
        {1, 1, PTL_NI_PT_DISABLED, PTL_NI_PT_DISABLED},
        {2, 1, PTL_NI_DROPPED, PTL_NI_DROPPED},
        {1000, 1, PTL_NI_DROPPED, PTL_NI_DROPPED},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
      EXPECT(PTL_OK, PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(1), rows[i].pt, rows[i].bits, 0, NULL, 0));
      EXPECT(rows[i].put, ended(eq));
      EXPECT(PTL_OK, PtlGet(md, 0, 8, rank_of(1), rows[i].pt, rows[i].bits, 0, NULL));
      EXPECT(rows[i].get, ended(eq));
    }
    EXPECT(PTL_OK, PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(1), 0, 3, 0, NULL, 0)); /* no two counts are equal then */
    EXPECT(PTL_NI_OP_VIOLATION, ended(eq));
  }
  barrier();
  EXPECT(my_rank == 0 ? 0 : 8, status(PTL_SR_DROP_COUNT) - before[0]);
  EXPECT(my_rank == 0 ? 0 : 2, status(PTL_SR_PERMISSION_VIOLATIONS) - before[1]);
  EXPECT(my_rank == 0 ? 0 : 3, status(PTL_SR_OPERATION_VIOLATIONS) - before[2]);
  ptl_sr_value_t value;
  EXPECT(PTL_ARG_INVALID, PtlNIStatus(ni, (ptl_sr_index_t)PTL_SR_LAST, &value));
  EXPECT(PTL_ARG_INVALID, PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL));
  if (my_rank == 1) {
    MUST(PtlEQWait(eq, &event));
    EXPECT(PTL_EVENT_PUT, event.type);
    EXPECT(uid, event.uid);
    EXPECT(0, event.initiator.rank);
    MUST(PtlEQWait(eq, &event));
    EXPECT(PTL_EVENT_GET, event.type);
    EXPECT(uid, event.uid);
    EXPECT(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
  }
  return end();
}
