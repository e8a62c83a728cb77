/* A put is judged alike whichever way it goes: straight from one range of memory, from a list, or by a counter that
 * has been reached before the call. Each wrong argument is refused by all three with the same code, and nothing lands;
 * right ones land, and the sender's counter counts as much. Two ranks; rank 0 sends. */
#include "portals_common.h"

enum { PT = 4, ROOM = 8192, LINE = 64, HALF = ROOM / 2, WAYS = 3 };
static unsigned char sent[ROOM], landed[WAYS * ROOM];
static ptl_handle_md_t descriptors[WAYS], unreliable[WAYS], bare[WAYS], released;
static ptl_handle_ct_t sends[WAYS], reached;
static ptl_iovec_t halves[2];

struct put {
  ptl_handle_md_t md;
  ptl_size_t offset, length;
  ptl_ack_req_t ack;
  ptl_process_t target;
};

static int put_by(int way, const struct put* put, ptl_size_t remote) {
  if (way < 2) {
    return PtlPut(put->md, put->offset, put->length, put->ack, put->target, PT, 7, remote, NULL, 5);
  }
  return PtlTriggeredPut(put->md, put->offset, put->length, put->ack, put->target, PT, 7, remote, NULL, 5, reached, 1);
}

static ptl_handle_md_t descriptor_of(int way, unsigned options, ptl_handle_ct_t counter) {
  ptl_handle_md_t md;
  ptl_md_t memory = {.start = sent, .length = ROOM, .options = options, .eq_handle = PTL_EQ_NONE, .ct_handle = counter};
  if (way == 1) {
    memory.start = halves;
    memory.length = 2;
    memory.options |= PTL_IOVEC;
  }
  MUST(PtlMDBind(ni, &memory, &md));
  return md;
}

static void refuse_wrong(int way) {
  const ptl_handle_md_t md = descriptors[way], none = PTL_INVALID_HANDLE;
  const ptl_process_t peer = rank_of(1);
  const struct put puts[] = {
      {none, 0, 8, PTL_NO_ACK_REQ, peer},
      {released, 0, 8, PTL_NO_ACK_REQ, peer},
      {sends[0], 0, 8, PTL_NO_ACK_REQ, peer},
      {md, ROOM + 1, 0, PTL_NO_ACK_REQ, peer},
      {md, ROOM, 1, PTL_NO_ACK_REQ, peer},
      {md, 1, ROOM, PTL_NO_ACK_REQ, peer},
      {md, 1, PTL_SIZE_MAX, PTL_NO_ACK_REQ, peer},
      {md, PTL_SIZE_MAX, 2, PTL_NO_ACK_REQ, peer},
      {md, 0, 8, (ptl_ack_req_t)(PTL_OC_ACK_REQ + 1), peer},
      {md, 0, 8, (ptl_ack_req_t)-1, peer},
      {md, 0, 8, PTL_ACK_REQ, peer}, /* there is no queue */
      {unreliable[way], 0, 8, PTL_CT_ACK_REQ, peer},
      {unreliable[way], 0, 8, PTL_OC_ACK_REQ, peer},
      {bare[way], 0, 8, PTL_CT_ACK_REQ, peer}, /* there is no counter */
      {bare[way], 0, 8, PTL_OC_ACK_REQ, peer},
      {md, 0, 8, PTL_NO_ACK_REQ, rank_of(2)},
      {md, 0, 8, PTL_NO_ACK_REQ, rank_of(PTL_RANK_ANY)},
  };
  for (size_t i = 0; i < sizeof puts / sizeof puts[0]; ++i) EXPECT(PTL_ARG_INVALID, put_by(way, &puts[i], 0));
}

/* Rules: P4F-4.16, P4F-11.1, P4F-11.3, P4F-11.4, P4F-11.5, P4F-11.7, P4F-15.4. */
int main(void) {
  ptl_pt_index_t pt;
  ptl_handle_ct_t arrived;
  ptl_ct_event_t count;
  begin();
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
  MUST(PtlCTAlloc(ni, &arrived));
  MUST(PtlCTAlloc(ni, &reached));
  MUST(PtlCTInc(reached, (ptl_ct_event_t){1, 0}));
  halves[0] = (ptl_iovec_t){.iov_base = sent, .iov_len = HALF};
  halves[1] = (ptl_iovec_t){.iov_base = sent + HALF, .iov_len = HALF};
  for (int at = 0; at < ROOM; ++at) sent[at] = (unsigned char)(at * 7 + at / 251 + 1);
  const ptl_me_t me = {.start = landed,
                       .length = sizeof landed,
                       .ct_handle = arrived,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = 7};
  ptl_handle_me_t entry;
  if (my_rank == 1) MUST(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &entry));
  for (int way = 0; way < WAYS; ++way) {
    MUST(PtlCTAlloc(ni, &sends[way]));
    descriptors[way] = descriptor_of(way, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_BYTES, sends[way]);
    unreliable[way] = descriptor_of(way, PTL_MD_UNRELIABLE, sends[way]);
    bare[way] = descriptor_of(way, 0, PTL_CT_NONE);
  }
  released = descriptor_of(0, 0, PTL_CT_NONE);
  MUST(PtlMDRelease(released));
  barrier();
  if (my_rank == 0) {
    for (int way = 0; way < WAYS; ++way) refuse_wrong(way);
    for (int way = 0; way < WAYS; ++way) {
      const ptl_size_t start = (ptl_size_t)way * ROOM;
      const struct put word = {descriptors[way], HALF - 4, 8, PTL_NO_ACK_REQ, rank_of(1)};
      const struct put all = {descriptors[way], 0, HALF, PTL_NO_ACK_REQ, rank_of(1)};
      EXPECT(PTL_OK, put_by(way, &word, start));
      EXPECT(PTL_OK, put_by(way, &all, start + LINE));
      MUST(PtlCTWait(sends[way], 8 + HALF, &count));
      EXPECT(8 + HALF, count.success);
      EXPECT(0, count.failure);
    }
  } else {
    MUST(PtlCTWait(arrived, 2 * WAYS, &count));
    EXPECT(0, count.failure);
    for (int way = 0; way < WAYS; ++way) {
      const unsigned char* const place = landed + way * ROOM;
      EXPECT(0, memcmp(place, sent + HALF - 4, 8));
      EXPECT(0, memcmp(place + LINE, sent, HALF));
      EXPECT(0, place[8] + place[LINE - 1] + place[LINE + HALF]);
    }
  }
  barrier();
  PtlCTGet(arrived, &count);
  EXPECT(my_rank == 1 ? 2 * WAYS : 0, count.success + count.failure);
  return end();
}
