/* The examples share checked calls, numbers of the command line, a clock, how many ranks there are, and a way to know
 * that another rank is ready.
 *
 * Ranks run at their own speed. Who puts before the other has made its entry is told so by the acknowledgement; so a
 * rank that is ready says so by an entry of no bytes, the last one that it makes, and others knock until it answers. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    const int code = (call);                                                   \
    if (code != PTL_OK) {                                                      \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, code); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { ready_bits = 0x7ead, between_knocks_ns = 10000, bytes_max = 1 << 30 };

/* Returns the number that is the program's word `place`, or `usual` without that word. Ends the program if the word is
 * no number from `least` to `most`. */
static inline unsigned long long number_of(int argc, char** argv, int place, const char* name, unsigned long long least,
                                           unsigned long long most, unsigned long long usual) {
  if (place >= argc) return usual;
  char* end = argv[place];
  const unsigned long long number = *end >= '0' && *end <= '9' ? strtoull(argv[place], &end, 10) : 0;
  if (end != argv[place] && *end == 0 && number >= least && number <= most) return number;
  fprintf(stderr, "%s is '%s', not a number from %llu to %llu\n", name, argv[place], least, most);
  exit(1);
}

static inline long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Ends the program if the job has another number of ranks than it needs. */
static inline void need_ranks(ptl_handle_ni_t ni, unsigned needed) {
  ptl_process_t me;
  ptl_size_t ranks;
  CHECK(PtlGetId(ni, &me));
  CHECK(PtlGetMap(ni, 0, NULL, &ranks));
  if (ranks == needed) return;
  if (me.rank == 0) fprintf(stderr, "this program is for %u ranks, not %u: -n %u\n", needed, (unsigned)ranks, needed);
  exit(1);
}

/* From now on others find this rank ready; `knocks` counts them, or is PTL_CT_NONE. */
static inline void say_ready(ptl_handle_ni_t ni, ptl_pt_index_t portal, ptl_handle_ct_t knocks) {
  const ptl_me_t door = {
      .ct_handle = knocks,
      .uid = PTL_UID_ANY,
      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE,
      .match_id = {.rank = PTL_RANK_ANY},
      .match_bits = ready_bits};
  ptl_handle_me_t entry;
  CHECK(PtlMEAppend(ni, portal, &door, PTL_PRIORITY_LIST, NULL, &entry));
}

/* Puts until the acknowledgement says that there was an entry. */
static inline void put_until_taken(ptl_handle_ni_t ni, void* start, ptl_size_t length, ptl_process_t to,
                                   ptl_pt_index_t portal, ptl_match_bits_t bits) {
  ptl_handle_ct_t acked;
  ptl_handle_md_t md;
  ptl_ct_event_t count;
  CHECK(PtlCTAlloc(ni, &acked));
  const ptl_md_t what = {
      .start = start, .length = length, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = acked};
  CHECK(PtlMDBind(ni, &what, &md));
  for (;;) {
    CHECK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, to, portal, bits, 0, NULL, 0));
    CHECK(PtlCTWait(acked, 1, &count));
    if (count.success != 0) break;
    CHECK(PtlCTSet(acked, (ptl_ct_event_t){0, 0}));
    nanosleep(&(struct timespec){0, between_knocks_ns}, NULL);
  }
  CHECK(PtlMDRelease(md));
  CHECK(PtlCTFree(acked));
}

static inline void wait_until_ready(ptl_handle_ni_t ni, ptl_pt_index_t portal, ptl_rank_t rank) {
  put_until_taken(ni, NULL, 0, (ptl_process_t){.rank = rank}, portal, ready_bits);
}

#endif
