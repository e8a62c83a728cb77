/* Gets, atomics and swaps: what comes back, and what stays in memory; test_portals.py runs it with two ranks. */
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { count = 4, bytes = count * sizeof(int64_t), start_ns = 1000000 };

static int answers, wrong;

static void expect(int line, const char* what, long long expected, long long found) {
  ++answers;
  if (found == expected) return;
  ++wrong;
  printf("line %d: %s is %lld, not %lld\n", line, what, found, expected);
}
#define EXPECT(expected, what) expect(__LINE__, #what, (long long)(expected), (long long)(what))

static void expect_all(int line, const int64_t* found, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t expected[count] = {a, b, c, d};
  for (int i = 0; i < count; ++i) expect(line, "an element", expected[i], found[i]);
}
#define EXPECT_ALL(found, a, b, c, d) expect_all(__LINE__, found, a, b, c, d)

static ptl_handle_ni_t ni;
static ptl_pt_index_t pt;
static ptl_handle_eq_t eq;
static ptl_handle_ct_t ct;

static void entry(void* start, ptl_match_bits_t bits, unsigned options) {
  const ptl_me_t me = {.start = start,
                       .length = bytes,
                       .ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = options | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = bits};
  ptl_handle_me_t handle;
  EXPECT(PTL_OK, PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &handle));
}

static ptl_handle_md_t descriptor(void* start) {
  const ptl_md_t md = {.start = start,
                       .length = bytes,
                       .options = PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SEND_DISABLE,
                       .eq_handle = eq,
                       .ct_handle = ct};
  ptl_handle_md_t handle;
  EXPECT(PTL_OK, PtlMDBind(ni, &md, &handle));
  return handle;
}

static int64_t source[count] = {10, 20, 30, 40}, fetched[count];
static ptl_size_t done;
static ptl_event_t event;

/* The next answer, and its event. */
static void wait_for(ptl_event_kind_t kind, ptl_ni_fail_t failure, ptl_size_t length) {
  ptl_ct_event_t value;
  EXPECT(PTL_OK, PtlEQWait(eq, &event));
  EXPECT(kind, event.type);
  EXPECT(failure, event.ni_fail_type);
  if (failure != PTL_NI_OK) {
    EXPECT(PTL_OK, PtlCTSet(ct, (ptl_ct_event_t){done, 0}));
    return;
  }
  EXPECT(length, event.mlength);
  EXPECT(PTL_OK, PtlCTWait(ct, ++done, &value));
  EXPECT(done, value.success);
}

