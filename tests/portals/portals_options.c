/* Checks the options of descriptors and entries with puts to oneself; test_portals.py runs this program. */
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>

static int answers, wrong;

static void expect(int line, const char* what, unsigned long long expected, unsigned long long found) {
  ++answers;
  if (found == expected) return;
  ++wrong;
  printf("line %d: %s is %llu, not %llu\n", line, what, found, expected);
}
#define EXPECT(expected, what) expect(__LINE__, #what, (unsigned long long)(expected), (unsigned long long)(what))

static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;
static ptl_handle_eq_t sender_eq, target_eq;
static ptl_handle_ct_t sender_ct, target_ct;
static char out[100], in[60];

static ptl_handle_md_t descriptor(unsigned options) {
  const ptl_md_t md = {
      .start = out, .length = sizeof out, .options = options, .eq_handle = sender_eq, .ct_handle = sender_ct};
  ptl_handle_md_t handle;
  EXPECT(PTL_OK, PtlMDBind(ni, &md, &handle));
  EXPECT(PTL_OK, PtlCTSet(sender_ct, (ptl_ct_event_t){0, 0}));
  return handle;
}

static ptl_handle_me_t entry(unsigned options, ptl_list_t list, ptl_match_bits_t bits) {
  const ptl_me_t me = {.start = in,
                       .length = sizeof in,
                       .ct_handle = target_ct,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = bits};
  ptl_handle_me_t handle;
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, list, NULL, &handle));
  return handle;
}

static void put(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_match_bits_t bits) {
  EXPECT(PTL_OK, PtlPut(md, 0, sizeof out, ack, (ptl_process_t){.rank = 0}, pt, bits, 0, out, 77));
}

/* Rules: P4F-6.16, P4F-6.17, P4F-6.20, P4F-6.21, P4F-6.23, P4F-7.35, P4F-7.41, P4F-7.48, P4F-7.54, P4F-7.55,
 * P4F-7.63, P4F-8.10, P4F-9.5, P4F-9.6, P4F-9.8, P4F-9.10, P4F-10.20, P4F-10.23, P4F-11.10, P4F-11.21, P4F-13.10,
 * P4F-24.3. */
