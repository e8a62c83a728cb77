/* Options of entries and of portal table entries: what takes a message, what becomes of the entry, what is told and
 * counted. One rank, which sends to itself. */
#include "portals_common.h"

enum { SIZE = 64, WORD = 8 };
enum kind { PUT, GET, ATOMIC, FETCH_ATOMIC, SWAP, KINDS };

static ptl_handle_eq_t eq, target_eq;
static ptl_handle_ct_t landed;
static ptl_handle_md_t md;
static ptl_pt_index_t pt;
static unsigned char memory[SIZE], out[SIZE], in[SIZE];
static ptl_event_t last; /* the initiator's last word on the last operation */

static ptl_me_t entry(unsigned options) {
  ptl_me_t me = {.start = memory,
                 .length = SIZE,
                 .ct_handle = landed,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options,
                 .match_id = {.rank = PTL_RANK_ANY}};
  return me;
}

static ptl_handle_me_t append(const ptl_me_t* me, ptl_list_t list, void* user) {
  ptl_handle_me_t made;
  MUST(PtlMEAppend(ni, pt, me, list, user, &made));
  return made;
}

static ptl_ni_fail_t start(enum kind kind, ptl_size_t length, ptl_size_t offset) {
  const ptl_process_t to = rank_of(my_rank);
  switch (kind) {
    case PUT: MUST(PtlPut(md, 0, length, PTL_ACK_REQ, to, pt, 0, offset, NULL, length)); break;
    case GET: MUST(PtlGet(md, SIZE, length, to, pt, 0, offset, NULL)); break;
    case ATOMIC: MUST(PtlAtomic(md, 0, length, PTL_ACK_REQ, to, pt, 0, offset, NULL, 0, PTL_SUM, PTL_UINT64_T)); break;
    case FETCH_ATOMIC:
      MUST(PtlFetchAtomic(md, SIZE, md, 0, length, to, pt, 0, offset, NULL, 0, PTL_SUM, PTL_UINT64_T));
      break;
    default: MUST(PtlSwap(md, SIZE, md, 0, length, to, pt, 0, offset, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T));
  }
  do {
    MUST(PtlEQWait(eq, &last));
  } while (last.type == PTL_EVENT_SEND);
  return last.ni_fail_type;
}

static ptl_ni_fail_t put(ptl_size_t length) { return start(PUT, length, 0); }

/* The kinds of the events that the target has, each as one digit of a number to the base 16 behind a 1. */
static unsigned long long told(void) {
  unsigned long long all = 1;
  ptl_event_t event;
  while (PtlEQGet(target_eq, &event) == PTL_OK) all = all * 16 + event.type;
  return all;
}
enum {
  NOTHING = 0x1,
  ONE_PUT = 0x12,
  TWO_PUTS = 0x122,
  PUT_OVER = 0x13,
  PUT_UNLINK = 0x12d,
  ONE_LINK = 0x1c,
  UNLINK = 0x1d,
  ONE_SEARCH = 0x1f,
  TWO_SEARCHES = 0x1ff,
  TWO_OVER = 0x133
};

static void expect_counted(int line, ptl_size_t success, ptl_size_t failure) {
  ptl_ct_event_t count;
  MUST(PtlCTGet(landed, &count));
  expect(line, "successes", success, count.success);
  expect(line, "failures", failure, count.failure);
  MUST(PtlCTSet(landed, (ptl_ct_event_t){0, 0}));
}
#define EXPECT_COUNTED(...) expect_counted(__LINE__, __VA_ARGS__)

