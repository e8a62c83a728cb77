/* Ranks that meet at their first contact: some come late, have left already, or never come.
 *
 * live_meet WHAT FOLDER; the ranks tell each other by files in FOLDER how far they are. What is:
 *
 *   init    rank 0 calls PtlInit after rank 1 has returned from it
 *   late    rank 1 comes when rank 0 has sent to it; then messages go both ways
 *   absent  the last rank ends without PtlInit when rank 0 has called it, and what is sent to it fails after
 *           SPINLOOM_START_S
 *   idle    the last rank never calls PtlInit, and nobody sends to it
 *   left    rank 1 has left when rank 0 comes, and lives: what is sent to it fails at once
 *   failed  PtlInit of rank 1 fails, and it lives: what is sent to it fails at once
 */
#include "live_common.h"

static const char* folder;

static const char* path_of(const char* name) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}
static void mark(const char* name) { fclose(fopen(path_of(name), "w")); }
static void wait_for_mark(const char* name) {
  while (access(path_of(name), F_OK) != 0) sleep_ms(5);
}

static unsigned number_in(const char* first, const char* second) {
  const char* const value = getenv(first) != NULL ? getenv(first) : getenv(second);
  if (value == NULL) exit(3);
  return (unsigned)atoi(value);
}

static ptl_handle_eq_t events;
static ptl_handle_md_t md;

/* An interface, and nothing that needs a peer. */
static void open_alone(void) {
  MUST(PtlInit());
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  MUST(PtlEQAlloc(ni, 64, &events));
  static uint64_t bytes[512];
  md = bind(bytes, sizeof bytes, 0, events, PTL_CT_NONE);
}

/* Puts to the rank and returns the failure type of the first event that is not a successful SEND. */
static ptl_ni_fail_t put_to(unsigned rank, ptl_size_t length) {
  ptl_event_t event;
  MUST(PtlPut(md, 0, length, PTL_ACK_REQ, rank_of(rank), 3, 5, 0, NULL, 0));
  do MUST(PtlEQWait(events, &event));
  while (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK);
  return event.ni_fail_type;
}

static int close_alone(void) {
  const double begun = (double)time(NULL);
  PtlNIFini(ni);
  PtlFini();
  EXPECT(1, (double)time(NULL) - begun < patient_ms(4000) / 1000.0);
  printf("rank %u: %d answers\n", my_rank, answers);
  return wrong == 0 ? 0 : 1;
}

static void both_ways(void) {
  enum { LONG = 300001 };
  unsigned char* const out = some_memory(LONG);
  unsigned char* const in = some_memory(LONG);
  const unsigned next = (my_rank + 1) % ranks, before = (my_rank + ranks - 1) % ranks;
  const ptl_handle_ct_t landed = counter(), acked = counter();
  open_portal(PTL_EQ_NONE, 4);
  append_to(4, in, LONG, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, landed, 9, PTL_PRIORITY_LIST);
  fill(out, my_rank, LONG);
  const ptl_handle_md_t all = bind(out, LONG, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  barrier();
  MUST(PtlPut(all, 0, LONG, PTL_CT_ACK_REQ, rank_of(next), 4, 9, 0, NULL, 0));
  WAIT_FOR(landed, 1);
  WAIT_FOR(acked, 1);
  CHECK_BYTES(in, before, LONG);
}

int main(int argc, char** argv) {
  if (argc < 3) return 3;
  const char* const what = argv[1];
  folder = argv[2];
  my_rank = number_in("PMI_RANK", "PMIX_RANK");
  const unsigned size = number_in("PMI_SIZE", "OMPI_COMM_WORLD_SIZE");
  const int last = my_rank == size - 1;
  setvbuf(stdout, NULL, _IOLBF, 0);

  if (strcmp(what, "init") == 0) {
    if (my_rank == 0) wait_for_mark("one");
    open_alone();
    if (my_rank == 1) mark("one");
    return close_alone();
  }
  if (strcmp(what, "late") == 0) {
    if (my_rank == 1) wait_for_mark("sent");
    if (my_rank == 0) {
      open_alone();
      for (int i = 0; i < 3; ++i) MUST(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_of(1), 3, 5, 0, NULL, 0));
      MUST(PtlPut(md, 0, 4096, PTL_ACK_REQ, rank_of(1), 3, 5, 0, NULL, 0));
      mark("sent");
    }
    begin();
    ring_of_puts();
    both_ways();
    return end();
  }
  if (strcmp(what, "absent") == 0 || strcmp(what, "idle") == 0) {
    if (last) {
      if (strcmp(what, "absent") == 0) wait_for_mark("came");
      return 0;
    }
    open_alone();
    if (strcmp(what, "absent") == 0) {
      if (my_rank == 0) mark("came");
      EXPECT(PTL_NI_UNDELIVERABLE, put_to(size - 1, 8));
      EXPECT(PTL_NI_UNDELIVERABLE, put_to(size - 1, 4096));
    }
    return close_alone();
  }
  if (strcmp(what, "left") == 0 || strcmp(what, "failed") == 0) {
    if (my_rank == 1) {
      if (strcmp(what, "left") == 0) {
        open_alone();
        PtlNIFini(ni);
        PtlFini();
      } else {
        setenv("SPINLOOM_TRACE", "/dev/null/trace", 1);
        EXPECT(PTL_FAIL, PtlInit());
      }
      mark("gone");
      wait_for_mark("done");
      printf("rank %u: %d answers\n", my_rank, answers);
      return wrong == 0 ? 0 : 1;
    }
    wait_for_mark("gone");
    open_alone();
    EXPECT(PTL_NI_UNDELIVERABLE, put_to(1, 8));
    mark("done");
    return close_alone();
  }
  return 3;
}
