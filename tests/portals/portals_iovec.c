/* Memory in pieces on both sides, at any offset and for any operation; volatile puts; test_portals.py runs it. */
#include "portals_common.h"

#define SIZE 20000

static ptl_handle_eq_t eq, target_eq;
static unsigned char source[SIZE], target[SIZE], back[SIZE], expected[SIZE];

/* Cuts memory into uneven elements, some of them empty, in an order of their own; the number of them. */
static unsigned cut(unsigned char* memory, unsigned size, unsigned step, ptl_iovec_t* list) {
  unsigned count = 0;
  unsigned at = 0;
  for (unsigned i = 0; at < size; ++i) {
    unsigned length = i % 5 == 3 ? 0 : 1 + i * step % 97;
    if (length > size - at) length = size - at;
    list[count].iov_base = memory + at;
    list[count++].iov_len = length;
    at += length;
  }
  /* Backwards: neighbours in the list are not neighbours in memory. */
  for (unsigned i = 0; i < count / 2; ++i) {
    ptl_iovec_t other = list[i];
    list[i] = list[count - 1 - i];
    list[count - 1 - i] = other;
  }
  return count;
}

/* The byte at a place of the concatenation. */
static unsigned char* place(const ptl_iovec_t* list, unsigned long long at) {
  for (;; ++list) {
    if (at < list->iov_len) return (unsigned char*)list->iov_base + at;
    at -= list->iov_len;
  }
}

static unsigned differing(const unsigned char* a, const unsigned char* b) {
  unsigned count = 0;
  for (unsigned i = 0; i < SIZE; ++i) count += a[i] != b[i];
  return count;
}

