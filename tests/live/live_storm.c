/* Threads of two or more ranks wait for objects, put, append, trigger and free at random, and no thread waits until
 * another one is ready. argv[1]: for how many milliseconds; argv[2]: the seed. Nobody may hang, and a thread that
 * waits for a counter must see the number that this counter was given, never the number of the next counter in its
 * place. */
#include <pthread.h>
#include <stdatomic.h>

#include "live_common.h"

enum { THREADS = 4, PLACES = 6, PT = 1 };

/* A handle and the number that its counter reaches one day, together. */
static _Atomic uint64_t counters[PLACES];
static _Atomic uint32_t queues[PLACES];
static atomic_uint numbers, gone;
static atomic_int stopping;
static atomic_llong waits, interrupted;

static ptl_handle_ct_t handle_of(uint64_t place) { return (ptl_handle_ct_t)place; }
static uint64_t number_of(uint64_t place) { return place >> 32; }

static void good(int line, int code, const char* codes) { /* one letter a code, 'a' is PTL_OK */
  if (strchr(codes, 'a' + code) == NULL) expect(line, "a code", 99, (unsigned long long)code);
}
#define GOOD(codes, call) good(__LINE__, call, codes)
/* a OK, b ARG_INVALID, c CT_NONE_REACHED, d EQ_DROPPED, e EQ_EMPTY, h IN_USE, k NO_SPACE, q INTERRUPTED */

static void new_counter(unsigned place) {
  ptl_handle_ct_t made;
  if (PtlCTAlloc(ni, &made) != PTL_OK) return;
  const uint64_t older = atomic_exchange(&counters[place], (uint64_t)++numbers << 32 | made);
  GOOD("ab", PtlCTFree(handle_of(older)));
}

static void new_queue(unsigned place) {
  ptl_handle_eq_t made;
  if (PtlEQAlloc(ni, 16, &made) != PTL_OK) return;
  GOOD("ab", PtlEQFree(atomic_exchange(&queues[place], made)));
}

static void wait_for_counter(uint64_t place, unsigned how) {
  ptl_ct_event_t count = {0, 0};
  unsigned which;
  const ptl_handle_ct_t handle = handle_of(place);
  const ptl_size_t number = number_of(place);
  const int code = how == 0 ? PtlCTWait(handle, number, &count)
                            : PtlCTPoll(&handle, &number, 1, how == 1 ? PTL_TIME_FOREVER : how - 2, &count, &which);
  GOOD("abcq", code);
  if (code == PTL_OK && count.success != number) EXPECT(number, count.success);
  ++waits;
  interrupted += code == PTL_INTERRUPTED;
}

static void wait_for_queue(unsigned how) {
  ptl_event_t event;
  ptl_handle_eq_t two[2] = {queues[how % PLACES], queues[(how + 1) % PLACES]};
  unsigned which;
  const int code = how % 4 == 0   ? PtlEQWait(two[0], &event)
                   : how % 4 == 1 ? PtlEQGet(two[0], &event)
                                  : PtlEQPoll(two, 2, how % 4 == 2 ? PTL_TIME_FOREVER : 1, &event, &which);
  GOOD("abdeq", code);
  ++waits;
  interrupted += code == PTL_INTERRUPTED;
}

static void put_something(uint64_t random, unsigned char* bytes) {
  ptl_handle_md_t md;
  ptl_md_t what = {.start = bytes,
                   .length = 64,
                   .options = PTL_MD_EVENT_CT_ACK,
                   .eq_handle = queues[random % PLACES],
                   .ct_handle = PTL_CT_NONE};
  if (PtlMDBind(ni, &what, &md) != PTL_OK) return;
  const ptl_process_t to = rank_of((unsigned)(random >> 8) % ranks);
  GOOD("ab", PtlPut(md, 0, 8, PTL_ACK_REQ, to, PT, random >> 16 & 3, 0, NULL, 0));
  while (PtlMDRelease(md) != PTL_OK) sleep_ms(0); /* this ends when the acknowledgement has come */
}

static void append_something(uint64_t random, unsigned char* bytes) {
  ptl_handle_me_t handle;
  /* The entry's counter may be freed before a message comes. */
  ptl_handle_ct_t counted;
  MUST(PtlCTAlloc(ni, &counted));
  ptl_me_t me = {.start = bytes,
                 .length = 64,
                 .ct_handle = counted,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | ((random & 1) != 0 ? PTL_ME_USE_ONCE : 0),
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = random >> 1 & 3};
  const int code = PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &handle);
  GOOD("ak", code);
  MUST(PtlCTFree(counted));
  if (code != PTL_OK) return;
  for (int tries = 0; tries < (int)(random >> 3 & 63); ++tries) sleep_ms(0);
  int unlinked;
  do {
    unlinked = PtlMEUnlink(handle);
  } while (unlinked == PTL_IN_USE);
  GOOD("ab", unlinked);
}

static void* run(void* argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  unsigned char bytes[64] = {0};
  while (atomic_load(&stopping) == 0) {
    const uint64_t random = word_of(state++, my_rank);
    const uint64_t place = counters[random % PLACES];
    switch (random >> 32 & 15) {
      case 0: new_counter((unsigned)(random % PLACES)); break;
      case 1: new_queue((unsigned)(random % PLACES)); break;
      case 2:
      case 3: wait_for_counter(place, (unsigned)(random >> 40 & 3)); break;
      case 4:
      case 5: wait_for_queue((unsigned)(random >> 40 & 255)); break;
      case 6:
      case 7: append_something(random >> 40, bytes); break;
      case 8: /* another counter's, once it has its number */
        GOOD("abk", PtlTriggeredCTInc(handle_of(counters[random >> 40 & 3]), (ptl_ct_event_t){0, 0}, handle_of(place),
                                      number_of(place)));
        break;
      case 9: GOOD("ab", PtlCTCancelTriggered(handle_of(place))); break;
      case 10:
      case 11: GOOD("ab", PtlCTSet(handle_of(place), (ptl_ct_event_t){number_of(place), 0})); break;
      default: put_something(random >> 40, bytes); break;
    }
  }
  ++gone;
  return NULL;
}

int main(int argc, char** argv) {
  const unsigned ms = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 2000;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
  pthread_t threads[THREADS];
  ptl_handle_eq_t events;
  begin();
  MUST(PtlEQAlloc(ni, 16, &events)); /* nobody reads it */
  open_portal(events, PT);
  for (unsigned place = 0; place < PLACES; ++place) {
    MUST(PtlEQAlloc(ni, 16, (ptl_handle_eq_t*)&queues[place]));
    ptl_handle_ct_t made;
    MUST(PtlCTAlloc(ni, &made));
    counters[place] = (uint64_t)++numbers << 32 | made;
  }
  barrier();
  for (uint64_t t = 0; t < THREADS; ++t) {
    pthread_create(&threads[t], NULL, run, (void*)(uintptr_t)(seed * 1000003 + t * 100000000));
  }
  struct timespec begun, now;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  /* Whoever waits for ever is waiting for something that is freed one day. */
  for (unsigned place = 0; gone < THREADS; place = (place + 1) % PLACES) {
    new_counter(place);
    new_queue(place);
    sleep_ms(1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t passed_ms = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
    if (passed_ms >= ms) stopping = 1;
  }
  for (unsigned t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
  EXPECT(1, waits > 0);
  barrier();
  printf("rank %u: %lld waits, %lld interrupted, %d wrong\n", my_rank, (long long)waits, (long long)interrupted, wrong);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
