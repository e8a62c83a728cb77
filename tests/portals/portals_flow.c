/* Checks puts for which an event queue is full, or an entry or a place for a header is missing; test_portals.py runs
 * this program with two ranks. */
#include "portals_common.h"

enum { QUEUED, FLOW, PLAIN_HEADERS, FLOW_HEADERS, QUIET, SYNCHRONOUS, NOTHING };

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;

static ptl_handle_me_t append(ptl_pt_index_t pt, ptl_list_t list, unsigned options) {
  ptl_me_t me = {.ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | options,
                 .match_id = {.rank = PTL_RANK_ANY}};
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, list, NULL, &handle));
  return handle;
}

/* Puts to rank 1 and returns how the put ended there. */
static ptl_ni_fail_t put(ptl_pt_index_t pt, ptl_hdr_data_t data) {
  MUST(PtlPut(md, 0, 0, PTL_ACK_REQ, rank_of(1), pt, 0, 0, NULL, data));
  return ended(eq);
}

/* The contents of a queue: the number of puts, the first and the last of them, the number of PT_DISABLED events. */
struct drained {
  int code; /* the code of the first retrieval */
  unsigned puts, disabled;
  ptl_hdr_data_t first, last;
  int in_order, dropped, last_type;
};
static struct drained drain(ptl_handle_eq_t queue) {
  struct drained found = {.code = PTL_EQ_EMPTY, .in_order = 1, .last_type = -1};
  for (;;) {
    ptl_event_t event;
    const int code = PtlEQGet(queue, &event);
    if (code == PTL_EQ_EMPTY) return found;
    if (found.code == PTL_EQ_EMPTY) found.code = code;
    if (code == PTL_EQ_DROPPED) ++found.dropped;
    found.last_type = event.type;
    if (event.type == PTL_EVENT_PT_DISABLED) {
      ++found.disabled;
      EXPECT(PTL_NI_PT_DISABLED, event.ni_fail_type);
    }
    if (event.type != PTL_EVENT_PUT) continue;
    if (found.puts == 0) found.first = event.hdr_data;
    if (found.puts > 0 && event.hdr_data != found.last + 1) found.in_order = 0;
    found.last = event.hdr_data;
    ++found.puts;
  }
}

/* Rules: P4F-5.2, P4F-5.12, P4F-5.17, P4F-5.18, P4F-5.22, P4F-5.23, P4F-5.24, P4F-7.51, P4F-14.3, P4F-14.4,
 * P4F-14.5, P4F-17.1, P4F-17.2, P4F-17.3, P4F-17.4, P4F-17.6, P4F-17.7, P4F-17.9, P4F-17.11, P4F-20.1. */
