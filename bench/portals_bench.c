/* Host time of Portals calls between two real processes; run by tools/live_bench.py under mpiexec -n 2.
 *
 *     portals_bench lat|look|get|rate|bw BYTES ROUNDS [heap]
 *     portals_bench fetch|swap 8 ROUNDS [heap]
 *     portals_bench idle BYTES MILLISECONDS
 *
 * lat: half a round trip of puts that match an entry and count, each answered by the program. look: the same of at
 * least 8 bytes, but the program looks at its memory only, and makes no call that waits. get, fetch, swap: from the
 * PtlGet, PtlFetchAtomic or PtlSwap of a word until its reply is counted, at a target that only looks at its memory.
 * rate, bw: puts one way, a window of them unacknowledged; the clock stops when all have landed. idle: a rank waits so
 * long for a put. Rank 0 prints one number: microseconds, messages a second, bytes a second, microseconds of its
 * processors a second. Every message's bytes are compared outside of the clock: before it, one by one; after it, the
 * last one. `heap`: the buffers are memory that peers map. */
#include <portals4_spin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    const int code = (call);                                                   \
    if (code != PTL_OK) {                                                      \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, code); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { window = 64, data_bits = 7, sync_bits = 8, get_bits = 9, word_bits = 10 };

static ptl_handle_ni_t ni;
static ptl_pt_index_t portal;
static ptl_handle_ct_t landed, synced, sent, replied;
static ptl_process_t me, other;
static unsigned char *out, *in;
/* Words of memory: what the peer changes, what its last put tells; this rank's operand, and what it fetched. */
static uint64_t* words;
enum { counted = 0, ended = 8, operand = 16, fetched = 24, words_count = 32 }; /* each on its cache line */
static ptl_size_t landed_count, synced_count, sent_count, replied_count;
static ptl_handle_md_t md, sync_md, get_md, words_md;

static void* buffer(ptl_size_t bytes, int in_heap) {
  void* memory = NULL;
  if (in_heap) {
    CHECK(PtlSpinHeapAlloc(bytes, &memory));
  } else if (posix_memalign(&memory, 4096, bytes) != 0) {
    exit(1);
  }
  return memory;
}

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static ptl_handle_me_t entry(void* start, ptl_size_t length, ptl_match_bits_t bits, ptl_handle_ct_t ct,
                             unsigned operations) {
  ptl_me_t me_given = {.start = start,
                       .length = length,
                       .ct_handle = ct,
                       .uid = PTL_UID_ANY,
                       .options = operations | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                       .match_id = {.rank = PTL_RANK_ANY},
                       .match_bits = bits};
  ptl_handle_me_t made;
  CHECK(PtlMEAppend(ni, portal, &me_given, PTL_PRIORITY_LIST, NULL, &made));
  return made;
}

/* Both ranks are here; the first one tries until the peer's entry is there. */
static void barrier(void) {
  static ptl_handle_eq_t eq;
  static ptl_handle_md_t asking;
  ptl_ct_event_t count;
  if (synced_count++ > 0) {
    CHECK(PtlPut(sync_md, 0, 0, PTL_NO_ACK_REQ, other, portal, sync_bits, 0, NULL, 0));
    CHECK(PtlCTWait(synced, synced_count, &count));
    return;
  }
  CHECK(PtlEQAlloc(ni, 16, &eq));
  ptl_md_t what = {.eq_handle = eq, .ct_handle = PTL_CT_NONE, .options = PTL_MD_EVENT_SEND_DISABLE};
  CHECK(PtlMDBind(ni, &what, &asking));
  ptl_event_t event;
  do {
    CHECK(PtlPut(asking, 0, 0, PTL_ACK_REQ, other, portal, sync_bits, 0, NULL, 0));
    CHECK(PtlEQWait(eq, &event));
  } while (event.ni_fail_type != PTL_NI_OK);
  CHECK(PtlCTWait(synced, synced_count, &count));
}

static void put(ptl_size_t bytes) { CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, other, portal, data_bits, 0, NULL, 0)); }

static void wait_landed(ptl_size_t more) {
  ptl_ct_event_t count;
  landed_count += more;
  CHECK(PtlCTWait(landed, landed_count, &count));
}

