/* Puts, gets and atomics to one entry whose memory at the sender is sometimes a list of pieces: their headers arrive in
 * the order of the calls, however long each takes to read. Two ranks; rank 1 sends. */
#include "portals_common.h"

enum { ROUNDS = 200, PIECES = 12, PIECE = 5, LIST = PIECES * PIECE, ROUND = LIST + 3, OPERATIONS = 4 * ROUNDS };

static unsigned char memory[ROUNDS * ROUND];
static unsigned char out[2 * LIST], in[1];
static ptl_handle_ct_t answered;

static ptl_handle_md_t bind(void* start, ptl_size_t length, unsigned options) {
  ptl_handle_md_t handle;
  ptl_md_t md = {.start = start,
                 .length = length,
                 .options = options | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK,
                 .eq_handle = PTL_EQ_NONE,
                 .ct_handle = answered};
  MUST(PtlMDBind(ni, &md, &handle));
  return handle;
}

/* Where operation i belongs if the headers are matched in the order of the calls: the entry gives out its memory as
 * they match. */
static unsigned char* place(unsigned i) { return memory + i / 4 * ROUND + (i % 4 == 0 ? 0 : LIST - 1 + i % 4); }

/* Rules: P4F-18.1. */
static void receive(ptl_handle_eq_t eq) {
  unsigned misplaced = 0, gets = 0;
  for (unsigned i = 0; i < OPERATIONS; ++i) {
    ptl_event_t event;
    MUST(PtlEQWait(eq, &event));
    const unsigned which = event.type == PTL_EVENT_GET ? 4 * gets++ + 3 : (unsigned)event.hdr_data;
    misplaced += event.start != place(which) || event.mlength != (which % 4 == 0 ? LIST : 1);
  }
  EXPECT(0, misplaced);
  EXPECT(ROUNDS, gets);
}

static void send(ptl_pt_index_t pt) {
  ptl_iovec_t pieces[PIECES];
  ptl_ct_event_t count;
  for (unsigned i = 0; i < sizeof out; ++i) out[i] = (unsigned char)(i + 1);
  for (unsigned i = 0; i < PIECES; ++i) pieces[i] = (ptl_iovec_t){out + 2 * i * PIECE, PIECE};
  const ptl_handle_md_t list = bind(pieces, PIECES, PTL_IOVEC);
  const ptl_handle_md_t plain = bind(out, sizeof out, 0);
  const ptl_handle_md_t back = bind(in, sizeof in, 0);
  const ptl_process_t to = rank_of(0);
  for (unsigned i = 0; i < OPERATIONS; i += 4) {
    MUST(PtlPut(list, 0, LIST, PTL_CT_ACK_REQ, to, pt, 0, 0, NULL, i));
    MUST(PtlPut(plain, 3, 1, PTL_CT_ACK_REQ, to, pt, 0, 0, NULL, i + 1));
    MUST(PtlAtomic(plain, 4, 1, PTL_CT_ACK_REQ, to, pt, 0, 0, NULL, i + 2, PTL_SUM, PTL_UINT8_T));
    MUST(PtlGet(back, 0, 1, to, pt, 0, 0, NULL));
  }
  MUST(PtlCTWait(answered, OPERATIONS, &count));
  EXPECT(0, count.failure);
}

int main(void) {
  begin();
  ptl_handle_me_t handle;
  ptl_pt_index_t pt;
  ptl_handle_eq_t eq;
  MUST(PtlEQAlloc(ni, 2 * OPERATIONS, &eq));
  MUST(PtlCTAlloc(ni, &answered));
  MUST(PtlPTAlloc(ni, 0, eq, 0, &pt));
  ptl_me_t me = {.start = memory,
                 .length = sizeof memory,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE,
                 .match_id = {.rank = PTL_RANK_ANY}};
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  barrier();
  if (my_rank == 1) send(pt);
  barrier();
  if (my_rank == 0) {
    receive(eq);
    unsigned wrong_memory = 0;
    for (unsigned i = 0; i < OPERATIONS; i += 4) {
      for (unsigned k = 0; k < LIST; ++k) wrong_memory += place(i)[k] != k / PIECE * 2 * PIECE + k % PIECE + 1;
      wrong_memory += *place(i + 1) != 4 || *place(i + 2) != 5;
    }
    EXPECT(0, wrong_memory);
  }
  return end();
}
