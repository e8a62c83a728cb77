/* Checks what the Portals calls return for right and wrong arguments; test_portals.py runs this program. */
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, answers, wrong;

static void expect(int line, const char* call, int expected, int answer) {
  ++answers;
  if (answer == expected) return;
  ++wrong;
  printf("rank %d, line %d: %s gave %d, not %d\n", rank, line, call, answer, expected);
}
#define EXPECT(expected, call) expect(__LINE__, #call, expected, (int)(call))

/* Rules: P4F-3.3, P4F-3.18, P4F-3.20, P4F-4.2, P4F-4.5, P4F-4.6, P4F-4.7, P4F-5.2, P4F-5.3, P4F-5.4, P4F-5.12,
 * P4F-6.8, P4F-6.34, P4F-7.2, P4F-7.3, P4F-7.69, P4F-7.73, P4F-10.9, P4F-10.12, P4F-11.4, P4F-14.6, P4F-14.9. */
int main(void) {
  ptl_handle_ni_t none, ni, logical, physical;
  ptl_handle_ct_t ct, other;
  ptl_handle_eq_t eq;
  ptl_handle_md_t md;
  ptl_handle_me_t handle;
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  ptl_event_t event;
  ptl_process_t id, map[2] = {{.phys = {1, 1}}, {.phys = {0, 1}}};
  ptl_ni_limits_t wanted, limits;
  unsigned which;
  rank = atoi(getenv("SPINLOOM_RANK"));
  EXPECT(PTL_NO_INIT, PtlNIInit(0, PTL_NI_MATCHING | PTL_NI_LOGICAL, 0, NULL, NULL, &none));
  PtlInit();
  EXPECT(PTL_ARG_INVALID, PtlNIInit(0, PTL_NI_MATCHING, 0, NULL, NULL, &none));
  EXPECT(PTL_ARG_INVALID, PtlNIInit(0, PTL_NI_MATCHING | PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, 0, NULL, NULL, &none));
  memset(&wanted, 0xff, sizeof wanted);
  EXPECT(PTL_OK, PtlNIInit(0, PTL_NI_MATCHING | PTL_NI_LOGICAL, 0, &wanted, &limits, &logical));
  EXPECT(63, limits.max_pt_index);
  EXPECT(1, limits.max_atomic_size >= 2048 && limits.max_volatile_size == limits.max_msg_size);
  EXPECT(PTL_OK, PtlNIInit(0, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, 0, NULL, NULL, &physical));
  ni = logical;
  EXPECT(PTL_OK, PtlCTAlloc(ni, &ct));
  EXPECT(PTL_OK, PtlCTAlloc(physical, &other));
  EXPECT(PTL_OK, PtlEQAlloc(ni, 4, &eq));
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
  EXPECT(PTL_ARG_INVALID, PtlEQGet(ct, &event));
  EXPECT(PTL_EQ_EMPTY, PtlEQPoll(&eq, 1, 1, &event, &which));
  EXPECT(PTL_CT_NONE_REACHED, PtlCTPoll(&ct, &(ptl_size_t){1}, 1, 1, &count, &which));
  EXPECT(PTL_ARG_INVALID, PtlCTInc(ct, (ptl_ct_event_t){1, 1}));
  EXPECT(PTL_OK, PtlCTInc(ct, (ptl_ct_event_t){5, 0}));
  EXPECT(5, (PtlCTGet(ct, &count), (int)count.success));
  EXPECT(PTL_ARG_INVALID, PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 0}, other, 1));
  EXPECT(PTL_PT_EQ_NEEDED, PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &pt));
  EXPECT(PTL_ARG_INVALID, PtlPTAlloc(ni, 0, eq, 64, &pt));
  EXPECT(PTL_OK, PtlPTAlloc(ni, 0, eq, 5, &pt));
  EXPECT(PTL_PT_IN_USE, PtlPTAlloc(ni, 0, eq, 5, &pt));
  EXPECT(6, (PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt), (int)pt));
  ptl_me_t me = {
      .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY, .options = PTL_ME_OP_PUT, .match_id = {.rank = PTL_RANK_ANY}};
  EXPECT(PTL_ARG_INVALID, PtlMEAppend(physical, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_ARG_INVALID, PtlMEAppend(ni, 7, &me, PTL_PRIORITY_LIST, NULL, &handle));
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, &me, &handle));
  EXPECT(1, (PtlEQWait(eq, &event), event.type == PTL_EVENT_LINK && event.pt_index == pt && event.user_ptr == &me));
  EXPECT(PTL_PT_IN_USE, PtlPTFree(ni, pt));
  EXPECT(PTL_OK, PtlMEUnlink(handle));
  EXPECT(PTL_ARG_INVALID, PtlMEUnlink(handle));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
  ptl_md_t memory = {.length = 10, .start = &me, .eq_handle = PTL_EQ_NONE, .ct_handle = other};
  EXPECT(PTL_ARG_INVALID, PtlMDBind(ni, &memory, &md));
  memory.ct_handle = PTL_CT_NONE;
  EXPECT(PTL_OK, PtlMDBind(ni, &memory, &md));
  EXPECT(PTL_ARG_INVALID, PtlPut(md, 8, 3, PTL_NO_ACK_REQ, map[1], 0, 0, 0, NULL, 0));
  EXPECT(PTL_ARG_INVALID, PtlPut(md, 0, 3, PTL_ACK_REQ, (ptl_process_t){.rank = 0}, 0, 0, 0, NULL, 0));
  EXPECT(PTL_ARG_INVALID, PtlPut(md, 0, 3, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 2}, 0, 0, 0, NULL, 0));
  EXPECT(PTL_OK, PtlMDRelease(md));
  EXPECT(PTL_ARG_INVALID, PtlMDRelease(md));
  EXPECT(PTL_ARG_INVALID, PtlSetMap(physical, 2, map));
  EXPECT(PTL_ARG_INVALID, PtlSetMap(ni, 1, &map[rank]));
  EXPECT(PTL_OK, PtlSetMap(ni, 2, map));
  EXPECT(PTL_IGNORED, PtlSetMap(ni, 2, map));
  EXPECT(1 - rank, (PtlGetId(ni, &id), id.rank));
  EXPECT(PTL_OK, PtlNIHandle(ct, &none));
  EXPECT(1, PtlHandleIsEqual(ni, none));
  EXPECT(PTL_OK, PtlCTFree(ct));
  EXPECT(PTL_ARG_INVALID, PtlCTGet(ct, &count));
  EXPECT(PTL_OK, PtlNIFini(ni));
  EXPECT(PTL_OK, PtlCTGet(other, &count));
  EXPECT(PTL_ARG_INVALID, PtlEQGet(eq, &event));
  printf("rank %d: %d answers\n", rank, answers);
  return wrong;
}
