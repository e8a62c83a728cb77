/* Counters, event queues, descriptors and triggered operations, each by itself. One rank, which sends to itself. */
#include "portals_common.h"

enum { PT = 6, SIZE = 128, HALF = SIZE / 2 };

static ptl_handle_eq_t eq, target_eq;
static ptl_handle_ct_t done;
static ptl_handle_md_t md;
static ptl_handle_me_t all; /* takes what has the bits 0 */
static unsigned char memory[SIZE], out[SIZE];

static ptl_handle_ct_t counter(void) {
  ptl_handle_ct_t made;
  MUST(PtlCTAlloc(ni, &made));
  return made;
}

static ptl_ct_event_t count_of(ptl_size_t success, ptl_size_t failure) {
  ptl_ct_event_t made = {success, failure};
  return made;
}

static void expect_value(int line, ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure) {
  ptl_ct_event_t count;
  must(line, PtlCTGet(ct, &count));
  expect(line, "successes", success, count.success);
  expect(line, "failures", failure, count.failure);
}
#define EXPECT_VALUE(...) expect_value(__LINE__, __VA_ARGS__)

static ptl_handle_md_t bind(void* start, ptl_size_t length, unsigned options, ptl_handle_eq_t queue,
                            ptl_handle_ct_t ct) {
  ptl_handle_md_t made = PTL_INVALID_HANDLE;
  const ptl_md_t what = {.start = start, .length = length, .options = options, .eq_handle = queue, .ct_handle = ct};
  EXPECT(PTL_OK, PtlMDBind(ni, &what, &made));
  return made;
}

static ptl_ni_fail_t put_at(int line, ptl_handle_md_t from, ptl_size_t length) {
  must(line, PtlPut(from, 0, length, PTL_ACK_REQ, rank_of(my_rank), PT, 0, 0, NULL, 0));
  return ended(eq);
}
#define put(...) put_at(__LINE__, __VA_ARGS__)

/* Takes what is in a queue; how much it was. */
static unsigned drained(ptl_handle_eq_t queue) {
  ptl_event_t event;
  unsigned events = 0;
  for (int code; (code = PtlEQGet(queue, &event)) != PTL_EQ_EMPTY; ++events) EXPECT(PTL_OK, code);
  return events;
}

/* Rules: P4F-10.1, P4F-10.3, P4F-10.4, P4F-10.5, P4F-10.6, P4F-10.9, P4F-10.10, P4F-10.11, P4F-10.13, P4F-10.14,
 * P4F-10.15. */
static void counters(void) {
  const ptl_handle_ct_t three[] = {counter(), counter(), counter()};
  const ptl_size_t tests[] = {5, 3, 3}, tests_reached[] = {0, 0, 0};
  ptl_ct_event_t count = count_of(77, 77);
  unsigned which = 77;
  for (int i = 0; i < 3; ++i) EXPECT_VALUE(three[i], 0, 0);
  EXPECT(PTL_CT_NONE_REACHED, PtlCTPoll(three, tests, 3, 0, &count, &which));
  EXPECT(PTL_CT_NONE_REACHED, PtlCTPoll(three, tests, 3, 2, &count, &which));
  EXPECT(PTL_OK, PtlCTPoll(three, tests_reached, 3, 0, &count, &which));
  EXPECT(0, which);
  EXPECT(PTL_OK, PtlCTInc(three[2], count_of(3, 0)));
  EXPECT(PTL_OK, PtlCTPoll(three, tests, 3, 0, &count, &which));
  EXPECT(2, which);
  EXPECT(PTL_OK, PtlCTInc(three[1], count_of(4, 0)));
  EXPECT(PTL_OK, PtlCTPoll(three, tests, 3, PTL_TIME_FOREVER, &count, &which));
  EXPECT(1, which);
  EXPECT(4, count.success);
  EXPECT(PTL_OK, PtlCTInc(three[1], count_of(0, 0)));
  EXPECT_VALUE(three[1], 4, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT(PTL_OK, PtlCTWait(three[1], 2 + (ptl_size_t)i, &count));
    EXPECT(4, count.success);
  }
  EXPECT(PTL_OK, PtlCTInc(three[0], count_of(0, 2))); /* a failure ends waiting */
  EXPECT(PTL_OK, PtlCTWait(three[0], 1000, &count));
  EXPECT(2, count.failure);
  EXPECT(0, count.success);
  EXPECT(PTL_OK, PtlCTPoll(three, tests, 3, 0, &count, &which));
  EXPECT(0, which);
  EXPECT(PTL_OK, PtlCTInc(three[0], count_of(7, 0)));
  EXPECT_VALUE(three[0], 7, 2);
  EXPECT(PTL_OK, PtlCTSet(three[0], count_of(1, 0)));
  EXPECT_VALUE(three[0], 1, 0);
  /* A message ends waiting for ever. */
  EXPECT(PTL_OK, PtlCTSet(done, count_of(0, 0)));
  const ptl_handle_md_t counted = bind(out, HALF, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, done);
  MUST(PtlPut(counted, 0, 8, PTL_CT_ACK_REQ, rank_of(my_rank), PT, 0, 0, NULL, 0));
  const ptl_handle_ct_t two[] = {three[0], done};
  const ptl_size_t two_tests[] = {1000, 1};
  EXPECT(PTL_OK, PtlCTPoll(two, two_tests, 2, PTL_TIME_FOREVER, &count, &which));
  EXPECT(1, which);
  EXPECT(PTL_OK, PtlMDRelease(counted));
  for (int i = 0; i < 3; ++i) EXPECT(PTL_OK, PtlCTFree(three[i]));
  EXPECT(1, drained(target_eq));
}