static ptl_handle_md_t bind(void* start, ptl_size_t length, unsigned options) {
  ptl_md_t md = {.start = start, .length = length, .options = options, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  EXPECT(PTL_OK, PtlMDBind(ni, &md, &handle));
  return handle;
}

static ptl_event_t event_of(ptl_handle_eq_t queue) {
  ptl_event_t event;
  MUST(PtlEQWait(queue, &event));
  return event;
}

static void ends(ptl_handle_md_t md, ptl_event_kind_t kind, ptl_size_t mlength) {
  ptl_event_t event;
  do {
    event = event_of(eq);
  } while (event.type != kind);
  EXPECT(PTL_NI_OK, event.ni_fail_type);
  EXPECT(mlength, event.mlength);
  EXPECT(PTL_OK, PtlMDRelease(md)); /* an operation that has been told is over */
}

static void append(void* start, ptl_size_t length, unsigned options, ptl_match_bits_t bits) {
  ptl_me_t me = {.start = start,
                 .length = length,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  ptl_handle_me_t handle;
  EXPECT(PTL_OK, PtlMEAppend(ni, 0, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

/* Rules: P4F-6.4, P4F-6.5, P4F-6.25, P4F-6.27, P4F-6.29, P4F-6.30, P4F-6.31, P4F-7.28, P4F-13.10, P4F-13.13,
 * P4F-19.1, P4F-19.2, P4F-19.3, P4F-19.4, P4F-19.5. */
int main(void) {
  static ptl_iovec_t out_list[SIZE], in_list[SIZE], back_list[SIZE];
  ptl_pt_index_t pt;
  begin_with(&(ptl_ni_limits_t){.max_entries = 100,
                                .max_unexpected_headers = 100,
                                .max_mds = 100,
                                .max_cts = 100,
                                .max_eqs = 100,
                                .max_pt_index = 63,
                                .max_iovecs = SIZE,
                                .max_list_size = 100,
                                .max_triggered_ops = 100,
                                .max_msg_size = PTL_SIZE_MAX,
                                .max_atomic_size = 512,
                                .max_fetch_atomic_size = 512,
                                .max_volatile_size = 64});
  EXPECT(SIZE, limits.max_iovecs);
  EXPECT(64, limits.max_volatile_size);
  MUST(PtlEQAlloc(ni, 64, &eq));
  MUST(PtlEQAlloc(ni, 64, &target_eq));
  MUST(PtlPTAlloc(ni, 0, target_eq, 0, &pt));
  for (unsigned i = 0; i < SIZE; ++i) source[i] = (unsigned char)(i * 7 + i / 251);
  const unsigned out_count = cut(source, SIZE, 13, out_list);
  const unsigned in_count = cut(target, SIZE, 29, in_list);
  const unsigned back_count = cut(back, SIZE, 53, back_list);
  append(in_list, in_count, PTL_IOVEC, 1);
  append(in_list, in_count, PTL_IOVEC | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE, 2);
  barrier();
  const ptl_process_t other = rank_of((my_rank + 1) % ranks);

  /* From pieces to pieces, at an odd offset on both sides; each rank writes to its neighbour. */
  static const struct {
    ptl_size_t local, remote, length;
  } rows[] = {{0, 0, SIZE}, {1, 1, 1}, {17, 301, 9000}, {5, SIZE - 7, 7}, {SIZE, 0, 0}};
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
    memset(target, 0xee, SIZE);
    memset(expected, 0xee, SIZE);
    barrier();
    ptl_handle_md_t md = bind(out_list, out_count, PTL_IOVEC);
    EXPECT(PTL_OK, PtlPut(md, rows[i].local, rows[i].length, PTL_ACK_REQ, other, 0, 1, rows[i].remote, NULL, 0));
    ends(md, PTL_EVENT_ACK, rows[i].length);
    const ptl_event_t landed = event_of(target_eq);
    EXPECT(rows[i].length, landed.mlength);
    EXPECT(place(in_list, rows[i].remote), landed.start);
    /* Offsets of the sender's bytes in its memory are the same in all ranks. */
    for (ptl_size_t at = 0; at < rows[i].length; ++at) {
      expected[place(in_list, rows[i].remote + at) - target] = *place(out_list, rows[i].local + at);
    }
    EXPECT(0, differing(expected, target));
    barrier();

    /* And back into pieces of a third kind. */
    memset(back, 0x11, SIZE);
    md = bind(back_list, back_count, PTL_IOVEC);
    EXPECT(PTL_OK, PtlGet(md, rows[i].local, rows[i].length, other, 0, 1, rows[i].remote, NULL));
    ends(md, PTL_EVENT_REPLY, rows[i].length);
    event_of(target_eq); /* the neighbour's get */
    unsigned wrong_bytes = 0;
    for (ptl_size_t at = 0; at < rows[i].length; ++at) {
      wrong_bytes += *place(back_list, rows[i].local + at) != *place(out_list, rows[i].local + at);
    }
    EXPECT(0, wrong_bytes);
    barrier();
  }

  /* Atomics: elements split across pieces, at an odd address. */
  memset(target, 0, SIZE);
  barrier();
  uint32_t add[16];
  for (unsigned i = 0; i < 16; ++i) add[i] = 0x01020304u * (i + 1);
  ptl_handle_md_t md = bind(add, sizeof add, 0);
  ptl_handle_md_t in = bind(back_list, back_count, PTL_IOVEC);
  for (int times = 0; times < 2; ++times) {
    memset(back, 0xff, SIZE);
    EXPECT(PTL_OK, PtlFetchAtomic(in, 3, md, 0, sizeof add, other, 0, 1, 3, NULL, 0, PTL_SUM, PTL_UINT32_T));
    EXPECT(PTL_NI_OK, ended(eq));
    event_of(target_eq);
  }
  unsigned wrong_bytes = 0;
  for (unsigned i = 0; i < sizeof add; ++i) wrong_bytes += *place(back_list, 3 + i) != ((unsigned char*)add)[i];
  EXPECT(0, wrong_bytes); /* the second one fetched what the first one had left */
  barrier();
  for (unsigned i = 0; i < 16; ++i) add[i] *= 2;
  wrong_bytes = 0;
  for (unsigned i = 0; i < sizeof add; ++i) wrong_bytes += *place(in_list, 3 + i) != ((unsigned char*)add)[i];
  EXPECT(0, wrong_bytes);
  EXPECT(PTL_OK, PtlMDRelease(md));
  EXPECT(PTL_OK, PtlMDRelease(in));
  barrier();

  /* The target keeps the offset. */
  memset(target, 0xee, SIZE);
  barrier();
  md = bind(source, SIZE, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT(PTL_OK, PtlPut(md, 0, 100, PTL_ACK_REQ, other, 0, 2, 77, NULL, 0));
    ptl_event_t event;
    do event = event_of(eq);
    while (event.type != PTL_EVENT_ACK);
    EXPECT(100 * i, event.remote_offset);
  }
  barrier();
  wrong_bytes = 0;
  for (unsigned i = 0; i < 300; ++i) wrong_bytes += *place(in_list, i) != source[i % 100];
  EXPECT(0, wrong_bytes);
  EXPECT(PTL_OK, PtlMDRelease(md));
  barrier();

  /* A volatile buffer is the caller's again at once; what is longer than the interface promised goes as any other. */
  unsigned char quick[64];
  ptl_handle_md_t fast = bind(quick, sizeof quick, PTL_MD_VOLATILE);
  memset(quick, 5, sizeof quick);
  EXPECT(PTL_OK, PtlPut(fast, 0, sizeof quick, PTL_ACK_REQ, other, 0, 1, 0, NULL, 0));
  memset(quick, 6, sizeof quick);
  ends(fast, PTL_EVENT_ACK, sizeof quick);
  event_of(target_eq);
  barrier();
  wrong_bytes = 0;
  for (unsigned i = 0; i < sizeof quick; ++i) wrong_bytes += *place(in_list, i) != 5;
  EXPECT(0, wrong_bytes);
  barrier(); /* the neighbour's next put goes to the same place */
  fast = bind(source, SIZE, PTL_MD_VOLATILE);
  EXPECT(PTL_OK, PtlPut(fast, 0, 65, PTL_ACK_REQ, other, 0, 1, 0, NULL, 0));
  ends(fast, PTL_EVENT_ACK, 65);
  event_of(target_eq);

  /* A descriptor stays while a triggered operation may need it. */
  ptl_handle_ct_t ct;
  MUST(PtlCTAlloc(ni, &ct));
  md = bind(source, SIZE, 0);
  EXPECT(PTL_OK, PtlTriggeredPut(md, 0, 8, PTL_ACK_REQ, other, 0, 1, 0, NULL, 0, ct, 1));
  EXPECT(PTL_ARG_INVALID, PtlMDRelease(md));
  EXPECT(PTL_OK, PtlCTCancelTriggered(ct));
  EXPECT(PTL_OK, PtlTriggeredPut(md, 0, 8, PTL_ACK_REQ, other, 0, 1, 0, NULL, 0, ct, 2));
  EXPECT(PTL_ARG_INVALID, PtlMDRelease(md));
  EXPECT(PTL_OK, PtlCTInc(ct, (ptl_ct_event_t){2, 0}));
  ends(md, PTL_EVENT_ACK, 8);
  event_of(target_eq);

  /* Lists that are none. */
  ptl_md_t bad = {
      .start = out_list, .length = SIZE + 1, .options = PTL_IOVEC, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  EXPECT(PTL_ARG_INVALID, PtlMDBind(ni, &bad, &md));
  bad.start = NULL;
  bad.length = 1;
  EXPECT(PTL_ARG_INVALID, PtlMDBind(ni, &bad, &md));
  return end();
}
