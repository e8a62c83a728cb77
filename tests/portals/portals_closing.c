/* A rank closes its interface right after puts and a get that nobody has waited for: the bytes are those of the calls,
 * though the program changes its memory as soon as PtlNIFini has returned. Two ranks; rank 0 sends. */
#include "portals_common.h"

enum { PUTS = 4, PT = 4, MOST = 1 << 20 };
static const ptl_size_t lengths[PUTS] = {8, 3000, 70000, MOST};
static unsigned char sent[PUTS][MOST], landed[PUTS][MOST], read_from[MOST], into[MOST];

static unsigned char value_of(int put, ptl_size_t at) { return (unsigned char)(at * 7 + at / 251 + 31 * put + 1); }

static int is_whole(const unsigned char* bytes, int put, ptl_size_t length) {
  for (ptl_size_t at = 0; at < length; ++at)
    if (bytes[at] != value_of(put, at)) return 0;
  return 1;
}

static void append(void* start, ptl_size_t length, ptl_match_bits_t bits, ptl_handle_ct_t counter) {
  ptl_handle_me_t handle;
  const ptl_me_t me = {.start = start,
                       .length = length,
                       .ct_handle = counter,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = bits};
  MUST(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Rules: P4F-3.41. */
int main(void) {
  ptl_pt_index_t pt;
  ptl_handle_ct_t counter;
  ptl_handle_md_t md;
  ptl_ct_event_t count = {0, 0};
  begin();
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
  MUST(PtlCTAlloc(ni, &counter));
  for (int put = 0; put < PUTS; ++put)
    for (ptl_size_t at = 0; at < lengths[put]; ++at) sent[put][at] = value_of(put, at);
  for (ptl_size_t at = 0; at < MOST; ++at) read_from[at] = value_of(PUTS, at);
  if (my_rank == 1) {
    for (int put = 0; put < PUTS; ++put) append(landed[put], lengths[put], (ptl_match_bits_t)put, counter);
    append(read_from, MOST, PUTS, counter);
  }
  barrier();
  if (my_rank == 1) {
    MUST(PtlCTWait(counter, PUTS + 1, &count));
    EXPECT(0, count.failure);
    for (int put = 0; put < PUTS; ++put) EXPECT(1, is_whole(landed[put], put, lengths[put]));
  } else {
    const ptl_md_t all = {.start = sent, .length = sizeof sent, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    const ptl_md_t back = {.start = into, .length = sizeof into, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    MUST(PtlMDBind(ni, &all, &md));
    for (int put = 0; put < PUTS; ++put)
      MUST(PtlPut(md, (ptl_size_t)put * MOST, lengths[put], PTL_NO_ACK_REQ, rank_of(1), PT, (ptl_match_bits_t)put, 0,
                  NULL, 0));
    MUST(PtlMDBind(ni, &back, &md));
    MUST(PtlGet(md, 0, MOST, rank_of(1), PT, PUTS, 0, NULL));
  }
  EXPECT(PTL_OK, PtlNIFini(ni));
  const int got = is_whole(into, PUTS, MOST);
  memset(sent, 0, sizeof sent);
  memset(into, 0, sizeof into);
  if (my_rank == 0) EXPECT(1, got);
  printf("rank %u: %d answers\n", my_rank, answers);
  PtlFini();
  if (my_rank == 0) EXPECT(0, into[0] + into[MOST - 1]);
  return wrong == 0 ? 0 : 1;
}