/* Rules: P4F-10.16, P4F-10.17, P4F-10.18, P4F-10.20, P4F-10.21, P4F-10.22, P4F-15.1, P4F-15.2, P4F-15.3, P4F-15.9,
 * P4F-15.10, P4F-15.11, P4F-15.13. */
static void triggered_counts(void) {
  const ptl_handle_ct_t go = counter(), a = counter(), b = counter(), c = counter();
  ptl_ct_event_t count;
  EXPECT(PTL_OK, PtlTriggeredCTInc(b, count_of(10, 0), a, 1)); /* the end of the chain comes first */
  EXPECT(PTL_OK, PtlTriggeredCTInc(c, count_of(0, 1), b, 10));
  EXPECT(PTL_OK, PtlTriggeredCTInc(a, count_of(1, 0), go, 3));
  EXPECT(PTL_OK, PtlCTInc(go, count_of(2, 0)));
  EXPECT_VALUE(a, 0, 0);
  EXPECT(PTL_OK, PtlCTInc(go, count_of(0, 1)));
  EXPECT(PTL_OK, PtlCTWait(c, 1, &count));
  EXPECT_VALUE(c, 0, 1);
  EXPECT_VALUE(b, 10, 0);
  EXPECT_VALUE(a, 1, 0);
  EXPECT(PTL_OK, PtlCTSet(go, count_of(0, 0)));
  EXPECT(PTL_OK, PtlCTSet(go, count_of(9, 0))); /* nothing fires again */
  EXPECT(PTL_OK, PtlTriggeredCTSet(b, count_of(4, 2), go, 9));
  EXPECT(PTL_OK, PtlCTWait(b, 1000, &count));
  EXPECT_VALUE(b, 4, 2);
  EXPECT_VALUE(a, 1, 0);
  /* Operations that one count starts act in the order of their registration. */
  EXPECT(PTL_OK, PtlCTSet(a, count_of(0, 0)));
  EXPECT(PTL_OK, PtlCTSet(go, count_of(0, 0)));
  for (ptl_size_t i = 1; i <= 50; ++i) EXPECT(PTL_OK, PtlTriggeredCTSet(a, count_of(i, 0), go, 1 + i % 2));
  EXPECT(PTL_OK, PtlTriggeredCTInc(a, count_of(1000, 0), go, 2));
  EXPECT(PTL_OK, PtlCTSet(go, count_of(2, 0)));
  EXPECT(PTL_OK, PtlCTWait(a, 1000, &count));
  EXPECT_VALUE(a, 1050, 0);
  /* Cancelled, the counter's value stays, and descriptors are free. */
  const ptl_handle_md_t held = bind(out, HALF, 0, PTL_EQ_NONE, PTL_CT_NONE);
  MUST(PtlCTSet(a, count_of(0, 0)));
  for (int frees = 0; frees < 2; ++frees) {
    const ptl_handle_ct_t waited = counter();
    EXPECT(PTL_OK, PtlCTInc(waited, count_of(2, 0)));
    EXPECT(PTL_OK, PtlTriggeredPut(held, 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, 0, 0, NULL, 0, waited, 3));
    EXPECT(PTL_OK, PtlTriggeredCTInc(a, count_of(1, 0), waited, 3));
    EXPECT(PTL_ARG_INVALID, PtlMDRelease(held));
    if (frees) {
      EXPECT(PTL_OK, PtlCTFree(waited));
    } else {
      EXPECT(PTL_OK, PtlCTCancelTriggered(waited));
      EXPECT_VALUE(waited, 2, 0);
      EXPECT(PTL_OK, PtlCTInc(waited, count_of(5, 0)));
      EXPECT(PTL_OK, PtlCTFree(waited));
    }
    if (frees) EXPECT(PTL_OK, PtlMDRelease(held));
  }
  EXPECT(PTL_NI_OK, put(md, 8)); /* it is behind what might have been started */
  EXPECT_VALUE(a, 0, 0);
  EXPECT(1, drained(target_eq));
}

