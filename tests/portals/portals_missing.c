/* Memory that is not there: puts, gets and atomics to and from holes, read-only pages and pages without access, through
 * entries and descriptors over all memory and over parts of it. They end as PTL_NI_SEGV with nothing moved, and nobody
 * dies. Two ranks; each tries the other and itself. argv[1] = "plain": the interface does not ask for the feature;
 * "handles": the program has a handler of faults, which none of these reach. */
#include <signal.h>
#include <sys/mman.h>

#include "portals4_spin.h"
#include "portals_common.h"

enum {
  PAGE = 4096,
  LONG = 1 << 20,
  PAGES = LONG / PAGE,
  ALL_BITS = 1, /* entries over all memory: a priority entry, ... */
  LATE_BITS, /* ... and one of the overflow list */
  PART_BITS, /* over `broken` alone */
  LIST_BITS, /* over a list whose second piece is `hole` */
  PLACES_BITS, /* the place where ranks learn addresses */
  TEST_PT = 0,
  PLACES_PT = 1
};

/* Places in a rank's memory. `broken` has LONG bytes, with `hole`, one page, at LONG / 2; `partly` is 4 B before it. */
struct places {
  char *good, *hole, *fixed, *closed, *broken, *partly, *leaving;
};
static struct places mine, theirs[2];
static ptl_handle_md_t all_md, places_md;
static ptl_handle_eq_t eq, target_eq, places_eq;
static ptl_handle_ct_t counter;
static char* out; /* memory that peers may map */
static char plain_out[LONG];

static char* pages(unsigned count, int access) {
  char* start = mmap(NULL, (size_t)count * PAGE, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) exit(3);
  return start;
}

static void make_places(void) {
  char* all = pages(4 * PAGES + 16, PROT_READ | PROT_WRITE);
  mine.good = all;
  mine.fixed = all + (PAGES + 1) * PAGE;
  mine.closed = mine.fixed + 2 * PAGE;
  mine.leaving = mine.closed + 2 * PAGE;
  mine.broken = mine.leaving + 2 * PAGE;
  mine.hole = mine.broken + LONG / 2;
  mine.partly = mine.hole - 4;
  memset(mine.fixed, 7, PAGE);
  EXPECT(0, mprotect(mine.fixed, PAGE, PROT_READ));
  EXPECT(0, mprotect(mine.closed, PAGE, PROT_NONE));
  EXPECT(0, munmap(mine.hole, PAGE));
}

struct outcome {
  int sent, ended; /* ni_fail_type of PTL_EVENT_SEND, and of PTL_EVENT_ACK or PTL_EVENT_REPLY; 99: no such event */
  ptl_size_t mlength;
};

/* Waits for the last event of an operation. A send that failed is the last one of a put. */
static struct outcome outcome(int asks) {
  struct outcome found = {99, 99, 0};
  ptl_event_t event;
  for (;;) {
    MUST(PtlEQWait(eq, &event));
    if (event.type == PTL_EVENT_SEND) {
      found.sent = event.ni_fail_type;
      if (event.ni_fail_type != PTL_NI_OK && !asks) return found;
      continue;
    }
    found.ended = event.ni_fail_type;
    found.mlength = event.mlength;
    return found;
  }
}

static void expect_end(int line, int fail, ptl_size_t length, struct outcome found) {
  expect(line, "how it ended", (unsigned)fail, (unsigned)found.ended);
  expect(line, "mlength", fail == PTL_NI_OK ? length : 0, found.mlength);
}

static void put(int line, unsigned to, ptl_match_bits_t bits, const char* from, const void* where, ptl_size_t length,
                int fail) {
  MUST(PtlPut(all_md, (ptl_size_t)from, length, PTL_ACK_REQ, rank_of(to), TEST_PT, bits, (ptl_size_t)where, NULL, 0));
  expect_end(line, fail, length, outcome(0));
}

static void get(int line, unsigned to, ptl_match_bits_t bits, char* into, const void* where, ptl_size_t length,
                int fail) {
  MUST(PtlGet(all_md, (ptl_size_t)into, length, rank_of(to), TEST_PT, bits, (ptl_size_t)where, NULL));
  expect_end(line, fail, length, outcome(1));
}

