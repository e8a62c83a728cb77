/* Triggered operations, entries that are appended and unlinked by a counter, messages that come before their entry.
 * Two ranks. */
#include <portals4_spin.h>

#include "portals_common.h"

static ptl_handle_eq_t eq, target_eq;
static ptl_handle_md_t md;
static ptl_handle_ct_t sent, trigger, landed;
static char memory[256];

static ptl_me_t entry_of(ptl_match_bits_t bits, unsigned options) {
  ptl_me_t me = {.start = memory,
                 .length = sizeof memory,
                 .ct_handle = landed,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  return me;
}

static ptl_ni_fail_t put(ptl_match_bits_t bits, ptl_size_t length) {
  MUST(PtlPut(md, 0, length, PTL_ACK_REQ, rank_of(1 - my_rank), 0, bits, 0, NULL, 0));
  return ended(eq);
}

static ptl_ct_event_t value(ptl_handle_ct_t ct) {
  ptl_ct_event_t now;
  MUST(PtlCTGet(ct, &now));
  return now;
}

static ptl_event_t next(void) {
  ptl_event_t event;
  MUST(PtlEQWait(target_eq, &event));
  return event;
}

/* Rules: P4F-7.39, P4F-7.40, P4F-7.71, P4F-7.74, P4F-7.75, P4F-7.83, P4F-10.18, P4F-12.2, P4F-12.25, P4F-15.1,
 * P4F-15.3, P4F-15.7, P4F-15.8, P4F-15.9, P4F-15.16, P4F-15.17. */
int main(void) {
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  ptl_event_t event;
  ptl_handle_me_t handle, early;
  ptl_me_t me;
  begin();
  MUST(PtlEQAlloc(ni, 64, &eq));
  MUST(PtlEQAlloc(ni, 64, &target_eq));
  MUST(PtlCTAlloc(ni, &sent));
  MUST(PtlCTAlloc(ni, &trigger));
  MUST(PtlCTAlloc(ni, &landed));
  MUST(PtlPTAlloc(ni, 0, target_eq, 0, &pt));
  ptl_md_t what = {.start = memory,
                   .length = sizeof memory,
                   .options = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_SEND_DISABLE,
                   .eq_handle = eq,
                   .ct_handle = sent};
  MUST(PtlMDBind(ni, &what, &md));
  const ptl_process_t other = rank_of(1 - my_rank);

  /* A counter takes as many waiting operations as the limit says, and not one more; counters' changes are not among
   * them. */
  me = entry_of(1, PTL_ME_EVENT_COMM_DISABLE);
  EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
  barrier();
  unsigned refused = 0;
  for (int i = 0; i < limits.max_triggered_ops; ++i) {
    /* In no order: the later half fires first. */
    const ptl_size_t threshold = i < limits.max_triggered_ops / 2 ? 2 : 1;
    refused += PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, other, 0, 1, 0, NULL, 0, trigger, threshold) != PTL_OK;
  }
  EXPECT(0, refused);
  EXPECT(PTL_NO_SPACE, PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, other, 0, 1, 0, NULL, 0, trigger, 1));
  EXPECT(PTL_NO_SPACE,
         PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, other, 0, 1, 0, NULL, 0, PTL_SUM, PTL_INT64_T, trigger, 1));
  EXPECT(PTL_OK, PtlTriggeredCTInc(landed, (ptl_ct_event_t){1000000, 0}, trigger, 1));
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
  const ptl_size_t half = (ptl_size_t)limits.max_triggered_ops / 2;
  MUST(PtlCTWait(sent, half, &count));
  EXPECT(half, count.success);
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){0, 1})); /* a failure counts as well */
  MUST(PtlCTWait(sent, (ptl_size_t)limits.max_triggered_ops, &count));
  MUST(PtlCTWait(landed, 1000000 + (ptl_size_t)limits.max_triggered_ops, &count));
  EXPECT(1, count.success - 1000000 - (ptl_size_t)limits.max_triggered_ops <= 1); /* the peer may be ahead */
  /* An operation whose threshold has been reached runs at once; the counter has room again. */
  EXPECT(PTL_OK, PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, other, 0, 1, 0, NULL, 0, trigger, 2));
  MUST(PtlCTWait(sent, (ptl_size_t)limits.max_triggered_ops + 1, &count));
  /* An operation that waits on a counter when it is freed never runs, and releases its descriptor. */
  ptl_handle_md_t held;
  MUST(PtlMDBind(ni, &what, &held));
  EXPECT(PTL_OK, PtlTriggeredPut(held, 0, 8, PTL_NO_ACK_REQ, other, 0, 1, 0, NULL, 0, trigger, 1000));
  EXPECT(PTL_ARG_INVALID, PtlMDRelease(held));
  EXPECT(PTL_OK, PtlCTFree(trigger));
  EXPECT(PTL_OK, PtlMDRelease(held));
  EXPECT(PTL_ARG_INVALID, PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, other, 0, 1, 0, NULL, 0, trigger, 1));
  MUST(PtlCTAlloc(ni, &trigger));
  EXPECT(0, value(trigger).success);
  barrier();

  /* An entry that a counter brings, and one that it takes away. */
  me = entry_of(2, PTL_ME_EVENT_COMM_DISABLE);
  EXPECT(PTL_OK, PtlTriggeredMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle, trigger, 1));
  EXPECT(PTL_OK, PtlTriggeredMEUnlink(handle, trigger, 2));
  EXPECT(PTL_ARG_INVALID, PtlTriggeredMEUnlink(handle, eq, 2));
  barrier();
  EXPECT(PTL_NI_DROPPED, put(2, 8));
  barrier();
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
  barrier();
  EXPECT(PTL_NI_OK, put(2, 8));
  barrier();
  EXPECT(PTL_OK, PtlCTInc(trigger, (ptl_ct_event_t){1, 0}));
  barrier();
  EXPECT(PTL_NI_DROPPED, put(2, 8));
  EXPECT(PTL_ARG_INVALID, PtlMEUnlink(handle));
  barrier();

  /* Messages that came first take room of an entry that counts them; min_free may end it before it is linked. */
  me = entry_of(3, PTL_ME_EVENT_COMM_DISABLE);
  EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_OVERFLOW_LIST, NULL, &early));
  barrier();
  for (int i = 0; i < 3; ++i) EXPECT(PTL_NI_OK, put(3, 50));
  barrier();
  EXPECT(PTL_IN_USE, PtlMEUnlink(early));
  me = entry_of(3, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH);
  EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, &me, &handle));
  for (int i = 0; i < 3; ++i) {
    event = next();
    EXPECT(PTL_EVENT_PUT_OVERFLOW, event.type);
    EXPECT(&me, event.user_ptr);
  }
  barrier();
  EXPECT(PTL_NI_OK, put(3, 10));
  event = next();
  EXPECT(PTL_EVENT_PUT, event.type);
  EXPECT(memory + 150, event.start);
  EXPECT(PTL_OK, PtlMEUnlink(handle));
  barrier();
  for (int i = 0; i < 3; ++i) EXPECT(PTL_NI_OK, put(3, 50));
  barrier();
  me.min_free = 200;
  EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, &me, &handle));
  for (int i = 0; i < 2; ++i) EXPECT(PTL_EVENT_PUT_OVERFLOW, next().type);
  EXPECT(PTL_EVENT_AUTO_UNLINK, next().type); /* 156 B were left */
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(target_eq, &event));
  EXPECT(PTL_ARG_INVALID, PtlMEUnlink(handle));
  barrier();

  /* Twenty use-once entries: those that no message took can be unlinked. */
  ptl_handle_me_t once[20];
  me = entry_of(4, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  for (int i = 0; i < 20; ++i) EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &once[i]));
  barrier();
  for (int i = 0; i < 10; ++i) EXPECT(PTL_NI_OK, put(4, 8));
  barrier();
  for (int i = 0; i < 10; ++i) EXPECT(PTL_EVENT_PUT, next().type);
  int unlinked = 0;
  for (int i = 0; i < 20; ++i) unlinked += PtlMEUnlink(once[i]) == PTL_OK;
  EXPECT(10, unlinked);
  barrier();

  /* An entry that has told is not in use any more. */
  me = entry_of(5, 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
    barrier();
    MUST(PtlPut(md, 0, sizeof memory, PTL_NO_ACK_REQ, other, 0, 5, 0, NULL, 0));
    EXPECT(PTL_EVENT_PUT, next().type);
    EXPECT(PTL_OK, PtlMEUnlink(handle));
    barrier();
  }

  /* Long doubles, at an odd address: sums, and a complex one that is compared. */
  long double add[2] = {1.5L, -2.25L}, old[2] = {7, 7}, zero[2] = {0, 0};
  memcpy(memory + 33, zero, sizeof zero);
  ptl_md_t from = {.start = add, .length = sizeof add, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  ptl_md_t to = {.start = old, .length = sizeof old, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t from_md, to_md;
  MUST(PtlMDBind(ni, &from, &from_md));
  MUST(PtlMDBind(ni, &to, &to_md));
  me = entry_of(6, PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE);
  EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
  barrier();
  EXPECT(PTL_OK, PtlAtomic(from_md, 0, sizeof add, PTL_ACK_REQ, other, 0, 6, 33, NULL, 0, PTL_SUM, PTL_LONG_DOUBLE));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(PTL_OK,
         PtlFetchAtomic(to_md, 0, from_md, 0, sizeof add, other, 0, 6, 33, NULL, 0, PTL_PROD, PTL_LONG_DOUBLE_COMPLEX));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(1, old[0] == 1.5L && old[1] == -2.25L);
  const long double square[2] = {1.5L * 1.5L - 2.25L * 2.25L, -2 * 1.5L * 2.25L};
  EXPECT(PTL_OK,
         PtlSwap(to_md, 0, from_md, 0, sizeof add, other, 0, 6, 33, NULL, 0, zero, PTL_CSWAP, PTL_LONG_DOUBLE_COMPLEX));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(1, old[0] == square[0] && old[1] == square[1]);
  EXPECT(PTL_OK, PtlSwap(to_md, 0, from_md, 0, sizeof add, other, 0, 6, 33, NULL, 0, square, PTL_CSWAP,
                         PTL_LONG_DOUBLE_COMPLEX));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(1, old[0] == square[0] && old[1] == square[1]); /* the comparison before did not swap */
  barrier();
  memcpy(old, memory + 33, sizeof old);
  EXPECT(1, old[0] == 1.5L && old[1] == -2.25L);
  EXPECT(PTL_ARG_INVALID, PtlSwap(to_md, 0, from_md, 0, sizeof add, other, 0, 6, 33, NULL, 0, square, PTL_CSWAP_LT,
                                  PTL_LONG_DOUBLE_COMPLEX));
  /* Handles of what waits say whose they are. */
  ptl_handle_ni_t owner = PTL_INVALID_HANDLE;
  EXPECT(PTL_OK, PtlNIHandle(landed, &owner));
  EXPECT(ni, owner);
  EXPECT(PTL_CT_NONE_REACHED, PtlCTPoll(&trigger, &(ptl_size_t){99}, 1, 1, &count, &(unsigned){0}));
  /* A counter that resets itself starts an operation that persists once a round: a put of the other's counts a half. */
  ptl_handle_ct_t halves, rounds;
  MUST(PtlCTAlloc(ni, &halves));
  MUST(PtlCTAlloc(ni, &rounds));
  EXPECT(PTL_OK, PtlCTAutoReset(halves, 2));
  EXPECT(PTL_OK, PtlCTPersist(halves, 1));
  EXPECT(PTL_OK, PtlTriggeredCTInc(rounds, (ptl_ct_event_t){1, 0}, halves, 2));
  EXPECT(PTL_ARG_INVALID, PtlTriggeredCTInc(rounds, (ptl_ct_event_t){1, 0}, halves, 3));
  EXPECT(PTL_ARG_INVALID, PtlCTAutoReset(halves, 0));
  me = entry_of(40, PTL_ME_EVENT_COMM_DISABLE);
  me.ct_handle = halves;
  MUST(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
  barrier();
  for (int i = 0; i < 7; ++i) EXPECT(PTL_NI_OK, put(40, 8));
  barrier();
  MUST(PtlCTWait(rounds, 3, &count));
  EXPECT(3, count.success);
  EXPECT(1, value(halves).success);
  EXPECT(PTL_OK, PtlCTFree(halves));
  EXPECT(PTL_OK, PtlMEUnlink(handle));

  return end();
}