/* Rules: P4F-12.10, P4F-15.5, P4F-15.6, P4F-15.15. */
static void triggered_operations(void) {
  const ptl_process_t me = rank_of(my_rank);
  const ptl_handle_ct_t go = counter();
  uint64_t* const word = (uint64_t*)memory;
  uint64_t source = 5, fetched = 0, operand = 100;
  ptl_ct_event_t count;
  const unsigned counts = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
  const ptl_handle_md_t from = bind(&source, 8, counts, PTL_EQ_NONE, done);
  const ptl_handle_md_t into = bind(&fetched, 8, counts, PTL_EQ_NONE, done);
  MUST(PtlCTSet(done, count_of(0, 0)));
  *word = 1;
  MUST(PtlTriggeredPut(from, 0, 8, PTL_CT_ACK_REQ, me, PT, 0, 0, NULL, 0, go, 1));
  MUST(PtlTriggeredGet(into, 0, 8, me, PT, 0, 0, NULL, go, 2));
  MUST(PtlTriggeredAtomic(from, 0, 8, PTL_CT_ACK_REQ, me, PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, go, 3));
  MUST(PtlTriggeredFetchAtomic(into, 0, from, 0, 8, me, PT, 0, 0, NULL, 0, PTL_PROD, PTL_UINT64_T, go, 4));
  MUST(PtlTriggeredSwap(into, 0, from, 0, 8, me, PT, 0, 0, NULL, 0, &operand, PTL_CSWAP, PTL_UINT64_T, go, 5));
  MUST(PtlTriggeredSwap(into, 0, from, 0, 8, me, PT, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T, go, 6));
  operand = 1; /* the call has its own */
  source = 10;
  static const uint64_t left[] = {10, 10, 20, 200, 200, 7}, brought[] = {0, 10, 10, 20, 200, 200};
  for (unsigned step = 0; step < 6; ++step) {
    EXPECT(1, step == 0 ? *word == 1 : *word == left[step - 1]);
    if (step == 5) source = 7;
    EXPECT(PTL_OK, PtlCTInc(go, count_of(1, 0)));
    EXPECT(PTL_OK, PtlCTWait(done, step + 1, &count));
    EXPECT(0, count.failure);
    EXPECT(left[step], *word);
    EXPECT(brought[step], fetched);
  }
  /* One that swaps, for the operand that the call took. */
  operand = 7;
  source = 9;
  MUST(PtlTriggeredSwap(into, 0, from, 0, 8, me, PT, 0, 0, NULL, 0, &operand, PTL_CSWAP, PTL_UINT64_T, go, 7));
  operand = 1;
  EXPECT(PTL_OK, PtlCTInc(go, count_of(1, 0)));
  EXPECT(PTL_OK, PtlCTWait(done, 7, &count));
  EXPECT(9, *word);
  EXPECT(PTL_OK, PtlMDRelease(from));
  EXPECT(PTL_OK, PtlMDRelease(into));
  EXPECT(PTL_OK, PtlCTFree(go));
  EXPECT(7, drained(target_eq));
}

