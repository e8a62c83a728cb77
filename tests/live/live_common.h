/* Shared by the programs for real processes, beside tests/portals/portals_common.h: bytes that identify their message,
 * counters, descriptors and entries.
 *
 * Contract: byte i of the message `key` is letter(key, i); CHECK_BYTES() compares all. begin() of portals_common.h
 * comes first, end() last. Threads: fill() and difference() any. Time: real; nothing here relies on speed.
 */
#ifndef SPINLOOM_TESTS_LIVE_COMMON_H
#define SPINLOOM_TESTS_LIVE_COMMON_H

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../portals/portals_common.h"

static uint64_t word_of(uint64_t key, uint64_t index) {
  uint64_t z = key * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u + 1;
  z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static unsigned char letter(uint64_t key, uint64_t i) { return (unsigned char)(word_of(key, i / 8) >> (8 * (i % 8))); }

static inline void fill(unsigned char* at, uint64_t key, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) at[i] = letter(key, i);
}

/* The first byte that is another one, or -1. */
static inline long long difference(const unsigned char* at, uint64_t key, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (at[i] != letter(key, i)) return (long long)i;
  }
  return -1;
}

static inline void check_bytes(int line, const unsigned char* at, uint64_t key, uint64_t bytes) {
  expect(line, "the first wrong byte", (unsigned long long)-1, (unsigned long long)difference(at, key, bytes));
}
#define CHECK_BYTES(at, key, bytes) check_bytes(__LINE__, at, key, bytes)

static inline void* some_memory(uint64_t bytes) {
  void* memory = calloc(1, bytes == 0 ? 1 : bytes);
  if (memory == NULL) exit(3);
  return memory;
}

static inline ptl_handle_ct_t counter(void) {
  ptl_handle_ct_t made;
  MUST(PtlCTAlloc(ni, &made));
  return made;
}

/* Waits until the counter has `successes` successes, and expects no failure. */
static inline void wait_for(int line, ptl_handle_ct_t ct, uint64_t successes) {
  ptl_ct_event_t count = {0, 0};
  must(line, PtlCTWait(ct, successes, &count));
  expect(line, "failures of a counter", 0, count.failure);
}
#define WAIT_FOR(ct, successes) wait_for(__LINE__, ct, successes)

static inline ptl_handle_md_t bind(void* start, uint64_t length, unsigned options, ptl_handle_eq_t eq,
                                   ptl_handle_ct_t ct) {
  ptl_md_t what = {.start = start, .length = length, .options = options, .eq_handle = eq, .ct_handle = ct};
  ptl_handle_md_t made;
  MUST(PtlMDBind(ni, &what, &made));
  return made;
}

static inline ptl_handle_me_t append_to(ptl_pt_index_t pt, void* start, uint64_t length, unsigned options,
                                        ptl_handle_ct_t ct, ptl_match_bits_t bits, ptl_list_t list) {
  ptl_me_t me = {.start = start,
                 .length = length,
                 .ct_handle = ct,
                 .uid = PTL_UID_ANY,
                 .options = options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  ptl_handle_me_t made;
  MUST(PtlMEAppend(ni, pt, &me, list, NULL, &made));
  return made;
}

static inline void open_portal(ptl_handle_eq_t eq, ptl_pt_index_t want) {
  ptl_pt_index_t pt;
  MUST(PtlPTAlloc(ni, 0, eq, want, &pt));
}

/* Processor time of this process, all threads. */
static inline double processor_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static inline void sleep_ms(unsigned ms) {
  struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

/* A time limit, longer by the factor SPINLOOM_TEST_PATIENCE where there is one. */
static inline unsigned patient_ms(unsigned limit) {
  const char* const factor = getenv("SPINLOOM_TEST_PATIENCE");
  return factor == NULL || *factor == 0 ? limit : (unsigned)(limit * strtod(factor, NULL));
}

/* True if a process of this program is stopped by a signal. */
static inline int somebody_is_stopped(void) {
  char ours[PATH_MAX], path[300], theirs[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", ours, sizeof ours);
  DIR* const processes = opendir("/proc");
  int found = 0;
  if (length < 0 || processes == NULL) exit(3);
  for (struct dirent* each; !found && (each = readdir(processes)) != NULL;) {
    if (each->d_name[0] < '0' || each->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "/proc/%s/exe", each->d_name);
    if (readlink(path, theirs, sizeof theirs) != length || memcmp(ours, theirs, (size_t)length) != 0) continue;
    snprintf(path, sizeof path, "/proc/%s/stat", each->d_name);
    FILE* const stat = fopen(path, "r");
    char state = 0;
    found = stat != NULL && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1 && state == 'T';
    if (stat != NULL) fclose(stat);
  }
  closedir(processes);
  return found;
}

/* A peer that stops itself has stopped: before, its helper thread would still take messages. */
static inline void wait_for_a_stopped_peer(void) {
  while (!somebody_is_stopped()) sleep_ms(1);
}

/* The threads of this process rest: what they did before does not count as time that waiting takes. */
static inline void wait_until_at_rest(void) {
  for (unsigned ms = 0; ms < patient_ms(30000); ms += 20) {
    const double before = processor_seconds();
    sleep_ms(20);
    if (processor_seconds() - before < 0.0005) return;
  }
}

/* Each rank puts one number to the next, and expects that of the one before it. */
static inline void ring_of_puts(void) {
  static uint64_t in, out;
  const ptl_handle_ct_t landed = counter(), acked = counter();
  open_portal(PTL_EQ_NONE, 3);
  append_to(3, &in, sizeof in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, landed, 5, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(&out, sizeof out, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  out = 1000 + my_rank;
  barrier();
  MUST(PtlPut(md, 0, sizeof out, PTL_CT_ACK_REQ, rank_of((my_rank + 1) % ranks), 3, 5, 0, NULL, 0));
  WAIT_FOR(landed, 1);
  WAIT_FOR(acked, 1);
  EXPECT(1000 + (my_rank + ranks - 1) % ranks, in);
}

#endif
