/* Several threads of each rank make calls at the same time and wait in all possible ways. argv[1]: rounds of
 * messages between thread t of one rank and thread t of the next. A thread must not go on sleeping because another
 * thread has taken the news that its message has come. */
#include <pthread.h>

#include "live_common.h"

enum { THREADS = 5, BYTES = 24000 };

struct Mine {
  unsigned number;
  unsigned rounds;
  ptl_handle_eq_t eq;
  ptl_handle_ct_t ct;
  ptl_handle_md_t md;
  unsigned char* in;
  unsigned char* out;
  long long bad;
};

static uint64_t length_of(unsigned thread, unsigned round) {
  static const uint64_t sizes[] = {0, 8, 300, 4000, BYTES};
  return sizes[(thread + round) % 5];
}

/* A message's arrival, by one of five ways to wait. */
/* Rules: P4F-10.23. */
static void await(struct Mine* mine, unsigned round) {
  ptl_event_t event;
  ptl_ct_event_t count;
  unsigned which;
  const ptl_size_t test = round + 1;
  switch ((mine->number + round) % 5) {
    case 0: MUST(PtlCTWait(mine->ct, test, &count)); break;
    case 1: MUST(PtlCTPoll(&mine->ct, &test, 1, PTL_TIME_FOREVER, &count, &which)); break;
    case 2: do { MUST(PtlCTGet(mine->ct, &count));
      } while (count.success < test);
      break;
    case 3:
      while (PtlCTPoll(&mine->ct, &test, 1, 1, &count, &which) != PTL_OK) {
      }
      break;
    default: do { MUST(PtlEQWait(mine->eq, &event));
      } while (event.type != PTL_EVENT_PUT || event.hdr_data != round);
      MUST(PtlCTWait(mine->ct, test, &count));
      return;
  }
  for (;;) { /* its event comes before its count */
    const int code = round % 2 == 0 ? PtlEQGet(mine->eq, &event) : PtlEQPoll(&mine->eq, 1, 1, &event, &which);
    if (code != PTL_OK) {
      mine->bad += 1000000;
      return;
    }
    if (event.type == PTL_EVENT_PUT) break;
  }
  if (event.hdr_data != round) mine->bad += 1000;
}

/* Rules: P4F-21.1. */
static void* run(void* argument) {
  struct Mine* mine = argument;
  const unsigned next = (my_rank + 1) % ranks, previous = (my_rank + ranks - 1) % ranks;
  for (unsigned round = 0; round < mine->rounds; ++round) {
    const uint64_t length = length_of(mine->number, round);
    const uint64_t key = (my_rank * 100u + mine->number) * 100000ull + round;
    /* The first rank begins, the others pass on. */
    if (my_rank == 0) {
      fill(mine->out, key, length);
      MUST(PtlPut(mine->md, 0, length, PTL_NO_ACK_REQ, rank_of(next), mine->number, 0, 0, NULL, round));
    }
    await(mine, round);
    if (difference(mine->in, (previous * 100u + mine->number) * 100000ull + round, length) >= 0) ++mine->bad;
    if (my_rank != 0) {
      fill(mine->out, key, length);
      MUST(PtlPut(mine->md, 0, length, PTL_NO_ACK_REQ, rank_of(next), mine->number, 0, 0, NULL, round));
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  const unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 200;
  static struct Mine all[THREADS];
  pthread_t threads[THREADS];
  begin();
  for (unsigned t = 0; t < THREADS; ++t) {
    struct Mine* mine = &all[t];
    mine->number = t;
    mine->rounds = rounds;
    mine->in = some_memory(BYTES);
    mine->out = some_memory(BYTES);
    mine->ct = counter();
    MUST(PtlEQAlloc(ni, 4096, &mine->eq));
    open_portal(mine->eq, t);
    append_to(t, mine->in, BYTES, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE, mine->ct, 0,
              PTL_PRIORITY_LIST);
    mine->md = bind(mine->out, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
  }
  barrier();
  for (unsigned t = 0; t < THREADS; ++t) pthread_create(&threads[t], NULL, run, &all[t]);
  for (unsigned t = 0; t < THREADS; ++t) {
    pthread_join(threads[t], NULL);
    EXPECT(0, all[t].bad);
  }
  return end();
}