/* Rules: P4F-14.1, P4F-14.2, P4F-14.3, P4F-14.4, P4F-14.5, P4F-14.6, P4F-14.7, P4F-14.8, P4F-14.9, P4F-14.12,
 * P4F-14.13. */
static void queues(void) {
  enum { COUNT = 8 };
  ptl_event_t event;
  ptl_handle_eq_t small[2];
  unsigned which = 77;
  for (int i = 0; i < 2; ++i) MUST(PtlEQAlloc(ni, COUNT, &small[i]));
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(small[0], &event));
  EXPECT(PTL_EQ_EMPTY, PtlEQPoll(small, 2, 0, &event, &which));
  EXPECT(PTL_EQ_EMPTY, PtlEQPoll(small, 2, 2, &event, &which));
  const ptl_handle_md_t told[] = {bind(out, HALF, 0, small[0], PTL_CT_NONE), bind(out, HALF, 0, small[1], PTL_CT_NONE)};
  const ptl_size_t most = COUNT + (ptl_size_t)limits.max_pt_index + 1;
  for (ptl_size_t extra = 0; extra < 3; ++extra) {
    /* Departures only; `put` comes back from the target behind them all. */
    for (ptl_size_t i = 0; i < most + extra; ++i) {
      MUST(PtlPut(told[0], 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, 0, 0, (void*)(i + 1), 0));
    }
    EXPECT(PTL_NI_OK, put(md, 8));
    for (ptl_size_t i = 0; i < most; ++i) {
      EXPECT(extra > 0 && i == 0 ? PTL_EQ_DROPPED : PTL_OK, PtlEQGet(small[0], &event));
      EXPECT(extra + i + 1, (ptl_size_t)event.user_ptr);
      EXPECT(PTL_EVENT_SEND, event.type);
    }
    EXPECT(PTL_EQ_EMPTY, PtlEQGet(small[0], &event));
    EXPECT(most + extra + 1, drained(target_eq));
  }
  for (int i = 1; i >= 0; --i) {
    MUST(PtlPut(told[i], 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, 0, 0, NULL, 0));
    EXPECT(PTL_OK, PtlEQPoll(small, 2, PTL_TIME_FOREVER, &event, &which));
    EXPECT(i, which);
  }
  for (int i = 1; i >= 0; --i) MUST(PtlPut(told[i], 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, 0, 0, NULL, 0));
  EXPECT(PTL_NI_OK, put(md, 8));
  for (int i = 0; i < 2; ++i) {
    EXPECT(PTL_OK, PtlEQPoll(small, 2, 0, &event, &which));
    EXPECT(i, which);
  }
  MUST(PtlPut(told[1], 0, 8, PTL_NO_ACK_REQ, rank_of(my_rank), PT, 0, 0, NULL, 0));
  EXPECT(PTL_OK, PtlEQWait(small[1], &event));
  EXPECT(PTL_NI_OK, put(md, 8));
  EXPECT(7, drained(target_eq));
  for (int i = 0; i < 2; ++i) {
    EXPECT(PTL_OK, PtlMDRelease(told[i]));
    EXPECT(PTL_OK, PtlEQFree(small[i]));
  }
}