/* Rules: P4F-7.14, P4F-7.15, P4F-7.16, P4F-7.17, P4F-7.18, P4F-7.19, P4F-7.20, P4F-7.21, P4F-11.23, P4F-11.24. */
static void permissions(void) {
  static const unsigned allowed[] = {0, PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_OP_PUT | PTL_ME_OP_GET};
  static const unsigned needed[KINDS] = {PTL_ME_OP_PUT, PTL_ME_OP_GET, PTL_ME_OP_PUT, PTL_ME_OP_PUT | PTL_ME_OP_GET,
                                         PTL_ME_OP_PUT | PTL_ME_OP_GET};
  for (unsigned i = 0; i < 4; ++i) {
    for (enum kind kind = PUT; kind < KINDS; ++kind) {
      ptl_me_t first = entry(PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_UNLINK_DISABLE), behind = entry(0);
      first.options &= ~(unsigned)(PTL_ME_OP_PUT | PTL_ME_OP_GET);
      first.options |= allowed[i];
      const ptl_handle_me_t once = append(&first, PTL_PRIORITY_LIST, NULL);
      const ptl_handle_me_t stays = append(&behind, PTL_PRIORITY_LIST, NULL);
      const int is_allowed = (needed[kind] & ~allowed[i]) == 0;
      memset(memory, 1, SIZE);
      memset(out, 3, SIZE);
      EXPECT(is_allowed ? PTL_NI_OK : PTL_NI_OP_VIOLATION, start(kind, WORD, 0));
      EXPECT(is_allowed ? WORD : 0, last.mlength);
      if (is_allowed) {
        told();
        EXPECT_COUNTED(1, 0);
        EXPECT(PTL_ARG_INVALID, PtlMEUnlink(once));
      } else {
        EXPECT(1, memory[0]);
        EXPECT(NOTHING, told());
        EXPECT_COUNTED(0, 0);
        EXPECT(PTL_OK, PtlMEUnlink(once));
      }
      EXPECT(PTL_OK, PtlMEUnlink(stays));
    }
  }
}

/* Rules: P4F-7.26, P4F-7.27, P4F-7.31, P4F-7.32, P4F-7.35, P4F-7.36, P4F-7.74, P4F-7.77, P4F-7.78. */
static void lives_of_entries(void) {
  ptl_me_t me = entry(PTL_ME_USE_ONCE);
  const ptl_handle_me_t once = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_NI_OK, start(PUT, WORD, SIZE + 5)); /* nothing of it fits */
  EXPECT(0, last.mlength);
  EXPECT(PUT_UNLINK, told());
  EXPECT(PTL_NI_DROPPED, put(WORD));
  EXPECT(PTL_ARG_INVALID, PtlMEUnlink(once));

  me = entry(PTL_ME_MANAGE_LOCAL);
  me.length = 12;
  const ptl_handle_me_t full = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(WORD, last.mlength);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(4, last.mlength);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(0, last.mlength);
  EXPECT(0x1222, told());
  EXPECT(PTL_OK, PtlMEUnlink(full));

  me = entry(0);
  me.min_free = PTL_SIZE_MAX; /* uninitialised */
  const ptl_handle_me_t stays = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_NI_OK, put(SIZE));
  EXPECT(PTL_NI_OK, put(SIZE));
  EXPECT(TWO_PUTS, told());
  EXPECT(PTL_OK, PtlMEUnlink(stays));
}

/* Rules: P4F-7.28, P4F-7.29, P4F-7.30, P4F-13.14. */
static void local_offsets(void) {
  ptl_event_t event;
  ptl_me_t me = entry(PTL_ME_MANAGE_LOCAL);
  me.min_free = 24;
  const ptl_handle_me_t slab = append(&me, PTL_PRIORITY_LIST, NULL);
  for (unsigned i = 0; i < 5; ++i) {
    EXPECT(PTL_NI_OK, start(i % 2 == 0 ? PUT : GET, 10, 77));
    EXPECT(10 * i, last.remote_offset);
    EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
    EXPECT(memory + 10 * i, event.start);
    EXPECT(77, event.remote_offset);
    if (i < 4) EXPECT(PTL_EQ_EMPTY, PtlEQGet(target_eq, &event));
  }
  EXPECT(UNLINK, told()); /* 14 B were left */
  EXPECT(PTL_ARG_INVALID, PtlMEUnlink(slab));
}