static void atomics(int line, unsigned to, void* where, int fail) {
  const ptl_size_t at = (ptl_size_t)where, source = (ptl_size_t)plain_out, before = (ptl_size_t)mine.good;
  const uint64_t operand = 5;
  MUST(PtlAtomic(all_md, source, 64, PTL_ACK_REQ, rank_of(to), TEST_PT, ALL_BITS, at, NULL, 0, PTL_SUM, PTL_INT64_T));
  expect_end(line, fail, 64, outcome(0));
  MUST(PtlFetchAtomic(all_md, before, all_md, source, 64, rank_of(to), TEST_PT, ALL_BITS, at, NULL, 0, PTL_SUM,
                      PTL_INT64_T));
  expect_end(line, fail, 64, outcome(1));
  MUST(PtlSwap(all_md, before, all_md, source, 8, rank_of(to), TEST_PT, ALL_BITS, at, NULL, 0, &operand, PTL_CSWAP,
               PTL_UINT64_T));
  expect_end(line, fail, 8, outcome(1));
}
#define PUT(...) put(__LINE__, __VA_ARGS__)
#define GET(...) get(__LINE__, __VA_ARGS__)
#define ATOMICS(...) atomics(__LINE__, __VA_ARGS__)

/* The target's memory is not all there. */
/* Rules: P4F-20.2. */
static void try_target(unsigned to) {
  static const ptl_size_t lengths[] = {8, 300, 3000, 20000, 100000, LONG};
  const struct places* const there = &theirs[to];
  const char* const sources[] = {plain_out, out};
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    const ptl_size_t length = lengths[i];
    for (unsigned which = 0; which < 2; ++which) {
      const char* const from = sources[which];
      PUT(to, ALL_BITS, from, there->hole, length, PTL_NI_SEGV);
      PUT(to, ALL_BITS, from, there->partly, length, PTL_NI_SEGV);
      PUT(to, ALL_BITS, from, there->fixed, length, PTL_NI_SEGV);
      PUT(to, ALL_BITS, from, there->closed, length, PTL_NI_SEGV);
      PUT(to, ALL_BITS, from, (void*)12288, length, PTL_NI_SEGV);
      PUT(to, ALL_BITS, from, (void*)(UINTPTR_MAX - 15), length, PTL_NI_SEGV);
      PUT(to, ALL_BITS, from, there->good, length, PTL_NI_OK);
    }
    GET(to, ALL_BITS, plain_out, there->hole, length, PTL_NI_SEGV);
    GET(to, ALL_BITS, out, there->partly, length, PTL_NI_SEGV);
    GET(to, ALL_BITS, plain_out, there->closed, length, PTL_NI_SEGV);
    GET(to, ALL_BITS, out, (void*)12288, length, PTL_NI_SEGV);
    GET(to, ALL_BITS, out, there->good, length, PTL_NI_OK);
    if (length > PAGE) continue;
    GET(to, ALL_BITS, plain_out, there->fixed, length, PTL_NI_OK);
    EXPECT(7, plain_out[0]);
  }
  /* A hole in the middle of a long range. */
  PUT(to, ALL_BITS, out, there->broken, LONG, PTL_NI_SEGV);
  PUT(to, ALL_BITS, plain_out, there->broken, LONG, PTL_NI_SEGV);
  GET(to, ALL_BITS, out, there->broken, LONG, PTL_NI_SEGV);
  ATOMICS(to, there->hole, PTL_NI_SEGV);
  ATOMICS(to, there->partly, PTL_NI_SEGV);
  ATOMICS(to, there->fixed, PTL_NI_SEGV);
  ATOMICS(to, there->closed, PTL_NI_SEGV);
  ATOMICS(to, there->good, PTL_NI_OK);
}

/* Puts that fail, from descriptors that tell fewer events. Where the descriptor tells no sends, the acknowledgement
 * that was asked for tells the failure; counters count it in any case. */