/* Rules: P4F-5.23, P4F-17.3, P4F-17.4, P4F-17.6, P4F-17.8. */
static void one_queue_of_many(void) {
  enum { FIRST = 40, MANY = 3, COUNT = 8 };
  ptl_handle_eq_t shared;
  ptl_event_t event;
  unsigned disabled[MANY + 1] = {0}, puts = 0;
  MUST(PtlEQAlloc(ni, COUNT, &shared));
  for (ptl_pt_index_t pt = FIRST; pt <= FIRST + MANY; ++pt) {
    ptl_pt_index_t got;
    ptl_handle_me_t made;
    const ptl_me_t me = {.start = memory,
                         .length = SIZE,
                         .ct_handle = PTL_CT_NONE,
                         .uid = PTL_UID_ANY,
                         .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                         .match_id = {.rank = PTL_RANK_ANY}};
    MUST(PtlPTAlloc(ni, pt < FIRST + MANY ? PTL_PT_FLOWCTRL : 0, shared, pt, &got));
    MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &made));
  }
  unsigned taken = 0;
  for (;; ++taken) {
    MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(my_rank), FIRST, 0, 0, NULL, 0));
    const ptl_ni_fail_t how = ended(eq);
    if (how == PTL_NI_OK) continue;
    EXPECT(PTL_NI_PT_DISABLED, how);
    break;
  }
  EXPECT(1, taken >= 1 && taken <= COUNT);
  while (PtlEQGet(shared, &event) == PTL_OK) {
    if (event.type == PTL_EVENT_PUT) ++puts;
    if (event.type == PTL_EVENT_PT_DISABLED) ++disabled[event.pt_index - FIRST];
  }
  EXPECT(taken, puts);
  for (int i = 0; i <= MANY; ++i) EXPECT(i < MANY, disabled[i]);
  /* The queue has room again, but those with flow control stay disabled until they are enabled. */
  for (int enabled = 0; enabled < 2; ++enabled) {
    for (ptl_pt_index_t pt = FIRST; pt <= FIRST + MANY; ++pt) {
      const int takes = enabled || pt == FIRST + MANY;
      if (enabled && pt < FIRST + MANY) EXPECT(PTL_OK, PtlPTEnable(ni, pt));
      MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(my_rank), pt, 0, 0, NULL, 0));
      EXPECT(takes ? PTL_NI_OK : PTL_NI_PT_DISABLED, ended(eq));
      EXPECT(takes, drained(shared));
    }
  }
}

/* Rules: P4F-6.1, P4F-6.2, P4F-6.3, P4F-6.18, P4F-6.20, P4F-6.22, P4F-6.23, P4F-6.24, P4F-6.25, P4F-6.26, P4F-6.28,
 * P4F-6.30, P4F-6.31, P4F-6.32, P4F-10.19. */
