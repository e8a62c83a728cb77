/* One rank dies by SIGKILL in the middle of something. The others hear of it by the events of their operations, and
 * go on among themselves. argv[1] says what they do when it dies:
 *
 *   puts    small puts to the rank that dies
 *   large   puts of 4 MiB to it
 *   gets    gets of 4 MiB from it
 *   serves  it gets 4 MiB from the others and puts as much to them
 *   full    it was stopped before, and the channels to it are full
 *   waits   the others only wait for a message from it
 */
#include <signal.h>

#include "live_common.h"

enum { PT_TARGET, PT_END, PT_SERVED };
enum { LARGE = 4 << 20 };

static unsigned victim;

/* A barrier of those that live. */
static void others(ptl_handle_ct_t arrived, ptl_handle_md_t md, uint64_t* expected) {
  for (unsigned to = 0; to < ranks; ++to) {
    if (to != victim) MUST(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, rank_of(to), PT_END, 0, 0, NULL, 0));
  }
  *expected += ranks - 1;
  WAIT_FOR(arrived, *expected);
}

static void die_soon(void) {
  unsigned us = 3000 + (unsigned)getpid() % 5000;
  usleep(us);
  kill(getpid(), SIGKILL);
}

/* Events of one operation until its last; how it ended. SEND comes first, and is the last where it failed. */
static int fate(ptl_handle_eq_t eq) {
  for (;;) {
    ptl_event_t event;
    unsigned which;
    if (PtlEQPoll(&eq, 1, patient_ms(30000), &event, &which) != PTL_OK) return -1;
    if (event.type == PTL_EVENT_SEND && event.ni_fail_type == PTL_NI_OK) continue;
    return event.ni_fail_type;
  }
}