/* Rules: P4F-6.21, P4F-6.22, P4F-6.23. */
static void told_as_the_options_say(unsigned to) {
  const struct places* const there = &theirs[to];
  ptl_handle_ct_t sends;
  MUST(PtlCTAlloc(ni, &sends));
  for (unsigned which = 0; which < 8; ++which) {
    const unsigned disabled =
        (which & 1 ? PTL_MD_EVENT_SEND_DISABLE : 0) | (which & 2 ? PTL_MD_EVENT_SUCCESS_DISABLE : 0);
    const int asks = (which & 4) != 0;
    const ptl_md_t some = {
        .length = PTL_SIZE_MAX, .options = disabled | PTL_MD_EVENT_CT_SEND, .eq_handle = eq, .ct_handle = sends};
    ptl_handle_md_t md;
    ptl_event_t event;
    ptl_ct_event_t count;
    MUST(PtlCTSet(sends, (ptl_ct_event_t){0, 0}));
    MUST(PtlMDBind(ni, &some, &md));
    MUST(PtlPut(md, (ptl_size_t)mine.hole, 16, asks ? PTL_ACK_REQ : PTL_NO_ACK_REQ, rank_of(to), TEST_PT, ALL_BITS,
                (ptl_size_t)there->good, NULL, 0));
    MUST(PtlCTWait(sends, 1, &count));
    EXPECT(1, count.failure);
    const int tells_send = (which & 1) == 0;
    if (tells_send || asks) {
      MUST(PtlEQWait(eq, &event));
      EXPECT(tells_send ? PTL_EVENT_SEND : PTL_EVENT_ACK, event.type);
      EXPECT(PTL_NI_SEGV, event.ni_fail_type);
    }
    EXPECT(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
    EXPECT(PTL_OK, PtlMDRelease(md));
  }
  EXPECT(PTL_OK, PtlCTFree(sends));
}

/* The initiator's memory is not all there: a put says so by its send, and nothing leaves. */
static void try_initiator(unsigned to) {
  static const ptl_size_t lengths[] = {8, 3000, 100000};
  const struct places* const there = &theirs[to];
  for (unsigned i = 0; i < 3; ++i) {
    const ptl_size_t length = lengths[i];
    char* const nowhere[] = {mine.hole, mine.partly, mine.closed, (char*)12288};
    for (unsigned which = 0; which < 4; ++which) {
      MUST(PtlPut(all_md, (ptl_size_t)nowhere[which], length, PTL_ACK_REQ, rank_of(to), TEST_PT, ALL_BITS,
                  (ptl_size_t)there->good, NULL, 0));
      const struct outcome sent = outcome(0);
      EXPECT(PTL_NI_SEGV, sent.sent);
      EXPECT(99, sent.ended);
      GET(to, ALL_BITS, nowhere[which], there->good, length, PTL_NI_SEGV);
    }
    GET(to, ALL_BITS, mine.fixed, there->good, length, PTL_NI_SEGV);
  }
  MUST(PtlFetchAtomic(all_md, (ptl_size_t)mine.hole, all_md, (ptl_size_t)plain_out, 8, rank_of(to), TEST_PT, ALL_BITS,
                      (ptl_size_t)there->good, NULL, 0, PTL_SUM, PTL_INT64_T));
  expect_end(__LINE__, PTL_NI_SEGV, 0, outcome(1));
  /* Volatile bytes are copied by the call. */
  ptl_handle_md_t md;
  const ptl_md_t all = {.length = PTL_SIZE_MAX, .options = PTL_MD_VOLATILE, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &all, &md));
  MUST(PtlPut(md, (ptl_size_t)mine.hole, 16, PTL_ACK_REQ, rank_of(to), TEST_PT, ALL_BITS, (ptl_size_t)there->good, NULL,
              0));
  EXPECT(PTL_NI_SEGV, outcome(0).sent);
}

/* Memory that was there when an earlier message came. */
static void try_memory_that_goes(void) {
  const unsigned to = 1 - my_rank;
  PUT(to, ALL_BITS, plain_out, theirs[to].leaving, 64, PTL_NI_OK);
  barrier();
  EXPECT(0, munmap(mine.leaving, PAGE));
  barrier();
  PUT(to, ALL_BITS, plain_out, theirs[to].leaving, 64, PTL_NI_SEGV);
  GET(to, ALL_BITS, plain_out, theirs[to].leaving, 64, PTL_NI_SEGV);
}

