/* rma_latency [REPEATS [LONGEST]]: latencies of one-sided operations with their flush, by the NICs and emulated by
 * messages to the target's processor (RED-2: section 3.2 of RED-SEA's deliverable, on pscom).
 *
 *     mpiexec -n 2 ./rma_latency 2000
 *     spinloom sim -n 2 --nic sc17-discrete bench/rma_latency.c 20
 *
 * Rank 0 works on memory of the last rank, whose program waits in a barrier of both contexts' kind: it calls
 * spl_rma_progress() all the time, so that the emulation is as fast as it can be. Both ways take turns, operation by
 * operation. A line: operation, bytes, medians in us, their ratio, and the lower and upper quartile of the native way.
 * Before a line is printed, what the operations have written or fetched has been compared. Operations on more bytes
 * than the NIC's atomics have are split with `native`, and emulated with `fallback`, which is what pscom does. */
#include <portals4.h>
#include <spinloom/rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONGEST = 1 << 16, WAYS = 3 };
enum { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, OPERATIONS };
static const char* const names[OPERATIONS] = {
    "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap"};
static const char* const ways[WAYS] = {"native", "emulated", "fallback"};

static spl_rma* rma[WAYS];
static spl_rma_window* windows[WAYS];
static uint64_t memory[LONGEST / 8 + 1]; /* the last word says that all is done */
static uint64_t out[LONGEST / 8], in[LONGEST / 8], expected[LONGEST / 8];

static void must(int code, const char* call, const spl_rma* context) {
  if (code == PTL_OK) return;
  fprintf(stderr, "rma_latency: %s: code %d: %s\n", call, code, spl_rma_error(context));
  exit(1);
}
#define MUST(call, context) must(call, #call, context)

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void begin(int what, spl_rma_key* key, uint64_t bytes, spl_rma* context) {
  static const uint64_t zero = 0;
  switch (what) {
    case PUT: MUST(spl_rma_put(key, 0, out, bytes), context); break;
    case GET: MUST(spl_rma_get(key, 0, in, bytes), context); break;
    case ACCUMULATE: MUST(spl_rma_accumulate(key, 0, out, bytes / 8, PTL_SUM, PTL_UINT64_T), context); break;
    case GET_ACCUMULATE:
      MUST(spl_rma_get_accumulate(key, 0, out, in, bytes / 8, PTL_SUM, PTL_UINT64_T), context);
      break;
    case FETCH_AND_OP: MUST(spl_rma_fetch_and_op(key, 0, out, in, PTL_SUM, PTL_UINT64_T), context); break;
    default: MUST(spl_rma_compare_and_swap(key, 0, out, &zero, in, PTL_UINT64_T), context);
  }
}

/* The target's words after the operation, and whether what came back is what they were before. */
static int is_right(int what, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / 8; ++i) {
    if (what != PUT && what != ACCUMULATE && in[i] != expected[i]) return 0;
    if (what == PUT) expected[i] = out[i];
    if (what == ACCUMULATE || what == GET_ACCUMULATE || what == FETCH_AND_OP) expected[i] += out[i];
    if (what == COMPARE_AND_SWAP && expected[i] == 0) expected[i] = out[i];
  }
  return 1;
}

