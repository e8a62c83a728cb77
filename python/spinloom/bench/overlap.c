/* overlap - how long a collective operation takes, and how much of that a rank cannot spend on computing.
 *
 *     spinloom sim -n 64 --nic sc17-discrete overlap.c OPERATION ALGORITHM BYTES [NAME=VALUE...]
 *     mpiexec -n 2 ./overlap OPERATION ALGORITHM BYTES [NAME=VALUE...]
 *
 * Contract: OPERATION is allreduce (exclusive or, of bytes), bcast, scatter or allgather; ALGORITHM as spl_call has it,
 *   or "-".
 *   In each sample all ranks begin at the same moment, three times: the operation alone, a computation alone that is as
 *   long as the median of the former (or compute=NS), and both: start, compute, wait. Times last until the last rank
 *   ends. Overhead is what both take more than the computation, as a part of what the operation takes. The bytes of
 *   every result are compared. Rank 0 prints NAME VALUE lines: medians over samples, of the rank that takes longest, in
 *   ns. Samples that a rank began late do not count. start, rest (wait): of the time of both; in_calls: the thread's
 *   processor time in all calls.
 *   by=nic|cpu: who begins operations; once=1: the schedule is made at every start; polls=N: tests during the
 *   computation; samples=N; eager=BYTES: the longest message that leaves before its receiver is ready.
 *   Built with -DOVER_MPI it does the same by the non-blocking calls of an MPI.
 * Threads: one. Time: modelled in the simulator, where computing is sleeping; otherwise that of the host.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum { ALLREDUCE, BCAST, SCATTER, ALLGATHER, OPERATIONS } operation;
static const char* const names[OPERATIONS] = {"allreduce", "bcast", "scatter", "allgather"};

static struct {
  operation what;
  const char* algorithm; /* NULL: the usual one */
  long bytes, samples, polls, compute_ns, eager, once, by_cpu;
} wanted = {.samples = 20, .compute_ns = -1};

static int own_rank, ranks;
static unsigned char *given, *got;

#ifdef OVER_MPI
#include "overlap_mpi.h"
#else
#include "overlap_offload.h"
#endif

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int is_simulated;