int main(void) {
  ptl_event_t event;
  ptl_ct_event_t count;
  PtlInit();
  PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni);
  PtlEQAlloc(ni, 16, &sender_eq);
  PtlEQAlloc(ni, 16, &target_eq);
  PtlCTAlloc(ni, &sender_ct);
  PtlCTAlloc(ni, &target_ct);
  PtlPTAlloc(ni, 0, target_eq, PTL_PT_ANY, &pt);

  /* Bytes: what left, and what the entry took. Events in order, whole. */
  entry(PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES, PTL_PRIORITY_LIST, 1);
  put(descriptor(PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_BYTES), PTL_ACK_REQ, 1);
  EXPECT(PTL_OK, PtlCTWait(sender_ct, 160, &count));
  EXPECT(160, count.success);
  EXPECT(PTL_OK, PtlEQGet(sender_eq, &event));
  EXPECT(PTL_EVENT_SEND, event.type);
  EXPECT(PTL_OK, PtlEQGet(sender_eq, &event));
  EXPECT(PTL_EVENT_ACK, event.type);
  EXPECT(60, event.mlength);
  EXPECT(out, event.user_ptr);
  EXPECT(PTL_OK, PtlEQWait(target_eq, &event));
  EXPECT(PTL_EVENT_PUT, event.type);
  EXPECT(100, event.rlength);
  EXPECT(60, event.mlength);
  EXPECT(77, event.hdr_data);
  EXPECT(1, event.match_bits);
  EXPECT(in, event.start);
  EXPECT(0, event.initiator.rank);
  EXPECT(pt, event.pt_index);
  EXPECT(PTL_NI_OK, event.ni_fail_type);
  EXPECT(PTL_OK, PtlCTGet(target_ct, &count));
  EXPECT(60, count.success);

  /* Only acknowledgements, only failures: bits 9 match nothing. */
  put(descriptor(PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE), PTL_ACK_REQ, 9);
  EXPECT(PTL_OK, PtlCTWait(sender_ct, 1, &count));
  EXPECT(1, count.failure);
  EXPECT(PTL_OK, PtlEQGet(sender_eq, &event));
  EXPECT(PTL_EVENT_ACK, event.type);
  EXPECT(PTL_NI_DROPPED, event.ni_fail_type);
  put(descriptor(PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE), PTL_ACK_REQ, 1);
  EXPECT(PTL_OK, PtlCTWait(sender_ct, 1, &count));
  EXPECT(0, count.failure);
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(sender_eq, &event));
  EXPECT(PTL_OK, PtlEQWait(target_eq, &event));

  /* An entry that acknowledges nothing. */
  ptl_handle_me_t silent = entry(PTL_ME_ACK_DISABLE, PTL_PRIORITY_LIST, 2);
  put(descriptor(PTL_MD_EVENT_CT_ACK), PTL_CT_ACK_REQ, 2);
  EXPECT(PTL_OK, PtlEQWait(target_eq, &event));
  unsigned which;
  EXPECT(PTL_CT_NONE_REACHED, PtlCTPoll(&sender_ct, &(ptl_size_t){1}, 1, 1, &count, &which));
  EXPECT(PTL_OK, PtlMEUnlink(silent));
  EXPECT(PTL_OK, PtlEQGet(sender_eq, &event)); /* its send */

  /* A message that came first is counted for the entry that finds it, even without an event. */
  ptl_handle_md_t plain = descriptor(PTL_MD_EVENT_SEND_DISABLE);
  entry(0, PTL_OVERFLOW_LIST, 3);
  put(plain, PTL_NO_ACK_REQ, 3);
  EXPECT(PTL_OK, PtlEQWait(target_eq, &event));
  EXPECT(PTL_OVERFLOW_LIST, event.ptl_list);
  EXPECT(PTL_OK, PtlCTSet(target_ct, (ptl_ct_event_t){0, 0}));
  entry(PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_OVER_DISABLE, PTL_PRIORITY_LIST, 3);
  EXPECT(PTL_OK, PtlCTWait(target_ct, 1, &count));
  EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  EXPECT(PTL_EVENT_AUTO_UNLINK, event.type);

  /* No entry finds a message whose header was not kept. */
  entry(PTL_ME_UNEXPECTED_HDR_DISABLE, PTL_OVERFLOW_LIST, 4);
  put(plain, PTL_NO_ACK_REQ, 4);
  EXPECT(PTL_OK, PtlEQWait(target_eq, &event));
  entry(0, PTL_PRIORITY_LIST, 4);
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(target_eq, &event));

  /* PTL_SEARCH_ONLY finds a message, PTL_SEARCH_DELETE removes it; a search without a match gives an event, too. */
  entry(0, PTL_OVERFLOW_LIST, 5);
  put(plain, PTL_NO_ACK_REQ, 5);
  EXPECT(PTL_OK, PtlEQWait(target_eq, &event));
  const ptl_me_t like = {.ct_handle = PTL_CT_NONE,
                         .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE,
                         .match_id = {.rank = PTL_RANK_ANY},
                         .match_bits = 5};
  EXPECT(PTL_OK, PtlMESearch(ni, pt, &like, PTL_SEARCH_ONLY, in));
  EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  EXPECT(PTL_EVENT_SEARCH, event.type);
  EXPECT(60, event.mlength);
  EXPECT(in, event.user_ptr);
  EXPECT(PTL_OK, PtlMESearch(ni, pt, &like, PTL_SEARCH_DELETE, in));
  EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  EXPECT(PTL_EVENT_PUT_OVERFLOW, event.type);
  EXPECT(PTL_OK, PtlMESearch(ni, pt, &like, PTL_SEARCH_ONLY, in));
  EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  EXPECT(PTL_NI_NO_MATCH, event.ni_fail_type);

  /* A cancelled operation never runs. */
  EXPECT(PTL_OK, PtlCTSet(target_ct, (ptl_ct_event_t){0, 0}));
  EXPECT(PTL_OK, PtlTriggeredCTInc(sender_ct, (ptl_ct_event_t){1000, 0}, target_ct, 1));
  EXPECT(PTL_OK, PtlCTCancelTriggered(target_ct));
  EXPECT(PTL_OK, PtlCTInc(target_ct, (ptl_ct_event_t){1, 0}));
  EXPECT(PTL_CT_NONE_REACHED, PtlCTPoll(&sender_ct, &(ptl_size_t){1000}, 1, 1, &count, &which));
  PtlFini();
  printf("%d answers\n", answers);
  return wrong;
}