static void measure(int what, uint64_t bytes, unsigned repeats, ptl_rank_t target) {
  double* times[WAYS];
  double medians[WAYS], low[WAYS], high[WAYS];
  const unsigned warm = repeats / 10 + 1;
  for (int way = 0; way < WAYS; ++way) times[way] = malloc(repeats * sizeof(double));
  for (unsigned i = 0; i < repeats + warm; ++i) {
    for (unsigned turn = 0; turn < WAYS; ++turn) {
      const unsigned way = (turn + i) % WAYS;
      spl_rma_key* const key = spl_rma_window_key(windows[way], target);
      for (uint64_t word = 0; word < bytes / 8; ++word) out[word] = i * 31 + turn + word + (uint64_t)what;
      const double begun = now_us();
      begin(what, key, bytes, rma[way]);
      MUST(spl_rma_flush(rma[way], target), rma[way]);
      const double took = now_us() - begun;
      if (i >= warm) times[way][i - warm] = took;
      if (!is_right(what, bytes)) {
        fprintf(stderr, "rma_latency: %s of %llu B brought other bytes back\n", names[what], (unsigned long long)bytes);
        exit(1);
      }
    }
  }
  MUST(spl_rma_get(spl_rma_window_key(windows[0], target), 0, in, bytes), rma[0]);
  MUST(spl_rma_flush(rma[0], target), rma[0]);
  if (memcmp(in, expected, bytes) != 0) {
    fprintf(stderr, "rma_latency: %s of %llu B left other bytes\n", names[what], (unsigned long long)bytes);
    exit(1);
  }
  for (int way = 0; way < WAYS; ++way) {
    qsort(times[way], repeats, sizeof(double), by_value);
    medians[way] = times[way][repeats / 2];
    low[way] = times[way][repeats / 4];
    high[way] = times[way][repeats * 3 / 4];
    free(times[way]);
  }
  printf("%-16s %7llu %9.2f %9.2f %9.2f %7.2f %7.2f %9.2f %9.2f\n", names[what], (unsigned long long)bytes, medians[0],
         medians[1], medians[2], medians[0] / medians[1], medians[2] / medians[1], low[0], high[0]);
  fflush(stdout);
}

int main(int argc, char** argv) {
  const unsigned repeats = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
  const uint64_t longest = argc > 2 ? strtoull(argv[2], NULL, 10) : LONGEST;
  ptl_handle_ni_t ni;
  ptl_ni_limits_t limits;
  if (repeats == 0 || longest > LONGEST || PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni) != PTL_OK) {
    fprintf(stderr, "usage: rma_latency [REPEATS [LONGEST up to %d]]\n", LONGEST);
    return 2;
  }
  for (int way = 0; way < WAYS; ++way) {
    const spl_rma_options options = {.portal = 62 - 2 * (unsigned)way,
                                     .way = way == 1 ? SPL_RMA_EMULATED : SPL_RMA_NATIVE,
                                     .above_limit = way == 2 ? SPL_RMA_EMULATE : SPL_RMA_SPLIT};
    MUST(spl_rma_open(ni, &options, &rma[way]), NULL);
    MUST(spl_rma_window_make(rma[way], memory, sizeof memory, SPL_RMA_ALL, 0, &windows[way]), rma[way]);
  }
  const ptl_rank_t target = spl_rma_size(rma[0]) - 1;
  if (spl_rma_rank(rma[0]) == 0) {
    printf("# atomics to %llu B, fetching ones to %llu B; medians of %u in us\n",
           (unsigned long long)limits.max_atomic_size, (unsigned long long)limits.max_fetch_atomic_size, repeats);
    printf("# operation        bytes %9s %9s %9s %7s %7s %9s %9s\n", ways[0], ways[1], ways[2], "n/e", "f/e", "n 25%",
           "n 75%");
    for (int what = 0; what < OPERATIONS; ++what) {
      const uint64_t most = what >= FETCH_AND_OP ? 8 : longest;
      for (uint64_t bytes = 8; bytes <= most; bytes *= 2) measure(what, bytes, repeats, target);
    }
    const uint64_t done = 1;
    for (ptl_rank_t rank = 0; rank <= target; ++rank) {
      MUST(spl_rma_put(spl_rma_window_key(windows[0], rank), LONGEST, &done, 8), rma[0]);
    }
    MUST(spl_rma_flush_all(rma[0]), rma[0]);
  } else {
    const volatile uint64_t* const done = &memory[LONGEST / 8];
    while (*done == 0) {
      for (int way = 0; way < WAYS; ++way) MUST(spl_rma_progress(rma[way]), rma[way]);
    }
  }
  for (int way = 0; way < WAYS; ++way) {
    MUST(spl_rma_window_free(windows[way]), rma[way]);
    MUST(spl_rma_close(rma[way]), NULL);
  }
  PtlNIFini(ni);
  PtlFini();
  return 0;
}