static int64_t processor_ns(void) {
  struct timespec time;
  if (is_simulated) return 0;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* -- Computing: in the simulator it takes no modelled time, and so the rank sleeps. ---------------- */

static double loops_a_ns;
static int64_t reading_ns; /* the time that two readings of the processor's time show */
static volatile uint64_t computed;

static void loop(int64_t loops) {
  uint64_t word = computed;
  for (int64_t i = 0; i < loops; ++i) word = (word ^ (word >> 7)) * 0x9e3779b97f4a7c15u + 1;
  computed = word;
}

static void calibrate(void) {
  enum { loops = 20000, tries = 200 };
  int64_t least = INT64_MAX;
  for (int i = 0; i < tries; ++i) {
    const int64_t start = now_ns();
    loop(loops);
    const int64_t took = now_ns() - start;
    if (took < least) least = took;
  }
  loops_a_ns = (double)loops / (double)least;
  reading_ns = INT64_MAX;
  for (int i = 0; i < tries; ++i) {
    const int64_t start = processor_ns();
    const int64_t took = processor_ns() - start;
    if (took < reading_ns) reading_ns = took;
  }
}

static void compute(int64_t ns) {
  if (is_simulated) {
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
  } else {
    loop((int64_t)((double)ns * loops_a_ns));
  }
}

/* -- Samples ---------------- */

enum { COMMUNICATION, COMPUTATION, BOTH, KINDS };
/* What a rank has measured in each sample. LATE: how long after the common beginning it began. PROCESSOR: its thread's
 * time inside the calls, on the host only. */
enum { END, LATE, START, REST, PROCESSOR, NUMBERS };
static int64_t* measured[KINDS][NUMBERS];

static unsigned char byte_of(int rank, long sample, long i) {
  return (unsigned char)(rank * 7 + sample * 13 + i * 31 + 5);
}

static long given_bytes(void) { return wanted.what == SCATTER && own_rank == 0 ? wanted.bytes * ranks : wanted.bytes; }
static long got_bytes(void) { return wanted.what == ALLGATHER ? wanted.bytes * ranks : wanted.bytes; }

static void fill(long sample) {
  if ((wanted.what == SCATTER || wanted.what == BCAST) && own_rank != 0) return;
  const long length = given_bytes();
  unsigned char* const into = wanted.what == BCAST ? got : given;
  for (long i = 0; i < length; ++i) into[i] = byte_of(own_rank, sample, i);
}

/* Of a byte of rank 0 follow those of all ranks there. */
static unsigned char all_reduced(unsigned char of_first) {
  static unsigned char known[256];
  static int is_known;
  if (!is_known) {
    for (int first = 0; first < 256; ++first) {
      for (int rank = 0; rank < ranks; ++rank) known[first] ^= (unsigned char)(first + rank * 7);
    }
    is_known = 1;
  }
  return known[of_first];
}

static unsigned char expected(long sample, long i) {
  switch (wanted.what) {
    case ALLREDUCE: return all_reduced(byte_of(0, sample, i));
    case BCAST: return byte_of(0, sample, i);
    case SCATTER: return byte_of(0, sample, own_rank * wanted.bytes + i);
    default: return byte_of((int)(i / wanted.bytes), sample, i % wanted.bytes);
  }
}

static void check(long sample) {
  for (long i = 0; i < got_bytes(); ++i) {
    if (got[i] == expected(sample, i)) continue;
    fprintf(stderr, "rank %d, sample %ld: byte %ld is %d instead of %d\n", own_rank, sample, i, got[i],
            expected(sample, i));
    exit(1);
  }
}

/* All ranks begin when rank 0's clock, which they share, says so. */
static int64_t begin_together(void) {
  const int64_t margin_ns = is_simulated ? 300000 : 200000;
  int64_t start = agreed_start(now_ns() + margin_ns);
  if (is_simulated) {
    const int64_t wait = start - now_ns();
    if (wait > 0) nanosleep(&(struct timespec){0, wait}, NULL);
  } else {
    while (now_ns() < start) continue;
  }
  return start;
}

/* How long a call takes, and the thread's time in it. */
static int64_t timed(void (*call)(void), int64_t* processor) {
  const int64_t processor_start = processor ? processor_ns() : 0;
  const int64_t start = now_ns();
  call();
  const int64_t end = now_ns();
  if (processor) *processor += processor_ns() - processor_start - reading_ns;
  return end - start;
}

static void take_sample(int kind, long sample, int64_t compute_ns) {
  int64_t* const* const into = measured[kind];
  /* Reading the processor time is a system call, which slows down what follows: every second sample is for it alone. */
  int64_t* const processor = kind == BOTH && !is_simulated && sample % 2 == 1 ? &into[PROCESSOR][sample] : NULL;
  fill(sample);
  const int64_t start = begin_together();
  into[LATE][sample] = now_ns() - start;
  if (kind != COMPUTATION) into[START][sample] = timed(operation_start, processor);
  if (kind != COMMUNICATION) {
    const long polls = kind == BOTH ? wanted.polls : 0;
    for (long i = 0; i <= polls; ++i) {
      if (i > 0) timed(operation_test, processor);
      compute(compute_ns * (i + 1) / (polls + 1) - compute_ns * i / (polls + 1));
    }
  }
  if (kind != COMPUTATION) into[REST][sample] = timed(operation_wait, processor);
  into[END][sample] = now_ns() - start;
  if (kind == COMPUTATION) return;
  operation_free();
  check(sample);
}

static int compare(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

/* Of all samples `first`, `first` + step, ... at whose beginning no rank was late. */
static int64_t median_in_time(const int64_t* values, const int64_t* late, long first, long step, long* kept) {
  const int64_t late_ns = 2000;
  int64_t* const chosen = malloc((size_t)wanted.samples * sizeof *chosen);
  long count = 0;
  for (long i = first; i < wanted.samples; i += step) {
    if (late[i] <= late_ns) chosen[count++] = values[i];
  }
  qsort(chosen, (size_t)count, sizeof *chosen, compare);
  const int64_t found = count > 0 ? chosen[count / 2] : 0;
  if (kept) *kept = count;
  free(chosen);
  return found;
}

/* -- The program ---------------- */

static void usage(const char* why) {
  fprintf(stderr,
          "overlap: %s\nusage: overlap allreduce|bcast|scatter|allgather ALGORITHM|- BYTES [by=nic|cpu] [once=1] "
          "[polls=N] [samples=N] [compute=NS] [eager=BYTES]\n",
          why);
  exit(2);
}

static void read_options(int argc, char** argv) {
  if (argc < 4) usage("arguments are missing");
  while (wanted.what < OPERATIONS && strcmp(argv[1], names[wanted.what]) != 0) ++wanted.what;
  if (wanted.what == OPERATIONS) usage("no such operation");
  wanted.algorithm = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
  wanted.bytes = atol(argv[3]);
  for (int i = 4; i < argc; ++i) {
    const char* const value = strchr(argv[i], '=');
    const size_t length = value ? (size_t)(value - argv[i]) : 0;
    struct {
      const char* name;
      long* into;
    } const known[] = {{"samples", &wanted.samples},
                       {"polls", &wanted.polls},
                       {"compute", &wanted.compute_ns},
                       {"eager", &wanted.eager},
                       {"once", &wanted.once}};
    size_t k = 0;
    while (k < sizeof known / sizeof *known &&
           (length != strlen(known[k].name) || strncmp(argv[i], known[k].name, length) != 0)) {
      ++k;
    }
    if (k < sizeof known / sizeof *known) {
      *known[k].into = atol(value + 1);
    } else if (strcmp(argv[i], "by=cpu") == 0 || strcmp(argv[i], "by=nic") == 0) {
      wanted.by_cpu = argv[i][3] == 'c';
    } else {
      usage(argv[i]);
    }
  }
  if (wanted.bytes < 1 || wanted.samples < 1 || wanted.polls < 0) usage("BYTES and samples are 1 at least");
}

int main(int argc, char** argv) {
  is_simulated = getenv("SPINLOOM_SIZE") != NULL;
  carrier_begin(&argc, &argv);
  read_options(argc, argv);
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  given = calloc((size_t)given_bytes(), 1);
  got = calloc((size_t)got_bytes(), 1);
  for (int kind = 0; kind < KINDS; ++kind) {
    for (int number = 0; number < NUMBERS; ++number) {
      measured[kind][number] = calloc((size_t)wanted.samples, sizeof(int64_t));
    }
  }
  if (!is_simulated) calibrate();
  carrier_prepare();

  for (long sample = 0; sample < wanted.samples; ++sample) take_sample(COMMUNICATION, sample, 0);
  most_of_all(measured[COMMUNICATION][END], wanted.samples);
  most_of_all(measured[COMMUNICATION][LATE], wanted.samples);
  long kept[KINDS];
  int64_t ends[KINDS];
  ends[COMMUNICATION] =
      median_in_time(measured[COMMUNICATION][END], measured[COMMUNICATION][LATE], 0, 1, &kept[COMMUNICATION]);
  const int64_t compute_ns = wanted.compute_ns >= 0 ? wanted.compute_ns : ends[COMMUNICATION];
  for (long sample = 0; sample < wanted.samples; ++sample) {
    take_sample(COMPUTATION, sample, compute_ns);
    take_sample(BOTH, sample, compute_ns);
  }
  for (int kind = COMPUTATION; kind < KINDS; ++kind) {
    for (int number = 0; number < NUMBERS; ++number) most_of_all(measured[kind][number], wanted.samples);
    ends[kind] = median_in_time(measured[kind][END], measured[kind][LATE], 0, 2, &kept[kind]);
  }
  if (own_rank == 0) {
    const int64_t overhead = ends[BOTH] - ends[COMPUTATION];
    printf("ranks %d\n", ranks);
    printf("latency_ns %lld\nlatency_samples %ld\n", (long long)ends[COMMUNICATION], kept[COMMUNICATION]);
    printf("overhead_ns %lld\noverhead_samples %ld\n", (long long)overhead, kept[BOTH]);
    printf("overhead_percent %.2f\n", ends[COMMUNICATION] ? 100.0 * (double)overhead / (double)ends[COMMUNICATION] : 0);
    const int64_t* const late = measured[BOTH][LATE];
    printf("start_ns %lld\n", (long long)median_in_time(measured[BOTH][START], late, 0, 2, NULL));
    printf("rest_ns %lld\n", (long long)median_in_time(measured[BOTH][REST], late, 0, 2, NULL));
    printf("in_calls_ns %lld\n", (long long)median_in_time(measured[BOTH][PROCESSOR], late, 1, 2, NULL));
  }
  carrier_end();
  return 0;
}