/* Rules: P4F-7.33, P4F-7.34, P4F-7.35, P4F-7.38. */
static void truncation(void) {
  for (unsigned local = 0; local < 2; ++local) {
    ptl_me_t me = entry(PTL_ME_NO_TRUNCATE | (local ? PTL_ME_MANAGE_LOCAL | PTL_ME_MAY_ALIGN : 0));
    me.length = 20;
    const ptl_handle_me_t whole = append(&me, PTL_PRIORITY_LIST, NULL);
    me = entry(PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
    me.length = 20;
    append(&me, PTL_PRIORITY_LIST, NULL);
    append(&me, PTL_PRIORITY_LIST, NULL);
    EXPECT(PTL_NI_OK, start(PUT, 10, local ? 99 : 10));
    EXPECT(10, last.mlength);
    EXPECT(PTL_NI_OK, put(21)); /* it goes to the next, and is cut */
    EXPECT(20, last.mlength);
    EXPECT(PTL_NI_OK, start(PUT, 11, local ? 0 : 10));
    EXPECT(local ? 11 : 10, last.mlength);
    EXPECT(PTL_NI_OK, start(PUT, 10, local ? 99 : 10));
    EXPECT(10, last.mlength);
    EXPECT(0x12222, told());
    EXPECT(PTL_OK, PtlMEUnlink(whole));
  }
}

/* Rules: P4F-7.44, P4F-7.45, P4F-7.46, P4F-7.47, P4F-7.49, P4F-7.52, P4F-7.53, P4F-7.55, P4F-7.69. */
static void disabled_events(void) {
  const struct {
    unsigned options;
    unsigned long long appended, told, counted;
  } rows[] = {
      {0, ONE_LINK, PUT_UNLINK, 0},
      {PTL_ME_EVENT_LINK_DISABLE, NOTHING, PUT_UNLINK, 0},
      {PTL_ME_EVENT_COMM_DISABLE, ONE_LINK, UNLINK, 0},
      {PTL_ME_EVENT_SUCCESS_DISABLE, ONE_LINK, UNLINK, 0},
      {PTL_ME_EVENT_UNLINK_DISABLE, ONE_LINK, ONE_PUT, 0},
      {PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_FLOWCTRL_DISABLE, ONE_LINK, PUT_UNLINK, 0},
      {PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES, ONE_LINK, PUT_UNLINK, 0},
      {PTL_ME_EVENT_CT_COMM, ONE_LINK, PUT_UNLINK, 1},
      {PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE, ONE_LINK, UNLINK, 1},
      {PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_SUCCESS_DISABLE, ONE_LINK, UNLINK, 1},
      {PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES | PTL_ME_EVENT_COMM_DISABLE, ONE_LINK, UNLINK, SIZE - 4},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
    ptl_me_t me = entry(PTL_ME_USE_ONCE);
    me.options &= ~(unsigned)PTL_ME_EVENT_LINK_DISABLE;
    me.options |= rows[i].options;
    append(&me, PTL_PRIORITY_LIST, NULL);
    EXPECT(rows[i].appended, told());
    EXPECT(PTL_NI_OK, start(PUT, SIZE, 4));
    EXPECT(rows[i].told, told());
    EXPECT_COUNTED(rows[i].counted, 0);
  }
  /* A message that fails is told although successes are not: its memory is not there. */
  ptl_event_t event;
  ptl_me_t all = entry(PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES);
  all.start = NULL;
  all.length = PTL_SIZE_MAX;
  const ptl_handle_me_t stays = append(&all, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_NI_SEGV, start(PUT, WORD, 16));
  EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  EXPECT(PTL_EVENT_PUT, event.type);
  EXPECT(PTL_NI_SEGV, event.ni_fail_type);
  EXPECT_COUNTED(0, 1);
  EXPECT(PTL_NI_OK, start(PUT, WORD, (ptl_size_t)memory));
  EXPECT(NOTHING, told());
  EXPECT_COUNTED(WORD, 0);
  EXPECT(PTL_OK, PtlMEUnlink(stays));
}

/* Rules: P4F-7.41, P4F-7.42, P4F-7.48, P4F-7.49, P4F-7.50, P4F-7.54, P4F-7.56, P4F-7.57, P4F-7.61, P4F-7.62,
 * P4F-7.63, P4F-7.65, P4F-7.66, P4F-7.67, P4F-7.68, P4F-7.71, P4F-7.82, P4F-8.11, P4F-22.2. */
static void unexpected(void) {
  ptl_me_t holder = entry(PTL_ME_UNEXPECTED_HDR_DISABLE | PTL_ME_EVENT_CT_COMM), me;
  ptl_handle_me_t early = append(&holder, PTL_OVERFLOW_LIST, NULL), late;
  memset(memory, 0, SIZE);
  memset(out, 9, SIZE);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(9, memory[WORD - 1]);
  EXPECT(0, memory[WORD]);
  EXPECT(ONE_PUT, told());
  EXPECT_COUNTED(1, 0);
  EXPECT(PTL_OK, PtlMEUnlink(early)); /* no header is in it */
  me = entry(0);
  late = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(NOTHING, told());
  EXPECT(PTL_OK, PtlMEUnlink(late));

  /* Two headers wait. Neither who sent them nor what they do matters to what finds them, but their length does. */
  holder = entry(0);
  early = append(&holder, PTL_OVERFLOW_LIST, NULL);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(PTL_NI_OK, put(WORD + 1));
  EXPECT(TWO_PUTS, told());
  EXPECT(PTL_IN_USE, PtlMEUnlink(early));
  me = entry(0);
  late = append(&me, PTL_OVERFLOW_LIST, NULL);
  EXPECT(NOTHING, told());
  EXPECT(PTL_OK, PtlMEUnlink(late));
  me = entry(PTL_ME_NO_TRUNCATE);
  me.length = WORD - 1;
  late = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(NOTHING, told());
  EXPECT(PTL_OK, PtlMEUnlink(late));
  me.length = WORD;
  late = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PUT_OVER, told()); /* the shorter one */
  EXPECT(PTL_OK, PtlMEUnlink(late));
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(ONE_PUT, told());
  me = entry(0);
  me.options &= ~(unsigned)(PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
  MUST(PtlGetUid(ni, &me.uid));
  ++me.uid;
  late = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(0x133c, told());
  EXPECT(PTL_OK, PtlMEUnlink(late));
  EXPECT(PTL_OK, PtlMEUnlink(early));
  EXPECT(NOTHING, told()); /* no PTL_EVENT_AUTO_FREE */
  EXPECT_COUNTED(0, 0);

  /* Entries that are used once take them one by one, in the order of their arrival. */
  early = append(&holder, PTL_OVERFLOW_LIST, NULL);
  for (unsigned i = 0; i < 4; ++i) EXPECT(PTL_NI_OK, put(WORD + i * 7 % 4));
  told();
  for (unsigned i = 0; i < 4; ++i) {
    ptl_event_t event;
    me = entry(PTL_ME_USE_ONCE);
    append(&me, PTL_PRIORITY_LIST, NULL);
    EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
    EXPECT(PTL_EVENT_PUT_OVERFLOW, event.type);
    EXPECT(WORD + i * 7 % 4, event.hdr_data);
    EXPECT(UNLINK, told());
  }
  EXPECT(PTL_OK, PtlMEUnlink(early));
  EXPECT_COUNTED(0, 0);

  /* The new entry disables events, and counts all the same. */
  const struct {
    unsigned options;
    unsigned long long told, counted;
  } rows[] = {
      {PTL_ME_USE_ONCE, 0x13ed, 0},
      {PTL_ME_USE_ONCE | PTL_ME_EVENT_OVER_DISABLE, 0x1ed, 0},
      {PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, 0x13e, 0},
      {PTL_ME_EVENT_OVER_DISABLE, 0x1ec, 0},
      {PTL_ME_EVENT_CT_OVERFLOW, 0x13ec, 1},
      {PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_OVER_DISABLE, 0x1ec, 1},
      {PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES, 0x13ec, WORD},
      {PTL_ME_EVENT_CT_COMM, 0x13ec, 0},
  };
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
    holder = entry(PTL_ME_USE_ONCE);
    append(&holder, PTL_OVERFLOW_LIST, NULL);
    EXPECT(PTL_NI_OK, put(WORD));
    EXPECT(PUT_UNLINK, told());
    me = entry(rows[i].options);
    me.options &= ~(unsigned)PTL_ME_EVENT_LINK_DISABLE;
    late = append(&me, PTL_PRIORITY_LIST, NULL);
    EXPECT(rows[i].told, told());
    EXPECT_COUNTED(rows[i].counted, 0);
    if ((rows[i].options & PTL_ME_USE_ONCE) == 0) EXPECT(PTL_OK, PtlMEUnlink(late));
  }
  /* An overflow entry that wants no news of its end. */
  holder = entry(PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  append(&holder, PTL_OVERFLOW_LIST, NULL);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(ONE_PUT, told());
  me = entry(0);
  late = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PUT_OVER, told());
  EXPECT(PTL_OK, PtlMEUnlink(late));
}

