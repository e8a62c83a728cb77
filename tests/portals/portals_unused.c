/* Handles that a program left 0, because nothing is counted and no event is wanted, and entries for processes that are
 * in no job: both are taken. One rank. */
#include "portals_common.h"

static char in[64], out[64];

static ptl_me_t entry_of(unsigned options) {
  ptl_me_t me = {.start = in,
                 .length = sizeof in,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | options,
                 .match_id = {.rank = PTL_RANK_ANY}};
  return me;
}

int main(void) {
  ptl_handle_ni_t physical;
  ptl_handle_me_t handle;
  ptl_handle_md_t md;
  ptl_handle_ct_t ct;
  ptl_pt_index_t pt;
  ptl_process_t id;
  ptl_ct_event_t count;
  begin();
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  MUST(PtlCTAlloc(ni, &ct));

  /* Entries. */
  ptl_me_t me = entry_of(0);
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlMEUnlink(handle));
  EXPECT(PTL_OK, PtlMESearch(ni, pt, &me, PTL_SEARCH_ONLY, NULL));
  me = entry_of(PTL_ME_EVENT_CT_BYTES); /* the unit of counts that nobody asked for */
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_OVERFLOW_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlMEUnlink(handle));
  me = entry_of(PTL_ME_EVENT_CT_COMM);
  EXPECT(PTL_ARG_INVALID, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  me = entry_of(PTL_ME_EVENT_CT_OVERFLOW);
  EXPECT(PTL_ARG_INVALID, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_ARG_INVALID, PtlMESearch(ni, pt, &me, PTL_SEARCH_ONLY, NULL));
  me = entry_of(0);
  me.ct_handle = 1; /* no handle, but nobody left it out either */
  EXPECT(PTL_ARG_INVALID, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlTriggeredMEAppend(ni, pt, &(ptl_me_t){.match_id = {.rank = PTL_RANK_ANY}}, PTL_PRIORITY_LIST, NULL,
                                      &handle, ct, 1000));

  /* Descriptors. */
  const ptl_md_t nothing = {.start = out, .length = sizeof out};
  EXPECT(PTL_OK, PtlMDBind(ni, &nothing, &md));
  EXPECT(PTL_ARG_INVALID, PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(my_rank), pt, 0, 0, NULL, 0));
  EXPECT(PTL_ARG_INVALID, PtlPut(md, 0, 8, PTL_CT_ACK_REQ, rank_of(my_rank), pt, 0, 0, NULL, 0));
  EXPECT(PTL_OK, PtlMDRelease(md));
  for (unsigned option = PTL_MD_EVENT_CT_SEND; option <= PTL_MD_EVENT_CT_ACK; option *= 2) {
    const ptl_md_t counts = {.start = out, .length = sizeof out, .options = option, .eq_handle = PTL_EQ_NONE};
    EXPECT(PTL_ARG_INVALID, PtlMDBind(ni, &counts, &md));
  }
  const ptl_md_t silent = {.start = out, .length = sizeof out, .options = PTL_MD_EVENT_CT_ACK, .ct_handle = ct};
  EXPECT(PTL_OK, PtlMDBind(ni, &silent, &md));

  /* A process outside of the job: its entry is there, and takes nothing. */
  me = entry_of(0);
  me.match_id.rank = ranks + 77;
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlPut(md, 0, 8, PTL_CT_ACK_REQ, rank_of(my_rank), pt, 0, 0, NULL, 0));
  MUST(PtlCTWait(ct, 1, &count));
  EXPECT(1, count.failure);
  EXPECT(PTL_OK, PtlMEUnlink(handle));
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &physical));
  MUST(PtlGetId(physical, &id));
  MUST(PtlPTAlloc(physical, 0, PTL_EQ_NONE, 0, &pt));
  me.match_id = id;
  me.match_id.phys.nid += 77;
  EXPECT(PTL_OK, PtlMEAppend(physical, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlMEUnlink(handle));
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &physical));
  MUST(PtlPTAlloc(physical, 0, PTL_EQ_NONE, 0, &pt));
  const ptl_le_t le = {.start = in, .length = sizeof in, .uid = PTL_UID_ANY, .options = PTL_LE_OP_PUT};
  EXPECT(PTL_OK, PtlLEAppend(physical, pt, &le, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlLESearch(physical, pt, &le, PTL_SEARCH_ONLY, NULL));
  return end();
}