/* Rules: P4F-11.22. */
int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "puts";
  signal(SIGUSR1, SIG_IGN); /* Hydra's way to tell the others */
  begin();
  victim = ranks - 1;
  ptl_handle_eq_t eq;
  MUST(PtlEQAlloc(ni, 20000, &eq));
  open_portal(PTL_EQ_NONE, PT_TARGET);
  open_portal(PTL_EQ_NONE, PT_END);
  open_portal(PTL_EQ_NONE, PT_SERVED);
  const ptl_handle_ct_t arrived = counter(), news = counter();
  unsigned char* const in = some_memory(LARGE);
  unsigned char* const out = some_memory(LARGE);
  append_to(PT_TARGET, in, LARGE, PTL_ME_OP_PUT | PTL_ME_OP_GET, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  append_to(PT_END, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, arrived, 0, PTL_PRIORITY_LIST);
  append_to(PT_SERVED, in, LARGE, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM, news, 0, PTL_PRIORITY_LIST);
  unsigned char* const back = some_memory(LARGE);
  const ptl_handle_md_t md = bind(out, LARGE, 0, eq, PTL_CT_NONE);
  const ptl_handle_md_t get_md = bind(back, LARGE, 0, eq, PTL_CT_NONE);
  const ptl_handle_md_t quiet_md = bind(NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
  const ptl_process_t it = rank_of(victim);
  fill(out, 9, LARGE);
  uint64_t ends = 0;
  barrier();

  if (my_rank == victim) {
    printf("rank %u is %d\n", my_rank, (int)getpid());
    fflush(stdout);
    if (strcmp(what, "full") == 0) kill(getpid(), SIGSTOP);
    if (strcmp(what, "serves") == 0) {
      const ptl_handle_md_t all = bind(out, LARGE, 0, PTL_EQ_NONE, PTL_CT_NONE);
      const ptl_handle_md_t all_back = bind(back, LARGE, 0, PTL_EQ_NONE, PTL_CT_NONE);
      for (unsigned i = 0;; ++i) {
        for (unsigned to = 0; to + 1 < ranks; ++to) {
          MUST(PtlPut(all, 0, LARGE, PTL_NO_ACK_REQ, rank_of(to), PT_SERVED, 0, 0, NULL, 0));
          MUST(PtlGet(all_back, 0, LARGE, rank_of(to), PT_SERVED, 0, 0, NULL));
        }
        if (i == 3) die_soon();
      }
    }
    die_soon();
  }

  int code = PTL_NI_OK;
  unsigned completed = 0;
  if (strcmp(what, "puts") == 0 || strcmp(what, "large") == 0) {
    const uint64_t length = strcmp(what, "puts") == 0 ? 64 : LARGE;
    while (code == PTL_NI_OK) {
      MUST(PtlPut(md, 0, length, PTL_ACK_REQ, it, PT_TARGET, 0, 0, NULL, 0));
      code = fate(eq);
      completed += code == PTL_NI_OK;
    }
    EXPECT(PTL_NI_UNDELIVERABLE, code);
  } else if (strcmp(what, "gets") == 0) {
    while (code == PTL_NI_OK) {
      MUST(PtlGet(get_md, 0, LARGE, it, PT_TARGET, 0, 0, NULL));
      code = fate(eq);
      completed += code == PTL_NI_OK;
    }
    EXPECT(PTL_NI_UNDELIVERABLE, code);
  } else if (strcmp(what, "full") == 0) {
    enum { MANY = 2500 };
    unsigned lost = 0, fine = 0;
    wait_for_a_stopped_peer();
    for (unsigned i = 0; i < MANY; ++i) {
      MUST(PtlPut(md, 0, i % 3 == 0 ? 5000 : 8, PTL_ACK_REQ, it, PT_TARGET, 0, 0, NULL, 0));
    }
    for (unsigned i = 0; i < 3; ++i) MUST(PtlPut(md, 0, LARGE, PTL_ACK_REQ, it, PT_TARGET, 0, 0, NULL, 0));
    MUST(PtlGet(get_md, 0, LARGE, it, PT_TARGET, 0, 0, NULL));
    printf("rank %u has filled them\n", my_rank); /* the one that started us kills it now */
    fflush(stdout);
    for (unsigned i = 0; i < MANY + 4; ++i) {
      code = fate(eq);
      lost += code == PTL_NI_UNDELIVERABLE;
      fine += code == PTL_NI_OK;
      if (code < 0) break;
    }
    EXPECT(MANY + 4, lost + fine);
    EXPECT(1, lost > 0);
  } else if (strcmp(what, "serves") == 0 || strcmp(what, "waits") == 0) {
    /* It ends by itself; then a put to it says so. */
    while (code == PTL_NI_OK) {
      sleep_ms(1);
      MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, it, PT_TARGET, 0, 0, NULL, 0));
      code = fate(eq);
    }
    EXPECT(PTL_NI_UNDELIVERABLE, code);
  } else {
    return 2;
  }

  /* From now on everything to it fails at once. */
  for (unsigned i = 0; i < 100; ++i) {
    MUST(PtlPut(md, 0, i * 1000, PTL_ACK_REQ, it, PT_TARGET, 0, 0, NULL, 0));
    EXPECT(PTL_NI_UNDELIVERABLE, fate(eq));
    MUST(PtlGet(get_md, 0, i * 1000, it, PT_TARGET, 0, 0, NULL));
    EXPECT(PTL_NI_UNDELIVERABLE, fate(eq));
  }
  const ptl_handle_ct_t failed = counter();
  const ptl_handle_md_t counted = bind(out, LARGE, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, failed);
  ptl_ct_event_t count;
  MUST(PtlPut(counted, 0, LARGE, PTL_CT_ACK_REQ, it, PT_TARGET, 0, 0, NULL, 0));
  MUST(PtlCTWait(failed, 1, &count));
  EXPECT(1, count.failure);
  EXPECT(0, count.success);

  /* The others still reach each other. */
  others(arrived, quiet_md, &ends);
  for (unsigned i = 0; i < 20; ++i) {
    for (unsigned to = 0; to < ranks; ++to) {
      if (to == victim) continue;
      MUST(PtlPut(md, 0, LARGE, PTL_ACK_REQ, rank_of(to), PT_TARGET, 0, 0, NULL, 0));
      EXPECT(PTL_NI_OK, fate(eq));
    }
  }
  others(arrived, quiet_md, &ends);
  CHECK_BYTES(in, 9, LARGE);
  others(arrived, quiet_md, &ends);
  printf("rank %u: %d answers, %u before its end\n", my_rank, answers, completed);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
