/* Limits must agree with each other, and atomics of the length that they allow must work, in one piece and in
 * several. */
#include "portals_common.h"

static ptl_handle_eq_t eq;
static uint64_t source[1024], target[1024], before[1024];
static ptl_iovec_t pieces[2] = {{.iov_base = target, .iov_len = 1000}, {.iov_base = target + 125}};

/* Rules: P4F-3.21, P4F-3.22, P4F-3.26. */
static void agree(const ptl_ni_limits_t* granted) {
  EXPECT(1, granted->max_fetch_atomic_size >= 8 && granted->max_fetch_atomic_size <= granted->max_atomic_size);
  EXPECT(1, granted->max_volatile_size <= granted->max_msg_size);
  EXPECT(1, granted->max_waw_ordered_size >= 64 && granted->max_war_ordered_size >= 8);
  EXPECT(1, granted->max_war_ordered_size <= granted->max_waw_ordered_size);
}

/* Rules: P4F-3.18. */
static void ask(ptl_size_t atomic, ptl_size_t fetch, ptl_size_t short_lived, ptl_size_t waw, ptl_size_t war) {
  const ptl_ni_limits_t desired = {.max_entries = 16,
                                   .max_unexpected_headers = 32,
                                   .max_msg_size = PTL_SIZE_MAX,
                                   .max_atomic_size = atomic,
                                   .max_fetch_atomic_size = fetch,
                                   .max_volatile_size = short_lived,
                                   .max_waw_ordered_size = waw,
                                   .max_war_ordered_size = war};
  ptl_ni_limits_t granted;
  ptl_handle_ni_t other;
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &desired, &granted, &other));
  agree(&granted);
  EXPECT(32, granted.max_unexpected_headers);
  MUST(PtlNIFini(other));
}

/* The whole limit at once, to an entry that is one range or a list; one byte more is refused. */
/* Rules: P4F-3.19, P4F-12.18, P4F-12.19. */
static void atomics(ptl_match_bits_t bits, const ptl_process_t to) {
  const ptl_size_t most = limits.max_atomic_size, fetched = limits.max_fetch_atomic_size;
  ptl_handle_md_t from_md, to_md;
  ptl_md_t from = {.start = source, .length = sizeof source, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  ptl_md_t back = {.start = before, .length = sizeof before, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &from, &from_md));
  MUST(PtlMDBind(ni, &back, &to_md));
  memset(target, 0, sizeof target);
  barrier();
  EXPECT(PTL_OK, PtlAtomic(from_md, 0, most, PTL_ACK_REQ, to, 0, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(PTL_OK, PtlFetchAtomic(to_md, 0, from_md, 0, fetched, to, 0, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(0, memcmp(before, source, fetched));
  EXPECT(PTL_OK, PtlSwap(to_md, 0, from_md, 0, fetched, to, 0, bits, 0, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T));
  EXPECT(PTL_NI_OK, ended(eq));
  int wrong_words = 0;
  for (ptl_size_t i = 0; i < fetched / 8; ++i) wrong_words += before[i] != 2 * source[i];
  EXPECT(0, wrong_words);
  barrier();
  for (ptl_size_t i = 0; i < most / 8; ++i) wrong_words += target[i] != source[i];
  EXPECT(0, wrong_words);
  EXPECT(PTL_ARG_INVALID, PtlAtomic(from_md, 0, most + 8, PTL_ACK_REQ, to, 0, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_ARG_INVALID,
         PtlFetchAtomic(to_md, 0, from_md, 0, fetched + 8, to, 0, bits, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  barrier();
  MUST(PtlMDRelease(from_md));
  MUST(PtlMDRelease(to_md));
}

/* Rules: P4F-3.25. */
int main(void) {
  ptl_handle_me_t handle;
  ptl_pt_index_t pt;
  begin();
  agree(&limits);
  EXPECT(65536, limits.max_unexpected_headers);
  EXPECT(1, limits.max_atomic_size >= 1024 && limits.max_atomic_size % 8 == 0);
  ask(512, PTL_SIZE_MAX, PTL_SIZE_MAX, 64, PTL_SIZE_MAX);
  ask(PTL_SIZE_MAX, PTL_SIZE_MAX, PTL_SIZE_MAX, PTL_SIZE_MAX, PTL_SIZE_MAX);
  ask(0, 0, 0, 0, 0);
  ask(100, 50, 200, 1000, 900);
  MUST(PtlEQAlloc(ni, 16, &eq));
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  for (unsigned i = 0; i < 1024; ++i) source[i] = i + 1 + 1000 * (uint64_t)i * i;
  pieces[1].iov_len = sizeof target - 1000;
  ptl_me_t me = {.start = target,
                 .length = sizeof target,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = 1};
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  me.start = pieces;
  me.length = 2;
  me.options |= PTL_IOVEC;
  me.match_bits = 2;
  MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
  for (ptl_match_bits_t bits = 1; bits <= 2; ++bits) {
    atomics(bits, rank_of((my_rank + 1) % ranks));
    atomics(bits, rank_of(my_rank));
  }
  return end();
}