/* Rules: P4F-7.13, P4F-8.16, P4F-8.17. */
static void overflow_memory(void) {
  ptl_event_t event;
  ptl_me_t empty = entry(PTL_ME_USE_ONCE), full = entry(PTL_ME_USE_ONCE);
  empty.start = NULL;
  empty.length = 0;
  append(&empty, PTL_OVERFLOW_LIST, NULL);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(0, last.mlength);
  EXPECT(PUT_UNLINK, told());
  append(&full, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  EXPECT(PTL_EVENT_PUT_OVERFLOW, event.type);
  EXPECT(0, event.mlength);
  EXPECT(WORD, event.rlength);
  EXPECT(WORD, event.hdr_data);
  EXPECT(0x1ed, told());
  append(&full, PTL_OVERFLOW_LIST, NULL);
  memset(memory, 0x5a, SIZE);
  memset(in, 0, SIZE);
  EXPECT(PTL_NI_OK, start(GET, WORD, 0));
  EXPECT(0x5a, in[WORD - 1]);
  EXPECT(0, in[WORD]);
  EXPECT(0x10d, told());
  append(&empty, PTL_PRIORITY_LIST, NULL);
  EXPECT(0x11ed, told());
}

/* Rules: P4F-3.36, P4F-9.4, P4F-9.5, P4F-9.6, P4F-9.7, P4F-9.8, P4F-9.9, P4F-9.10, P4F-9.11, P4F-9.12, P4F-9.13,
 * P4F-9.14, P4F-9.15, P4F-9.16, P4F-9.17, P4F-9.18, P4F-9.19, P4F-9.20. */
static void searches(void) {
  enum { ONCE = PTL_ME_USE_ONCE, CT = PTL_ME_EVENT_CT_OVERFLOW, BYTES = PTL_ME_EVENT_CT_BYTES };
  const struct {
    ptl_search_op_t how;
    unsigned options, waiting; /* headers of WORD and of WORD + 1 bytes */
    unsigned long long told, success, failure, left;
  } rows[] = {
      {PTL_SEARCH_ONLY, ONCE | CT, 2, ONE_SEARCH, 1, 0, 2},
      {PTL_SEARCH_ONLY, ONCE | CT, 0, ONE_SEARCH, 0, 1, 0},
      {PTL_SEARCH_ONLY, CT, 2, TWO_SEARCHES, 2, 1, 2},
      {PTL_SEARCH_ONLY, CT, 1, ONE_SEARCH, 1, 1, 1},
      {PTL_SEARCH_ONLY, CT, 0, ONE_SEARCH, 0, 1, 0},
      {PTL_SEARCH_DELETE, ONCE | CT, 2, PUT_OVER, 1, 0, 1},
      {PTL_SEARCH_DELETE, ONCE | CT, 0, ONE_SEARCH, 0, 1, 0},
      {PTL_SEARCH_DELETE, CT, 2, TWO_OVER, 2, 1, 0},
      {PTL_SEARCH_DELETE, CT, 0, ONE_SEARCH, 0, 1, 0},
      {PTL_SEARCH_ONLY, CT | BYTES, 2, TWO_SEARCHES, 2 * WORD + 1, 1, 2},
      {PTL_SEARCH_DELETE, CT | BYTES, 2, TWO_OVER, 2 * WORD + 1, 1, 0},
      {PTL_SEARCH_ONLY, 0, 2, TWO_SEARCHES, 0, 0, 2},
      {PTL_SEARCH_ONLY, CT | PTL_ME_EVENT_COMM_DISABLE, 2, NOTHING, 2, 1, 2},
      {PTL_SEARCH_ONLY, CT | PTL_ME_EVENT_OVER_DISABLE, 2, TWO_SEARCHES, 2, 1, 2},
      {PTL_SEARCH_DELETE, CT | PTL_ME_EVENT_OVER_DISABLE, 2, NOTHING, 2, 1, 0},
      {PTL_SEARCH_DELETE, CT | PTL_ME_EVENT_COMM_DISABLE, 2, TWO_OVER, 2, 1, 0},
      {PTL_SEARCH_DELETE, CT | PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_COMM_DISABLE, 0, ONE_SEARCH, 0, 1, 0},
  };
  ptl_sr_value_t before[3], after;
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
    const ptl_me_t holder = entry(0);
    ptl_me_t me = entry(rows[i].options);
    const ptl_handle_me_t early = append(&holder, PTL_OVERFLOW_LIST, NULL);
    for (unsigned k = 0; k < rows[i].waiting; ++k) EXPECT(PTL_NI_OK, put(WORD + k));
    told();
    for (int which = 0; which < 3; ++which) MUST(PtlNIStatus(ni, (ptl_sr_index_t)which, &before[which]));
    EXPECT(PTL_OK, PtlMESearch(ni, pt, &me, rows[i].how, NULL));
    EXPECT(rows[i].told, told());
    EXPECT_COUNTED(rows[i].success, rows[i].failure);
    for (int which = 0; which < 3; ++which) {
      MUST(PtlNIStatus(ni, (ptl_sr_index_t)which, &after));
      EXPECT(before[which], after);
    }
    /* An entry finds what is left, and the next message goes to the overflow entry again. */
    me = entry(PTL_ME_EVENT_CT_OVERFLOW);
    const ptl_handle_me_t late = append(&me, PTL_PRIORITY_LIST, NULL);
    EXPECT_COUNTED(rows[i].left, 0);
    told();
    EXPECT(PTL_OK, PtlMEUnlink(late));
    EXPECT(PTL_NI_OK, put(WORD));
    EXPECT(PTL_OVERFLOW_LIST, last.ptl_list);
    me = entry(0);
    EXPECT(PTL_OK, PtlMESearch(ni, pt, &me, PTL_SEARCH_DELETE, NULL));
    told();
    EXPECT(PTL_OK, PtlMEUnlink(early));
  }
}