/* Rules: P4F-7.16, P4F-11.29, P4F-11.30, P4F-12.9, P4F-12.10, P4F-12.17. */
static void ask(void) {
  const ptl_process_t to = {.rank = 1};
  const ptl_handle_md_t from = descriptor(source), into = descriptor(fetched);
  int64_t operand = 4;

  EXPECT(PTL_OK, PtlGet(into, 0, bytes, to, pt, 1, 0, fetched));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, bytes);
  EXPECT(1, event.user_ptr == fetched);
  EXPECT_ALL(fetched, 1, 2, 3, 4);
  memset(fetched, 0, bytes);
  EXPECT(PTL_OK, PtlGet(into, 8, 8, to, pt, 1, 16, NULL));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, 8);
  EXPECT_ALL(fetched, 0, 3, 0, 0);
  EXPECT(PTL_OK, PtlGet(into, 0, bytes, to, pt, 2, 0, NULL)); /* an entry for puts only */
  wait_for(PTL_EVENT_REPLY, PTL_NI_OP_VIOLATION, 0);

  EXPECT(PTL_OK, PtlAtomic(from, 0, bytes, PTL_ACK_REQ, to, pt, 1, 0, NULL, 5, PTL_SUM, PTL_INT64_T));
  wait_for(PTL_EVENT_ACK, PTL_NI_OK, bytes); /* 11 22 33 44 */
  EXPECT(PTL_OK, PtlFetchAtomic(into, 0, from, 8, 16, to, pt, 1, 8, NULL, 0, PTL_MAX, PTL_INT64_T));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, 16);
  EXPECT_ALL(fetched, 22, 33, 0, 0); /* stays: 11 22 33 44 against 20 30 */
  EXPECT(PTL_OK, PtlSwap(into, 24, from, 0, 8, to, pt, 1, 0, NULL, 0, NULL, PTL_SWAP, PTL_INT64_T));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, 8); /* 10 22 33 44 */
  EXPECT_ALL(fetched, 22, 33, 0, 11);
  EXPECT(PTL_OK, PtlSwap(into, 0, from, 24, 8, to, pt, 1, 24, NULL, 0, &operand, PTL_CSWAP, PTL_INT64_T));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, 8); /* 4 is not 44 */
  operand = 44;
  EXPECT(PTL_OK, PtlSwap(into, 0, from, 24, 8, to, pt, 1, 24, NULL, 0, &operand, PTL_CSWAP, PTL_INT64_T));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, 8); /* 10 22 33 40 */
  EXPECT(44, fetched[0]);

  /* No call takes these arguments. */
  EXPECT(PTL_ARG_INVALID, PtlAtomic(from, 0, 8, PTL_ACK_REQ, to, pt, 1, 0, NULL, 0, PTL_SWAP, PTL_INT64_T));
  EXPECT(PTL_ARG_INVALID, PtlAtomic(from, 0, 8, PTL_ACK_REQ, to, pt, 1, 0, NULL, 0, PTL_BAND, PTL_DOUBLE));
  EXPECT(PTL_ARG_INVALID, PtlSwap(into, 0, from, 0, 8, to, pt, 1, 0, NULL, 0, NULL, PTL_SUM, PTL_INT64_T));
  EXPECT(PTL_ARG_INVALID, PtlSwap(into, 0, from, 0, 8, to, pt, 1, 0, NULL, 0, NULL, PTL_CSWAP, PTL_INT64_T));
  EXPECT(PTL_ARG_INVALID, PtlGet(into, 8, bytes, to, pt, 1, 0, NULL));

  /* A get that waits for a counter, and an atomic that waits for the get. */
  ptl_handle_ct_t go;
  EXPECT(PTL_OK, PtlCTAlloc(ni, &go));
  EXPECT(PTL_OK, PtlTriggeredGet(into, 0, bytes, to, pt, 1, 0, NULL, go, 1));
  EXPECT(PTL_OK,
         PtlTriggeredAtomic(from, 0, bytes, PTL_ACK_REQ, to, pt, 1, 0, NULL, 0, PTL_SUM, PTL_INT64_T, ct, done + 1));
  EXPECT(PTL_EQ_EMPTY, PtlEQGet(eq, &event));
  EXPECT(PTL_OK, PtlCTInc(go, (ptl_ct_event_t){1, 0}));
  wait_for(PTL_EVENT_REPLY, PTL_NI_OK, bytes);
  EXPECT_ALL(fetched, 10, 22, 33, 40);
  wait_for(PTL_EVENT_ACK, PTL_NI_OK, bytes);
}

/* Rules: P4F-13.3. */
static void answer(int64_t* memory) {
  const ptl_event_kind_t kinds[] = {PTL_EVENT_GET,          PTL_EVENT_GET,          PTL_EVENT_ATOMIC,
                                    PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC,
                                    PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_GET,          PTL_EVENT_ATOMIC};
  for (unsigned i = 0; i < sizeof kinds; ++i) {
    EXPECT(PTL_OK, PtlEQWait(eq, &event));
    EXPECT(kinds[i], event.type);
    EXPECT(0, event.initiator.rank);
    if (i != 2) continue;
    EXPECT(PTL_SUM, event.atomic_operation);
    EXPECT(PTL_INT64_T, event.atomic_type);
    EXPECT(5, event.hdr_data);
  }
  EXPECT_ALL(memory, 20, 42, 63, 80);
}

int main(void) {
  ptl_process_t me;
  int64_t memory[count] = {1, 2, 3, 4};
  PtlInit();
  PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni);
  PtlGetId(ni, &me);
  PtlEQAlloc(ni, 32, &eq);
  PtlCTAlloc(ni, &ct);
  PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt);
  entry(memory, 1, PTL_ME_OP_PUT | PTL_ME_OP_GET);
  entry(memory, 2, PTL_ME_OP_PUT);
  nanosleep(&(struct timespec){.tv_nsec = start_ns}, NULL); /* both are ready */
  if (me.rank == 0) {
    ask();
  } else {
    answer(memory);
  }
  PtlFini();
  printf("rank %u: %d answers\n", me.rank, answers);
  return wrong;
}
