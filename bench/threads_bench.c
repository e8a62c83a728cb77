/* Puts between pairs of workers: all threads of one rank, or each a rank, on a thread or in a process of its own.
 *
 *     threads_bench 8 BYTES ROUNDS                            8 workers on one network interface
 *     spinloom-threads -n 8 threads_bench 1 BYTES ROUNDS      8 ranks of one process
 *     mpiexec -n 8 threads_bench 1 BYTES ROUNDS               8 ranks, each a process
 *
 * Worker w of all sends to worker w + 1 if w is even: ROUNDS puts, at most 64 of them unacknowledged. Each worker that
 * sends prints "sent COUNT from SECONDS to SECONDS", by a clock of the machine. The bytes of the last message are
 * compared. */
#include <portals4.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    const int code = (call);                                                   \
    if (code != PTL_OK) {                                                      \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, code); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { window = 64, workers_max = 64 };

static ptl_handle_ni_t ni;
static ptl_pt_index_t portal;
static unsigned me, each;
static ptl_size_t bytes, rounds;
static pthread_barrier_t all;

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void fill(unsigned char* at, unsigned worker) {
  for (ptl_size_t i = 0; i < bytes; ++i) at[i] = (unsigned char)(i * 7 + worker + 1);
}

static void send_all(unsigned worker, unsigned char* buffer) {
  ptl_handle_ct_t acked;
  ptl_handle_md_t md;
  ptl_ct_event_t count;
  ptl_process_t to = {.rank = (worker + 1) / each};
  CHECK(PtlCTAlloc(ni, &acked));
  ptl_md_t what = {
      .start = buffer, .length = bytes, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = acked};
  CHECK(PtlMDBind(ni, &what, &md));
  for (;;) { /* this ends when the other's entry is there */
    CHECK(PtlPut(md, 0, 0, PTL_CT_ACK_REQ, to, portal, worker + 1, 0, NULL, 0));
    while (PtlCTGet(acked, &count) == PTL_OK && count.success + count.failure == 0) {
    }
    CHECK(PtlCTSet(acked, (ptl_ct_event_t){0, 0}));
    if (count.success > 0) break;
  }
  const double start = now_s();
  for (ptl_size_t i = 0; i < rounds; ++i) {
    if (i >= window) CHECK(PtlCTWait(acked, i - window + 1, &count));
    CHECK(PtlPut(md, 0, bytes, PTL_CT_ACK_REQ, to, portal, worker + 1, 0, NULL, 0));
  }
  CHECK(PtlCTWait(acked, rounds, &count));
  printf("sent %llu from %.9f to %.9f\n", (unsigned long long)rounds, start, now_s());
  if (count.failure != 0) exit(1);
}

static void take_all(unsigned worker, unsigned char* buffer) {
  ptl_handle_ct_t landed;
  ptl_handle_me_t entry;
  ptl_ct_event_t count;
  CHECK(PtlCTAlloc(ni, &landed));
  ptl_me_t where = {.start = buffer,
                    .length = bytes,
                    .ct_handle = landed,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .match_bits = worker};
  CHECK(PtlMEAppend(ni, portal, &where, PTL_PRIORITY_LIST, NULL, &entry));
  CHECK(PtlCTWait(landed, rounds + 1, &count));
  unsigned char* const expected = malloc(bytes);
  fill(expected, worker - 1);
  if (memcmp(buffer, expected, bytes) != 0) {
    fprintf(stderr, "worker %u has wrong bytes\n", worker);
    exit(1);
  }
  free(expected);
}

static void* work(void* number) {
  const unsigned worker = me * each + (unsigned)(size_t)number;
  unsigned char* const buffer = calloc(1, bytes);
  pthread_barrier_wait(&all);
  if (worker % 2 == 0) {
    fill(buffer, worker);
    send_all(worker, buffer);
  } else {
    take_all(worker, buffer);
  }
  pthread_barrier_wait(&all);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[workers_max];
  ptl_process_t self;
  if (argc != 4) return 2;
  each = (unsigned)strtoul(argv[1], NULL, 0);
  bytes = strtoull(argv[2], NULL, 0);
  rounds = strtoull(argv[3], NULL, 0);
  if (each < 1 || each > workers_max || bytes < 1) return 2;
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
  CHECK(PtlGetId(ni, &self));
  me = self.rank;
  pthread_barrier_init(&all, NULL, each);
  for (size_t i = 0; i < each; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (size_t i = 0; i < each; ++i) pthread_join(threads[i], NULL);
  PtlNIFini(ni);
  PtlFini();
  return 0;
}