/* Rules: P4F-5.9, P4F-5.10, P4F-5.11, P4F-5.12, P4F-5.13, P4F-5.14, P4F-5.18, P4F-5.19, P4F-5.20, P4F-5.21, P4F-5.22,
 * P4F-5.24, P4F-22.2. */
static void portals(void) {
  static const unsigned hints[] = {PTL_PT_ONLY_USE_ONCE, PTL_PT_ONLY_TRUNCATE, PTL_PT_MATCH_UNORDERED,
                                   PTL_PT_ONLY_USE_ONCE | PTL_PT_ONLY_TRUNCATE | PTL_PT_MATCH_UNORDERED};
  const ptl_pt_index_t before = pt;
  ptl_me_t me, holder = entry(PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM);
  ptl_handle_me_t stays;
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT(PTL_OK, PtlPTAlloc(ni, hints[i], target_eq, 20, &pt));
    ptl_handle_me_t first, second;
    me = entry(0);
    first = append(&me, PTL_PRIORITY_LIST, &first);
    me.ignore_bits = ~0ull;
    second = append(&me, PTL_PRIORITY_LIST, &second);
    for (unsigned k = 0; k < 2; ++k) { /* the first that matches takes it, more than once, and cuts it */
      ptl_event_t event;
      EXPECT(PTL_NI_OK, start(PUT, SIZE, WORD));
      EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
      EXPECT(&first, event.user_ptr);
      EXPECT(SIZE - WORD, event.mlength);
    }
    EXPECT(PTL_PT_IN_USE, PtlPTFree(ni, pt));
    EXPECT(PTL_OK, PtlMEUnlink(first));
    EXPECT(PTL_PT_IN_USE, PtlPTFree(ni, pt));
    EXPECT(PTL_OK, PtlMEUnlink(second));
    EXPECT(PTL_OK, PtlPTFree(ni, pt));
  }
  EXPECT(PTL_OK, PtlPTAlloc(ni, PTL_PT_ALLOC_DISABLED, target_eq, 20, &pt));
  me = entry(PTL_ME_USE_ONCE);
  append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_NI_PT_DISABLED, put(WORD));
  EXPECT(PTL_OK, PtlPTEnable(ni, pt));
  EXPECT(PTL_OK, PtlPTEnable(ni, pt));
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(PUT_UNLINK, told());

  /* Without an event queue. */
  EXPECT(PTL_OK, PtlPTAlloc(ni, 0, PTL_EQ_NONE, 30, &pt));
  append(&holder, PTL_OVERFLOW_LIST, NULL);
  EXPECT(PTL_PT_IN_USE, PtlPTFree(ni, pt));
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT_COUNTED(1, 0);
  me = entry(PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_COMM);
  stays = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT_COUNTED(1, 0);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT_COUNTED(1, 0);
  EXPECT(NOTHING, told());
  EXPECT(PTL_OK, PtlMEUnlink(stays));

  /* Headers that nobody has found do not hold it; those of an entry that is still there do. */
  append(&holder, PTL_OVERFLOW_LIST, NULL);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(PTL_OK, PtlPTFree(ni, pt));
  EXPECT_COUNTED(1, 0);

  /* Disabled: appended to and searched as before; this rank's own operations elsewhere are answered. */
  EXPECT(PTL_OK, PtlPTAlloc(ni, 0, target_eq, 31, &pt));
  append(&holder, PTL_OVERFLOW_LIST, NULL);
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(PUT_UNLINK, told());
  EXPECT_COUNTED(1, 0);
  EXPECT(PTL_OK, PtlPTDisable(ni, pt));
  EXPECT(PTL_NI_PT_DISABLED, put(WORD));
  me = entry(PTL_ME_USE_ONCE);
  EXPECT(PTL_OK, PtlMESearch(ni, pt, &me, PTL_SEARCH_ONLY, NULL));
  EXPECT(ONE_SEARCH, told());
  append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(0x13ed, told());
  stays = append(&me, PTL_PRIORITY_LIST, NULL);
  EXPECT(PTL_NI_PT_DISABLED, put(WORD));
  EXPECT(NOTHING, told());
  const ptl_pt_index_t disabled = pt;
  EXPECT(PTL_OK, PtlPTAlloc(ni, 0, PTL_EQ_NONE, 32, &pt));
  const ptl_me_t open = entry(0);
  append(&open, PTL_PRIORITY_LIST, NULL);
  for (enum kind kind = PUT; kind < KINDS; ++kind) EXPECT(PTL_NI_OK, start(kind, WORD, 0));
  pt = disabled;
  EXPECT(PTL_OK, PtlPTEnable(ni, pt));
  EXPECT(PTL_NI_OK, put(WORD));
  EXPECT(PUT_UNLINK, told());
  EXPECT(PTL_ARG_INVALID, PtlMEUnlink(stays));
  pt = before;
}

