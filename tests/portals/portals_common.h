/* Shared by the conformance programs: a count of answers, a matching logical interface, a barrier made of messages.
 *
 * Contract: begin() opens the interface and waits until all ranks have; EXPECT counts an answer and prints a wrong one;
 * end() is main's exit code. Nothing here relies on modelled time or on who starts first. Threads: one. Time: barrier()
 * tries again until its peer has the portal table entry.
 */
#ifndef SPINLOOM_TESTS_PORTALS_COMMON_H
#define SPINLOOM_TESTS_PORTALS_COMMON_H

#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BARRIER_PT 63
#define BARRIER_ROUNDS 16

static int answers, wrong;
static ptl_handle_ni_t ni;
static ptl_ni_limits_t limits;
static unsigned my_rank, ranks;
static ptl_handle_ct_t barrier_arrived[BARRIER_ROUNDS];
static ptl_handle_eq_t barrier_eq;
static ptl_handle_md_t barrier_md;
static unsigned long long barriers;

static void expect(int line, const char* what, unsigned long long expected, unsigned long long found) {
  ++answers;
  if (found == expected) return;
  ++wrong;
  printf("rank %u, line %d: %s is %llu, not %llu\n", my_rank, line, what, found, expected);
}
#define EXPECT(expected, what) expect(__LINE__, #what, (unsigned long long)(expected), (unsigned long long)(what))

static void must(int line, int code) {
  if (code == PTL_OK) return;
  printf("rank %u, line %d: a call answers %d\n", my_rank, line, code);
  exit(2);
}
#define MUST(call) must(__LINE__, call)

static ptl_process_t rank_of(unsigned rank) {
  ptl_process_t process = {.rank = rank};
  return process;
}

/* Waits for the events of one put with ACK_REQ; how it ended at the target. */
static ptl_ni_fail_t ended(ptl_handle_eq_t eq) {
  ptl_event_t event;
  do {
    MUST(PtlEQWait(eq, &event));
  } while (event.type != PTL_EVENT_ACK && event.type != PTL_EVENT_REPLY);
  return event.ni_fail_type;
}

static void barrier(void) {
  ++barriers;
  for (unsigned round = 0; 1u << round < ranks; ++round) {
    ptl_process_t to = rank_of((my_rank + (1u << round)) % ranks);
    ptl_ct_event_t count;
    for (;;) {
      MUST(PtlPut(barrier_md, 0, 0, PTL_ACK_REQ, to, BARRIER_PT, round, 0, NULL, 0));
      if (ended(barrier_eq) == PTL_NI_OK) break;
      usleep(1000);
    }
    MUST(PtlCTWait(barrier_arrived[round], barriers, &count));
  }
}

static void begin_with(const ptl_ni_limits_t* desired) {
  ptl_process_t me;
  ptl_size_t size;
  ptl_pt_index_t pt;
  MUST(PtlInit());
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, desired, &limits, &ni));
  MUST(PtlGetId(ni, &me));
  MUST(PtlGetMap(ni, 0, NULL, &size));
  my_rank = me.rank;
  ranks = (unsigned)size;
  MUST(PtlEQAlloc(ni, 64, &barrier_eq));
  ptl_md_t nothing = {.eq_handle = barrier_eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(ni, &nothing, &barrier_md));
  for (unsigned round = 0; 1u << round < ranks; ++round) MUST(PtlCTAlloc(ni, &barrier_arrived[round]));
  MUST(PtlPTAlloc(ni, PTL_PT_ALLOC_DISABLED, PTL_EQ_NONE, BARRIER_PT, &pt));
  for (unsigned round = 0; 1u << round < ranks; ++round) {
    ptl_handle_me_t handle;
    ptl_me_t entry = {.ct_handle = barrier_arrived[round],
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                      .match_id = {.rank = PTL_RANK_ANY},
                      .match_bits = round};
    MUST(PtlMEAppend(ni, BARRIER_PT, &entry, PTL_PRIORITY_LIST, NULL, &handle));
  }
  MUST(PtlPTEnable(ni, BARRIER_PT));
  barrier();
}

static inline void begin(void) { begin_with(NULL); }

static inline int end(void) {
  barrier();
  printf("rank %u: %d answers\n", my_rank, answers);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}

#endif