static void check(ptl_size_t bytes) {
  if (memcmp(in, out, bytes) == 0) return;
  fprintf(stderr, "rank %u: %llu B landed with other bytes\n", me.rank, (unsigned long long)bytes);
  exit(2);
}

/* Seconds of so many round trips. */
static double round_trips(ptl_size_t bytes, long rounds) {
  const double start = now_s();
  for (long i = 0; i < rounds; ++i) {
    if (me.rank == 0) put(bytes);
    wait_landed(1);
    if (me.rank == 1) put(bytes);
  }
  return now_s() - start;
}

/* Seconds of so many round trips of ranks that look at the first word only. */
static double round_trips_seen(ptl_size_t bytes, long rounds) {
  volatile uint64_t* const seen = (volatile uint64_t*)in;
  uint64_t* const shown = (uint64_t*)out;
  const uint64_t first = *shown;
  const double start = now_s();
  for (long i = 1; i <= rounds; ++i) {
    if (me.rank == 0) {
      *shown = (uint64_t)i;
      put(bytes);
    }
    while (*seen != (uint64_t)i) {
    }
    if (me.rank == 1) {
      *shown = (uint64_t)i;
      put(bytes);
    }
  }
  const double seconds = now_s() - start;
  wait_landed((ptl_size_t)rounds);
  barrier(); /* the last put may be read from here until then */
  *shown = first;
  return seconds;
}

/* Seconds of so many operations of rank 0 that have a reply, one after the other. Rank 1 looks at its memory meanwhile.
 * The word at rank 1 counts fetches and swaps: each fetches the count before it. */
static double replies(const char* kind, ptl_size_t bytes, long rounds) {
  static uint64_t count, last;
  const uint64_t word_bytes = sizeof count;
  const int gets = strcmp(kind, "get") == 0, fetches = strcmp(kind, "fetch") == 0;
  ptl_ct_event_t event;
  double seconds = 0;
  ++last;
  if (me.rank == 0) {
    const double start = now_s();
    for (long i = 0; i < rounds; ++i) {
      if (gets) {
        CHECK(PtlGet(get_md, 0, bytes, other, portal, get_bits, 0, NULL));
      } else if (fetches) {
        words[operand] = 1;
        CHECK(PtlFetchAtomic(words_md, fetched * word_bytes, words_md, operand * word_bytes, word_bytes, other, portal,
                             word_bits, counted * word_bytes, NULL, 0, PTL_SUM, PTL_UINT64_T));
      } else {
        words[operand] = count + 1;
        CHECK(PtlSwap(words_md, fetched * word_bytes, words_md, operand * word_bytes, word_bytes, other, portal,
                      word_bits, counted * word_bytes, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T));
      }
      ++count;
      CHECK(PtlCTWait(replied, ++replied_count, &event));
    }
    seconds = now_s() - start;
    if (!gets && words[fetched] != count - 1) {
      fprintf(stderr, "operation %llu fetched %llu\n", (unsigned long long)count, (unsigned long long)words[fetched]);
      exit(2);
    }
    words[operand] = last;
    CHECK(PtlPut(words_md, operand * word_bytes, word_bytes, PTL_NO_ACK_REQ, other, portal, word_bits,
                 ended * word_bytes, NULL, 0));
  } else {
    while (((volatile uint64_t*)words)[ended] != last) {
    }
  }
  barrier();
  return seconds;
}

/* Seconds until so many puts of rank 0 have landed at rank 1, which says so. */
static double one_way(ptl_size_t bytes, long rounds) {
  const double start = now_s();
  if (me.rank == 0) {
    ptl_ct_event_t count;
    for (long i = 0; i < rounds; ++i) {
      put(bytes);
      ++sent_count;
      if (sent_count % (window / 2) == 0 && sent_count >= window) {
        CHECK(PtlCTWait(sent, sent_count - window / 2, &count));
      }
    }
  } else {
    wait_landed((ptl_size_t)rounds);
  }
  barrier();
  return now_s() - start;
}

static double processor_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Returns the processor time of this rank per second, all threads together, while rank 0 waits for a put. */
static double idle(ptl_size_t bytes, long milliseconds) {
  const double start = now_s(), used = processor_s();
  if (me.rank == 0) {
    wait_landed(1);
  } else {
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
    put(bytes);
  }
  return (processor_s() - used) / (now_s() - start);
}

