/* Volatile descriptors over all memory: the bytes of a put of any length may change when the call has returned, where
 * the program has asked for so much; longer puts work as from other descriptors. Two ranks; each sends to the other and
 * to itself. */
#include "portals_common.h"

enum { LONGEST = 1 << 20 };

static unsigned char out[LONGEST], in[2][LONGEST];
static ptl_handle_ct_t sent, landed;

static unsigned char byte_of(unsigned from, ptl_size_t i) { return (unsigned char)(i * 7 + from + i / 251); }

/* Rules: P4F-6.3, P4F-6.25. */
static void send(ptl_handle_md_t md, unsigned to, ptl_size_t length, ptl_size_t acks) {
  ptl_ct_event_t count;
  for (ptl_size_t i = 0; i < length; ++i) out[i] = byte_of(my_rank, i);
  EXPECT(PTL_OK, PtlPut(md, (ptl_size_t)out, length, PTL_CT_ACK_REQ, rank_of(to), 0, my_rank, 0, NULL, 0));
  memset(out, 0xee, length);
  MUST(PtlCTWait(sent, acks, &count));
  EXPECT(0, count.failure);
}

/* Rules: P4F-6.27. */
int main(void) {
  ptl_ni_limits_t desired, usual;
  ptl_handle_ni_t other;
  ptl_handle_md_t md;
  ptl_pt_index_t pt;
  memset(&desired, 0x7f, sizeof desired);
  desired.max_atomic_size = desired.max_fetch_atomic_size = 64;
  begin_with(&desired);
  EXPECT(1, limits.max_volatile_size >= LONGEST);
  EXPECT(1, limits.max_atomic_size <= 64);
  EXPECT(limits.max_msg_size, limits.max_volatile_size);
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, &usual, &other));
  EXPECT(512, usual.max_volatile_size);
  MUST(PtlCTAlloc(ni, &sent));
  MUST(PtlCTAlloc(ni, &landed));
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  for (unsigned from = 0; from < 2; ++from) {
    ptl_handle_me_t handle;
    const ptl_me_t me = {.start = in[from],
                         .length = LONGEST,
                         .ct_handle = landed,
                         .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                         .match_id = {.rank = PTL_RANK_ANY},
                         .match_bits = from};
    MUST(PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
  }
  const ptl_md_t all = {.length = PTL_SIZE_MAX,
                        .options = PTL_MD_VOLATILE | PTL_MD_EVENT_CT_ACK,
                        .eq_handle = PTL_EQ_NONE,
                        .ct_handle = sent};
  MUST(PtlMDBind(ni, &all, &md));
  ptl_size_t puts = 0;
  for (ptl_size_t length = 16; length <= LONGEST; length *= 16) {
    for (unsigned way = 0; way < 2; ++way) { /* the other is first, this rank second */
      const unsigned other_end = way == 0 ? 1 - my_rank : my_rank;
      memset(in, 0, sizeof in);
      barrier();
      send(md, other_end, length, ++puts);
      barrier();
      unsigned long long differs = 0;
      for (ptl_size_t i = 0; i < length; ++i) differs += in[other_end][i] != byte_of(other_end, i);
      EXPECT(0, differs);
    }
  }
  /* Longer than what was asked for: nothing is promised, and the put works. */
  ptl_handle_ct_t acked;
  ptl_handle_le_t handle;
  ptl_process_t me;
  ptl_ct_event_t count;
  const ptl_le_t le = {.start = in[0], .length = LONGEST, .uid = PTL_UID_ANY, .options = PTL_LE_OP_PUT};
  MUST(PtlCTAlloc(other, &acked));
  MUST(PtlGetId(other, &me));
  MUST(PtlPTAlloc(other, 0, PTL_EQ_NONE, 0, &pt));
  MUST(PtlLEAppend(other, pt, &le, PTL_PRIORITY_LIST, NULL, &handle));
  ptl_md_t small = all;
  small.ct_handle = acked;
  MUST(PtlMDBind(other, &small, &md));
  memset(out, 3, sizeof out);
  EXPECT(PTL_OK, PtlPut(md, (ptl_size_t)out, LONGEST, PTL_CT_ACK_REQ, me, pt, 0, 0, NULL, 0));
  MUST(PtlCTWait(acked, 1, &count));
  EXPECT(0, count.failure);
  EXPECT(0, memcmp(in[0], out, LONGEST));
  return end();
}