/* Rules: P4F-7.12, P4F-7.70, P4F-7.76. */
static void copies(void) {
  ptl_me_t me = entry(0);
  const ptl_handle_me_t stays = append(&me, PTL_PRIORITY_LIST, NULL);
  memset(&me, 0xff, sizeof me);
  for (unsigned i = 0; i < 20; ++i) {
    memset(memory, 0, SIZE);
    memset(out, (int)i + 1, SIZE);
    EXPECT(PTL_NI_OK, put(WORD));
    EXPECT(i + 1, memory[WORD - 1]);
  }
  EXPECT(PTL_OK, PtlMEUnlink(stays)); /* the last one has been answered */
  for (int i = 0; i < 20; ++i) {
    ptl_event_t event;
    EXPECT(PTL_OK, PtlEQGet(target_eq, &event));
  }
  EXPECT(NOTHING, told());
}

/* Rules: P4F-7.12, P4F-7.26, P4F-7.37, P4F-8.4. */
static void list_entries(void) {
  ptl_handle_ni_t other;
  ptl_handle_eq_t own_eq, les_eq;
  ptl_handle_md_t les_md;
  ptl_handle_le_t made;
  ptl_process_t me;
  ptl_event_t event;
  ptl_pt_index_t at;
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &other));
  MUST(PtlGetId(other, &me));
  MUST(PtlEQAlloc(other, 64, &own_eq));
  MUST(PtlEQAlloc(other, 64, &les_eq));
  MUST(PtlPTAlloc(other, 0, les_eq, 9, &at));
  const ptl_md_t what = {.start = out, .length = SIZE, .eq_handle = own_eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(other, &what, &les_md));
  ptl_le_t once = {
      .start = memory,
      .length = 10,
      .ct_handle = PTL_CT_NONE,
      .uid = PTL_UID_ANY,
      .options = PTL_LE_OP_PUT | PTL_LE_USE_ONCE | PTL_LE_EVENT_LINK_DISABLE | PTL_LE_EVENT_UNLINK_DISABLE};
  ptl_le_t stays = once;
  stays.options &= ~(unsigned)PTL_LE_USE_ONCE;
  stays.start = memory + 20;
  MUST(PtlLEAppend(other, 9, &once, PTL_PRIORITY_LIST, NULL, &made));
  MUST(PtlLEAppend(other, 9, &stays, PTL_PRIORITY_LIST, NULL, &made));
  memset(&once, 0xff, sizeof once);
  memset(&stays, 0xff, sizeof stays);
  for (unsigned i = 0; i < 3; ++i) { /* whatever the bits */
    MUST(PtlPut(les_md, 0, 16, PTL_ACK_REQ, me, 9, 1000u + i, 4, NULL, i));
    EXPECT(PTL_NI_OK, ended(own_eq));
    EXPECT(PTL_OK, PtlEQGet(les_eq, &event));
    EXPECT(6, event.mlength);
    EXPECT(16, event.rlength);
    EXPECT(memory + 4 + (i > 0 ? 20 : 0), event.start);
  }
  EXPECT(PTL_OK, PtlLEUnlink(made));
}

int main(void) {
  ptl_ni_limits_t wanted;
  memset(&wanted, 0x7f, sizeof wanted);
  wanted.features = PTL_TARGET_BIND_INACCESSIBLE;
  begin_with(&wanted);
  MUST(PtlEQAlloc(ni, 64, &eq));
  MUST(PtlEQAlloc(ni, 64, &target_eq));
  MUST(PtlCTAlloc(ni, &landed));
  MUST(PtlPTAlloc(ni, 0, target_eq, 3, &pt));
  const ptl_iovec_t both[2] = {{out, SIZE}, {in, SIZE}};
  const ptl_md_t what = {
      .start = (void*)both, .length = 2, .options = PTL_IOVEC, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &what, &md));
  permissions();
  lives_of_entries();
  local_offsets();
  truncation();
  disabled_events();
  unexpected();
  overflow_memory();
  searches();
  portals();
  copies();
  list_entries();
  return end();
}