static ptl_me_t entry_of(ptl_match_bits_t bits, void* start, ptl_size_t length, unsigned options) {
  ptl_me_t me = {.start = start,
                 .length = length,
                 .ct_handle = counter,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  return me;
}

static void append(const ptl_me_t* me, ptl_pt_index_t pt, ptl_list_t list) {
  ptl_handle_me_t handle;
  MUST(PtlMEAppend(ni, pt, me, list, NULL, &handle));
}

/* Checks the target's events for a put into a hole that came before its entry. */
static void try_late(void) {
  const unsigned to = 1 - my_rank;
  ptl_event_t event;
  barrier();
  PUT(to, LATE_BITS, plain_out, theirs[to].hole, 100, PTL_NI_SEGV);
  barrier();
  do {
    MUST(PtlEQGet(target_eq, &event) == PTL_EQ_EMPTY ? PTL_FAIL : PTL_OK);
  } while (event.match_bits != LATE_BITS);
  EXPECT(PTL_EVENT_PUT, event.type);
  EXPECT(PTL_NI_SEGV, event.ni_fail_type);
  EXPECT(0, event.mlength);
  EXPECT(100, event.rlength);
  const ptl_me_t late = entry_of(LATE_BITS, NULL, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
  append(&late, TEST_PT, PTL_PRIORITY_LIST);
  MUST(PtlEQWait(target_eq, &event));
  EXPECT(PTL_EVENT_PUT_OVERFLOW, event.type);
  EXPECT(PTL_NI_SEGV, event.ni_fail_type);
  EXPECT(0, event.mlength);
  barrier();
}

/* Entries over a part of memory, and lists. */
/* Rules: P4F-20.2. */
static void try_parts(unsigned to) {
  static const ptl_size_t length = LONG;
  const ptl_size_t half = LONG / 2;
  PUT(to, PART_BITS, plain_out, (void*)0, length, PTL_NI_SEGV);
  PUT(to, PART_BITS, plain_out, (void*)0, 1000, PTL_NI_OK);
  PUT(to, PART_BITS, plain_out, (void*)(half + 10), 10, PTL_NI_SEGV);
  PUT(to, PART_BITS, plain_out, (void*)(half + PAGE), 1000, PTL_NI_OK);
  GET(to, PART_BITS, plain_out, (void*)(half - 1), 2, PTL_NI_SEGV);
  PUT(to, LIST_BITS, plain_out, (void*)0, 300, PTL_NI_SEGV);
  PUT(to, LIST_BITS, plain_out, (void*)0, 100, PTL_NI_OK);
  PUT(to, LIST_BITS, plain_out, (void*)200, 100, PTL_NI_OK);
  GET(to, LIST_BITS, plain_out, (void*)99, 2, PTL_NI_SEGV);
}

static void exchange_places(void) {
  const ptl_me_t me = entry_of(PLACES_BITS, theirs, sizeof theirs, 0);
  append(&me, PLACES_PT, PTL_PRIORITY_LIST);
  barrier();
  theirs[my_rank] = mine;
  MUST(PtlPut(places_md, 0, sizeof mine, PTL_ACK_REQ, rank_of(1 - my_rank), PLACES_PT, PLACES_BITS,
              my_rank * sizeof mine, NULL, 0));
  EXPECT(PTL_NI_OK, ended(places_eq));
  barrier();
}

static void on_fault(int number) { _exit(number); }

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "handles") == 0) signal(SIGSEGV, on_fault);
  const int asks = argc < 2 || strcmp(argv[1], "plain") != 0;
  ptl_ni_limits_t desired;
  ptl_pt_index_t pt;
  ptl_ct_event_t count;
  memset(&desired, 0x7f, sizeof desired);
  desired.features = PTL_TARGET_BIND_INACCESSIBLE;
  begin_with(asks ? &desired : NULL);
  EXPECT(PTL_TARGET_BIND_INACCESSIBLE, limits.features & PTL_TARGET_BIND_INACCESSIBLE);
  make_places();
  MUST(PtlSpinHeapAlloc(LONG, (void**)&out));
  memset(out, 1, LONG);
  MUST(PtlEQAlloc(ni, 16, &eq));
  MUST(PtlEQAlloc(ni, 4096, &target_eq));
  MUST(PtlEQAlloc(ni, 16, &places_eq));
  MUST(PtlCTAlloc(ni, &counter));
  MUST(PtlPTAlloc(ni, 0, target_eq, TEST_PT, &pt));
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PLACES_PT, &pt));
  const ptl_md_t all = {.length = PTL_SIZE_MAX, .eq_handle = eq, .ct_handle = PTL_CT_NONE};
  const ptl_md_t own = {.start = &mine, .length = sizeof mine, .eq_handle = places_eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &all, &all_md));
  MUST(PtlMDBind(ni, &own, &places_md));
  ptl_iovec_t list[] = {{mine.good, 100}, {mine.hole, 100}, {mine.good + 100, 100}};
  const ptl_me_t everything = entry_of(ALL_BITS, NULL, PTL_SIZE_MAX, PTL_ME_EVENT_CT_COMM | PTL_ME_IS_ACCESSIBLE);
  const ptl_me_t late = entry_of(LATE_BITS, NULL, PTL_SIZE_MAX, 0);
  const ptl_me_t part = entry_of(PART_BITS, mine.broken, LONG, 0);
  const ptl_me_t pieces = entry_of(LIST_BITS, list, 3, PTL_IOVEC);
  append(&everything, TEST_PT, PTL_PRIORITY_LIST);
  append(&late, TEST_PT, PTL_OVERFLOW_LIST);
  append(&part, TEST_PT, PTL_PRIORITY_LIST);
  append(&pieces, TEST_PT, PTL_PRIORITY_LIST);
  exchange_places();
  for (unsigned to = 0; to < 2; ++to) {
    try_target(to);
    told_as_the_options_say(to);
    try_initiator(to);
    if (asks) try_parts(to);
    barrier();
  }
  MUST(PtlCTGet(counter, &count));
  EXPECT(1, count.success > 0 && count.failure > count.success);
  EXPECT(0, *(int*)mine.partly); /* nothing of what went beyond it */
  try_memory_that_goes();
  try_late();
  return end();
}