int main(void) {
  ptl_handle_eq_t queues[NOTHING + 1];
  ptl_handle_me_t gone = PTL_INVALID_HANDLE;
  struct drained found;
  begin_with(&(ptl_ni_limits_t){.max_entries = 100,
                                .max_unexpected_headers = 32,
                                .max_mds = 10,
                                .max_cts = 100,
                                .max_eqs = 20,
                                .max_pt_index = 63,
                                .max_list_size = 100,
                                .max_msg_size = 4096});
  EXPECT(32, limits.max_unexpected_headers);
  MUST(PtlEQAlloc(ni, 64, &eq));
  ptl_md_t nothing = {.eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &nothing, &md));
  for (ptl_pt_index_t pt = 0; pt <= NOTHING; ++pt) {
    const unsigned flow = pt == QUEUED || pt == PLAIN_HEADERS || pt == SYNCHRONOUS ? 0 : PTL_PT_FLOWCTRL;
    const ptl_size_t slots = pt == QUEUED || pt == FLOW ? 10 : 100;
    ptl_pt_index_t got;
    EXPECT(PTL_PT_EQ_NEEDED, PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, pt, &got));
    MUST(PtlEQAlloc(ni, slots, &queues[pt]));
    MUST(PtlPTAlloc(ni, flow, queues[pt], pt, &got));
  }
  append(QUEUED, PTL_PRIORITY_LIST, 0);
  append(FLOW, PTL_PRIORITY_LIST, 0);
  append(PLAIN_HEADERS, PTL_OVERFLOW_LIST, 0);
  append(FLOW_HEADERS, PTL_OVERFLOW_LIST, 0);
  append(QUIET, PTL_OVERFLOW_LIST, PTL_ME_EVENT_FLOWCTRL_DISABLE);
  gone = append(SYNCHRONOUS, PTL_PRIORITY_LIST, 0);
  barrier();

  /* A full queue forgets its oldest events and says so once. */
  const unsigned many = 300;
  if (my_rank == 0) {
    for (unsigned i = 0; i < many; ++i) EXPECT(PTL_NI_OK, put(QUEUED, i));
  }
  barrier();
  if (my_rank == 1) {
    found = drain(queues[QUEUED]);
    EXPECT(PTL_EQ_DROPPED, found.code);
    EXPECT(1, found.dropped);
    EXPECT(1, found.puts >= 10 && found.puts < many);
    EXPECT(many - found.puts, found.first);
    EXPECT(many - 1, found.last);
    EXPECT(1, found.in_order);
  }
  barrier();
  if (my_rank == 0) EXPECT(PTL_NI_OK, put(QUEUED, 1000));
  barrier();
  if (my_rank == 1) {
    found = drain(queues[QUEUED]);
    EXPECT(PTL_OK, found.code);
    EXPECT(1, found.puts);
  }

  /* Under flow control it is the portal table entry that gives in, twice. */
  for (int times = 0; times < 2; ++times) {
    barrier();
    unsigned taken = 0;
    if (my_rank == 0) {
      while (taken < 1000) {
        const ptl_ni_fail_t how = put(FLOW, taken);
        if (how == PTL_NI_OK) {
          ++taken;
          continue;
        }
        EXPECT(PTL_NI_PT_DISABLED, how);
        break;
      }
      EXPECT(1, taken > 0 && taken <= 10);
      EXPECT(PTL_NI_PT_DISABLED, put(FLOW, 0));
    }
    barrier();
    if (my_rank == 1) {
      found = drain(queues[FLOW]);
      EXPECT(PTL_OK, found.code);
      EXPECT(1, found.puts > 0 && found.puts <= 10);
      EXPECT(0, found.first);
      EXPECT(found.puts - 1, found.last);
      EXPECT(1, found.in_order);
      EXPECT(1, found.disabled);
      EXPECT(PTL_EVENT_PT_DISABLED, found.last_type);
      EXPECT(PTL_OK, PtlPTEnable(ni, FLOW));
    }
  }

  /* No place for a header; and no entry. */
  barrier();
  if (my_rank == 0) {
    for (unsigned i = 0; i < 32; ++i) {
      EXPECT(PTL_NI_OK, put(PLAIN_HEADERS, i));
      EXPECT(PTL_NI_OK, put(FLOW_HEADERS, i));
      EXPECT(PTL_NI_OK, put(QUIET, i));
    }
    EXPECT(PTL_NI_DROPPED, put(PLAIN_HEADERS, 32));
    EXPECT(PTL_NI_DROPPED, put(PLAIN_HEADERS, 33));
    EXPECT(PTL_NI_PT_DISABLED, put(FLOW_HEADERS, 32));
    EXPECT(PTL_NI_PT_DISABLED, put(FLOW_HEADERS, 33));
    EXPECT(PTL_NI_PT_DISABLED, put(QUIET, 32));
    EXPECT(PTL_NI_PT_DISABLED, put(NOTHING, 0));
  }
  barrier();
  if (my_rank == 1) {
    found = drain(queues[PLAIN_HEADERS]);
    EXPECT(32, found.puts);
    EXPECT(0, found.disabled);
    found = drain(queues[FLOW_HEADERS]);
    EXPECT(32, found.puts);
    EXPECT(1, found.disabled);
    found = drain(queues[QUIET]);
    EXPECT(32, found.puts);
    EXPECT(0, found.disabled); /* its entry wants no news of that */
    found = drain(queues[NOTHING]);
    EXPECT(0, found.puts);
    EXPECT(1, found.disabled);
    append(NOTHING, PTL_PRIORITY_LIST, 0);
    EXPECT(PTL_OK, PtlPTEnable(ni, NOTHING));
    EXPECT(PTL_OK, PtlPTEnable(ni, NOTHING));
  }
  barrier();
  if (my_rank == 0) EXPECT(PTL_NI_OK, put(NOTHING, 0));
  barrier();

  /* Disabled by hand: at once, without news; what waits in overflow entries does not keep an entry from going. */
  if (my_rank == 1) EXPECT(PTL_OK, PtlPTDisable(ni, SYNCHRONOUS));
  barrier();
  if (my_rank == 0) EXPECT(PTL_NI_PT_DISABLED, put(SYNCHRONOUS, 0));
  barrier();
  if (my_rank == 1) EXPECT(PTL_OK, PtlPTEnable(ni, SYNCHRONOUS));
  barrier();
  if (my_rank == 0) EXPECT(PTL_NI_OK, put(SYNCHRONOUS, 1));
  barrier();
  if (my_rank == 1) {
    found = drain(queues[SYNCHRONOUS]);
    EXPECT(1, found.puts);
    EXPECT(0, found.disabled);
    EXPECT(PTL_PT_IN_USE, PtlPTFree(ni, SYNCHRONOUS));
    EXPECT(PTL_OK, PtlMEUnlink(gone));
    EXPECT(PTL_ARG_INVALID, PtlMEUnlink(gone));
    EXPECT(PTL_OK, PtlPTFree(ni, SYNCHRONOUS));
    EXPECT(PTL_ARG_INVALID, PtlPTDisable(ni, SYNCHRONOUS));
  }
  return end();
}