int main(int argc, char** argv) {
  const int in_heap = argc == 5 && strcmp(argv[4], "heap") == 0;
  if (argc != 4 && !in_heap) {
    fprintf(stderr,
            "portals_bench lat|look|get|rate|bw BYTES ROUNDS [heap], fetch|swap 8 ROUNDS [heap], or idle BYTES "
            "MILLISECONDS\n");
    return 2;
  }
  const ptl_size_t bytes = strtoull(argv[2], NULL, 0);
  if (strcmp(argv[1], "look") == 0 && bytes < sizeof(uint64_t)) {
    fprintf(stderr, "portals_bench: look needs at least 8 BYTES\n");
    return 2;
  }
  const int has_words = strcmp(argv[1], "fetch") == 0 || strcmp(argv[1], "swap") == 0;
  if (has_words && bytes != sizeof(uint64_t)) {
    fprintf(stderr, "portals_bench: fetch and swap move 8 BYTES\n");
    return 2;
  }
  const long rounds = atol(argv[3]);
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  CHECK(PtlGetId(ni, &me));
  other.rank = 1 - me.rank;
  out = buffer(bytes + 1, in_heap);
  in = buffer(bytes + 1, in_heap);
  for (ptl_size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 131 + 7);
  memset(in, 0, bytes);
  words = buffer(words_count * sizeof *words, in_heap);
  memset(words, 0, words_count * sizeof *words);
  CHECK(PtlCTAlloc(ni, &landed));
  CHECK(PtlCTAlloc(ni, &synced));
  CHECK(PtlCTAlloc(ni, &sent));
  CHECK(PtlCTAlloc(ni, &replied));
  CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
  entry(in, bytes, data_bits, landed, PTL_ME_OP_PUT);
  entry(NULL, 0, sync_bits, synced, PTL_ME_OP_PUT);
  entry(out, bytes, get_bits, PTL_CT_NONE, PTL_ME_OP_GET);
  entry(words, words_count * sizeof *words, word_bits, PTL_CT_NONE, PTL_ME_OP_PUT | PTL_ME_OP_GET);
  ptl_md_t what = {
      .start = out, .length = bytes, .options = PTL_MD_EVENT_CT_SEND, .eq_handle = PTL_EQ_NONE, .ct_handle = sent};
  CHECK(PtlMDBind(ni, &what, &md));
  what = (ptl_md_t){
      .start = in, .length = bytes, .options = PTL_MD_EVENT_CT_REPLY, .eq_handle = PTL_EQ_NONE, .ct_handle = replied};
  CHECK(PtlMDBind(ni, &what, &get_md));
  what.start = words;
  what.length = words_count * sizeof *words;
  CHECK(PtlMDBind(ni, &what, &words_md));
  what = (ptl_md_t){.eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  CHECK(PtlMDBind(ni, &what, &sync_md));
  barrier();

  for (int i = 0; i < 3; ++i) {
    memset(in, 0, bytes);
    barrier();
    round_trips(bytes, 1);
    check(bytes);
    barrier();
  }
  const long warm = rounds / 10 + 1;
  double seconds, result;
  if (strcmp(argv[1], "lat") == 0) {
    round_trips(bytes, warm);
    seconds = round_trips(bytes, rounds);
    result = seconds / (double)rounds / 2 * 1e6;
  } else if (strcmp(argv[1], "look") == 0) {
    round_trips_seen(bytes, warm);
    seconds = round_trips_seen(bytes, rounds);
    result = seconds / (double)rounds / 2 * 1e6;
    barrier();
    round_trips(bytes, 1);
  } else if (strcmp(argv[1], "get") == 0 || has_words) {
    replies(argv[1], bytes, warm);
    if (me.rank == 0 && !has_words) memset(in, 0, bytes); /* a get fills it again */
    seconds = replies(argv[1], bytes, rounds);
    result = seconds / (double)rounds * 1e6;
  } else if (strcmp(argv[1], "idle") == 0) {
    result = idle(bytes, rounds) * 1e6;
  } else {
    one_way(bytes, warm);
    seconds = one_way(bytes, rounds);
    result = strcmp(argv[1], "bw") == 0 ? (double)bytes * (double)rounds / seconds : (double)rounds / seconds;
  }
  check(bytes);
  if (me.rank == 0) printf("%.6g\n", result);
  barrier();
  CHECK(PtlNIFini(ni));
  PtlFini();
  return 0;
}