static void descriptors(void) {
  const ptl_process_t me = rank_of(my_rank);
  ptl_ct_event_t count;
  ptl_md_t what = {.start = out, .length = HALF, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t made;
  MUST(PtlMDBind(ni, &what, &made));
  memset(&what, 0xff, sizeof what);
  memset(out, 0x21, HALF);
  EXPECT(PTL_NI_OK, put(made, HALF));
  EXPECT(0x21, memory[HALF - 1]);
  EXPECT(PTL_OK, PtlMDRelease(made));
  made = bind(NULL, 0, 0, eq, PTL_CT_NONE);
  EXPECT(PTL_NI_OK, put(made, 0));
  EXPECT(PTL_ARG_INVALID, PtlPut(made, 0, 1, PTL_ACK_REQ, me, PT, 0, 0, NULL, 0));
  EXPECT(PTL_OK, PtlMDRelease(made));
  made = bind(NULL, PTL_SIZE_MAX, 0, eq, PTL_CT_NONE);
  memset(out, 0x22, HALF);
  MUST(PtlPut(made, (ptl_size_t)out, HALF, PTL_ACK_REQ, me, PT, 0, 0, NULL, 0));
  EXPECT(PTL_NI_OK, ended(eq));
  EXPECT(0x22, memory[HALF - 1]);
  EXPECT(PTL_OK, PtlMDRelease(made));

  /* A descriptor's options are its own, and it is free when the count is there. */
  const struct {
    unsigned options;
    ptl_size_t counted;
    unsigned told;
  } rows[] = {{PTL_MD_EVENT_CT_REPLY, 1, 1},
              {PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES, SIZE - 100, 1},
              {PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SUCCESS_DISABLE, 1, 0},
              {PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SEND_DISABLE | PTL_MD_UNORDERED, 1, 1}};
  for (unsigned i = 0; i < 4; ++i) {
    const ptl_handle_ct_t own = counter();
    made = bind(out, HALF, rows[i].options, eq, own);
    MUST(PtlGet(made, 0, HALF, me, PT, 0, 100, NULL));
    EXPECT(PTL_OK, PtlCTWait(own, 1, &count));
    EXPECT(rows[i].counted, count.success);
    EXPECT(PTL_OK, PtlMDRelease(made));
    EXPECT(rows[i].told, drained(eq));
    EXPECT(PTL_OK, PtlCTFree(own));
  }
  EXPECT(7, drained(target_eq));
  for (unsigned options = 0; options < 4; ++options) {
    const ptl_handle_ct_t own = counter();
    const unsigned told =
        (options & 1 ? PTL_MD_EVENT_SEND_DISABLE : 0) | (options & 2 ? PTL_MD_EVENT_SUCCESS_DISABLE : 0);
    made = bind(out, HALF, told | PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_UNORDERED, eq, own);
    MUST(PtlPut(made, 0, 8, PTL_ACK_REQ, me, PT, 0, 0, NULL, 0));
    EXPECT(PTL_OK, PtlCTWait(own, 2, &count));
    EXPECT(PTL_OK, PtlMDRelease(made));
    EXPECT(options == 0 ? 2 : options == 1 ? 1 : 0, drained(eq));
    EXPECT(2, count.success);
    EXPECT(PTL_OK, PtlCTFree(own));
  }
  EXPECT(4, drained(target_eq));

  /* Volatile bytes are the program's again; an unreliable descriptor asks for nothing. */
  uint64_t add = 3, sum = 0;
  memset(memory, 0, SIZE);
  made = bind(&add, 8, PTL_MD_VOLATILE, eq, PTL_CT_NONE);
  MUST(PtlAtomic(made, 0, 8, PTL_ACK_REQ, me, PT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  add = 1000;
  EXPECT(PTL_NI_OK, ended(eq));
  memcpy(&sum, memory, 8);
  EXPECT(3, sum);
  MUST(PtlPut(made, 0, 8, PTL_ACK_REQ, me, PT, 0, 8, NULL, 0));
  add = 2000;
  EXPECT(PTL_NI_OK, ended(eq));
  memcpy(&sum, memory + 8, 8);
  EXPECT(1000, sum);
  EXPECT(PTL_OK, PtlMDRelease(made));
  made = bind(out, HALF, PTL_MD_UNRELIABLE, eq, PTL_CT_NONE);
  EXPECT(PTL_ARG_INVALID, PtlPut(made, 0, 8, PTL_ACK_REQ, me, PT, 0, 0, NULL, 0));
  EXPECT(PTL_OK, PtlPut(made, 0, 8, PTL_NO_ACK_REQ, me, PT, 0, 0, NULL, 0));
  EXPECT(PTL_NI_OK, put(md, 8));
  EXPECT(4, drained(target_eq));
  EXPECT(PTL_OK, PtlMDRelease(made));

  /* A counter may go while a descriptor names it. */
  const ptl_handle_ct_t own = counter();
  made = bind(out, HALF, PTL_MD_EVENT_CT_ACK, eq, own);
  EXPECT(PTL_OK, PtlCTFree(own));
  EXPECT(PTL_OK, PtlMDRelease(made));
}

/* Rules: P4F-12.24, P4F-18.2, P4F-18.5, P4F-18.6, P4F-18.7. */
static void order(void) {
  enum { FIRST = 50, TURNS = 60, LONGEST = 20000 };
  static unsigned char large[LONGEST], from[LONGEST], back[LONGEST];
  const ptl_process_t me = rank_of(my_rank);
  ptl_handle_eq_t shared;
  ptl_event_t event;
  MUST(PtlEQAlloc(ni, 2 * TURNS, &shared));
  for (ptl_pt_index_t pt = FIRST; pt < FIRST + 3; ++pt) {
    ptl_pt_index_t got;
    ptl_handle_me_t made;
    const ptl_me_t takes = {.start = large,
                            .length = LONGEST,
                            .ct_handle = PTL_CT_NONE,
                            .uid = PTL_UID_ANY,
                            .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                            .match_id = {.rank = PTL_RANK_ANY}};
    MUST(PtlPTAlloc(ni, 0, shared, pt, &got));
    MUST(PtlMEAppend(ni, pt, &takes, PTL_PRIORITY_LIST, NULL, &made));
  }
  for (unsigned i = 0; i < TURNS; ++i) MUST(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, me, FIRST + i * i % 3, 0, 0, NULL, i));
  for (unsigned i = 0; i < TURNS; ++i) {
    EXPECT(PTL_OK, PtlEQWait(shared, &event));
    EXPECT(i, event.hdr_data);
    EXPECT(FIRST + i * i % 3, event.pt_index);
  }
  /* When there is news of a message, its bytes are there. */
  const ptl_handle_md_t source = bind(from, LONGEST, 0, eq, PTL_CT_NONE),
                        sink = bind(back, LONGEST, 0, eq, PTL_CT_NONE);
  for (int i = 1; i < 8; ++i) {
    memset(from, i, LONGEST);
    memset(back, 0, LONGEST);
    MUST(PtlPut(source, 0, LONGEST, i % 2 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, me, FIRST, 0, 0, NULL, 0));
    if (i % 2) {
      EXPECT(PTL_NI_OK, ended(eq));
      EXPECT(0, memcmp(large, from, LONGEST));
    }
    MUST(PtlEQWait(shared, &event));
    EXPECT(0, memcmp(large, from, LONGEST));
    MUST(PtlGet(sink, 0, LONGEST, me, FIRST, 0, 0, NULL));
    EXPECT(PTL_NI_OK, ended(eq));
    EXPECT(0, memcmp(back, from, LONGEST));
    MUST(PtlEQWait(shared, &event));
  }
  EXPECT(PTL_OK, PtlAtomicSync());
}

/* Rules: P4F-12.9, P4F-12.10, P4F-19.5, P4F-19.6. */
static void swaps_of_pieces(void) {
  const ptl_process_t me = rank_of(my_rank);
  unsigned char bytes[32] = {0};
  uint64_t source = 0x1122334455667788, before = 1, operand = 0, value = 0;
  const ptl_iovec_t pieces[] = {{bytes + 20, 3}, {bytes + 1, 0}, {bytes + 9, 4}, {bytes, 1}};
  const ptl_handle_md_t from = bind(&source, 8, 0, eq, PTL_CT_NONE), into = bind(&before, 8, 0, eq, PTL_CT_NONE);
  ptl_handle_me_t made;
  const ptl_me_t takes = {.start = (void*)pieces,
                          .length = 4,
                          .ct_handle = PTL_CT_NONE,
                          .uid = PTL_UID_ANY,
                          .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_IOVEC,
                          .match_id = {.rank = PTL_RANK_ANY},
                          .match_bits = 1};
  MUST(PtlMEAppend(ni, PT, &takes, PTL_PRIORITY_LIST, NULL, &made));
  for (unsigned i = 0; i < 3; ++i) { /* it swaps, it does not, it masks */
    const uint64_t expected_before = i == 0 ? 0 : 0x1122334455667788;
    operand = i == 0 ? 0 : i == 1 ? 5 : 0xff;
    if (i > 0) source = 0xaaaaaaaaaaaaaaaa;
    MUST(PtlSwap(into, 0, from, 0, 8, me, PT, 1, 0, NULL, 0, &operand, i == 2 ? PTL_MSWAP : PTL_CSWAP, PTL_UINT64_T));
    EXPECT(PTL_NI_OK, ended(eq));
    EXPECT(expected_before, before);
    memcpy(&value, bytes + 20, 3);
    memcpy((char*)&value + 3, bytes + 9, 4);
    memcpy((char*)&value + 7, bytes, 1);
    EXPECT(i == 2 ? 0x11223344556677aa : 0x1122334455667788, value);
  }
  EXPECT(PTL_OK, PtlMEUnlink(made));
  EXPECT(3, drained(target_eq));
}

int main(void) {
  ptl_pt_index_t pt;
  begin();
  MUST(PtlEQAlloc(ni, 512, &eq));
  MUST(PtlEQAlloc(ni, 512, &target_eq));
  done = counter();
  MUST(PtlPTAlloc(ni, 0, target_eq, PT, &pt));
  const ptl_me_t me = {.start = memory,
                       .length = SIZE,
                       .ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id = {.rank = PTL_RANK_ANY}};
  MUST(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &all));
  md = bind(out, HALF, 0, eq, PTL_CT_NONE);
  counters();
  triggered_counts();
  triggered_operations();
  queues();
  one_queue_of_many();
  descriptors();
  order();
  swaps_of_pieces();
  EXPECT(PTL_OK, PtlMEUnlink(all));
  return end();
}
