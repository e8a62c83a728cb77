/* Threads wait for objects that another thread frees. Each waiting thread must be told, none may wait for ever, and
 * none may be given what comes for the next object in the same place. A round frees one kind of object and is
 * repeated until a thread was waiting for it. The last thing that is freed is the library itself. */
#include <pthread.h>
#include <stdatomic.h>

#include "live_common.h"

enum Way { CT_WAIT, CT_POLL, EQ_WAIT, EQ_POLL, WAYS };
enum End { BY_FREE, BY_NI_FINI, BY_FINI };

struct Round {
  enum Way way;
  ptl_handle_ni_t ni;
  ptl_handle_ct_t ct;
  ptl_handle_eq_t eq;
  atomic_int about_to_wait;
  int code;
};

static void* wait_in(void* argument) {
  struct Round* round = argument;
  ptl_ct_event_t count;
  ptl_event_t event;
  unsigned which;
  const ptl_size_t test = 3;
  atomic_store(&round->about_to_wait, 1);
  switch (round->way) {
    case CT_WAIT: round->code = PtlCTWait(round->ct, test, &count); break;
    case CT_POLL: round->code = PtlCTPoll(&round->ct, &test, 1, PTL_TIME_FOREVER, &count, &which); break;
    case EQ_WAIT: round->code = PtlEQWait(round->eq, &event); break;
    default: round->code = PtlEQPoll(&round->eq, 1, PTL_TIME_FOREVER, &event, &which); break;
  }
  return NULL;
}

static void end_of(struct Round* round, enum End end) {
  const int waits_for_counter = round->way == CT_WAIT || round->way == CT_POLL;
  if (end == BY_FREE) {
    if (!waits_for_counter) {
      ptl_handle_eq_t next;
      ptl_pt_index_t pt;
      ptl_me_t me = {.ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY, .match_id = {.rank = PTL_RANK_ANY}};
      MUST(PtlEQFree(round->eq));
      MUST(PtlEQAlloc(round->ni, 8, &next)); /* the next one, with an event in it */
      MUST(PtlPTAlloc(round->ni, 0, next, 5, &pt));
      MUST(PtlMEAppend(round->ni, pt, &me, PTL_PRIORITY_LIST, NULL, &(ptl_handle_me_t){0}));
      return;
    }
    ptl_handle_ct_t next;
    MUST(PtlCTFree(round->ct));
    MUST(PtlCTAlloc(round->ni, &next)); /* the next one, which has reached the test */
    MUST(PtlCTSet(next, (ptl_ct_event_t){9, 0}));
  } else if (end == BY_NI_FINI) {
    MUST(PtlNIFini(round->ni));
  } else {
    PtlFini();
  }
}

/* True if the thread was caught waiting; otherwise it came too late, and its handle named nothing. */
static int caught(enum Way way, enum End end, unsigned pause_ms) {
  struct Round round = {.way = way};
  pthread_t thread;
  const unsigned kind = end == BY_FREE ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING;
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, kind | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &round.ni));
  MUST(PtlCTAlloc(round.ni, &round.ct));
  MUST(PtlEQAlloc(round.ni, 8, &round.eq));
  pthread_create(&thread, NULL, wait_in, &round);
  while (atomic_load(&round.about_to_wait) == 0) {
  }
  sleep_ms(pause_ms);
  end_of(&round, end);
  pthread_join(thread, NULL);
  if (end == BY_FREE) MUST(PtlNIFini(round.ni));
  const int too_late = end == BY_FINI ? PTL_NO_INIT : PTL_ARG_INVALID;
  if (round.code != too_late) EXPECT(PTL_INTERRUPTED, round.code);
  return round.code != too_late;
}

int main(void) {
  MUST(PtlInit());
  for (enum Way way = 0; way < WAYS; ++way) {
    for (enum End end = BY_FREE; end <= BY_NI_FINI; ++end) {
      int often = 0;
      for (unsigned pause_ms = 0; often < 3; ++pause_ms) often += caught(way, end, pause_ms);
    }
  }
  caught(CT_WAIT, BY_FINI, 100);
  printf("rank 0: %d answers\n", answers);
  return wrong == 0 ? 0 : 1;
}
