/* PtlPTDisable is called while messages arrive. When it returns, the messages that had matched have ended and their
 * events are there, and nothing follows: no event, no byte. Two ranks; rank 1 puts until it is refused. */
#include "portals_common.h"

enum { PT_FLOOD, PT_RESULT };
enum { FIRST = 20, WINDOW = 16, REFUSED = 64, LONGEST = 40000 };

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static char memory[LONGEST], snapshot[LONGEST];

static void append(ptl_pt_index_t pt) {
  ptl_handle_me_t made;
  ptl_me_t me = {.start = memory,
                 .length = sizeof memory,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .ignore_bits = ~0ull};
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &made));
}

/* Rules: P4F-3.31, P4F-5.15, P4F-5.16, P4F-5.17, P4F-5.22. */
static void target(void) {
  ptl_event_t event;
  ptl_sr_value_t before, after;
  unsigned landed = 0, others = 0, late = 0;
  MUST(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &before));
  for (; landed < FIRST; ++landed) {
    MUST(PtlEQWait(eq, &event));
    others += event.type != PTL_EVENT_PUT || event.ni_fail_type != PTL_NI_OK;
  }
  EXPECT(PTL_OK, PtlPTDisable(ni, PT_FLOOD));
  for (; PtlEQGet(eq, &event) == PTL_OK; ++landed) others += event.type != PTL_EVENT_PUT;
  memcpy(snapshot, memory, sizeof memory);
  for (int i = 0; i < 100; ++i) {
    usleep(200);
    late += PtlEQGet(eq, &event) != PTL_EQ_EMPTY;
  }
  EXPECT(0, others);
  EXPECT(0, late);
  EXPECT(0, memcmp(memory, snapshot, sizeof memory));
  append(PT_RESULT);
  barrier();
  MUST(PtlEQWait(eq, &event));
  EXPECT(PT_RESULT, event.pt_index);
  EXPECT(landed, event.hdr_data);
  MUST(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &after));
  EXPECT(event.match_bits, after - before);
  EXPECT(PTL_OK, PtlPTEnable(ni, PT_FLOOD));
  barrier();
  MUST(PtlEQWait(eq, &event));
  EXPECT(PTL_EVENT_PUT, event.type);
  EXPECT(PT_FLOOD, event.pt_index);
}

static void put(unsigned i) {
  static const ptl_size_t lengths[] = {8, LONGEST, 0, 3000, 16, 300};
  memset(memory, (int)i, sizeof memory / 8);
  MUST(PtlPut(md, 0, lengths[i % 6], PTL_ACK_REQ, rank_of(0), PT_FLOOD, 0, 0, NULL, 0));
}

/* Rules: P4F-5.18. */
static void initiator(void) {
  unsigned count[2] = {0, 0}, others = 0, given = 0, open = 0;
  while (count[1] < REFUSED || open > 0) {
    if (count[1] < REFUSED && open < WINDOW) {
      put(given++);
      ++open;
      continue;
    }
    const ptl_ni_fail_t fate = ended(eq);
    others += fate != PTL_NI_OK && fate != PTL_NI_PT_DISABLED;
    ++count[fate != PTL_NI_OK];
    --open;
  }
  EXPECT(0, others);
  EXPECT(1, count[0] >= FIRST);
  barrier();
  MUST(PtlPut(md, 0, 0, PTL_ACK_REQ, rank_of(0), PT_RESULT, count[1], 0, NULL, count[0]));
  EXPECT(PTL_NI_OK, ended(eq));
  barrier();
  put(0);
  EXPECT(PTL_NI_OK, ended(eq));
}

int main(void) {
  ptl_pt_index_t pt;
  begin();
  MUST(PtlEQAlloc(ni, 1 << 16, &eq)); /* a target that does not run for a while loses no event */
  for (ptl_pt_index_t want = PT_FLOOD; want <= PT_RESULT; ++want) MUST(PtlPTAlloc(ni, 0, eq, want, &pt));
  ptl_md_t what = {.start = memory, .length = sizeof memory, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &what, &md));
  append(PT_FLOOD);
  barrier();
  if (my_rank == 0) {
    target();
  } else {
    initiator();
  }
  return end();
}
