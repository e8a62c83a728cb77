/* The ways in which a rank may leave, and children that are no ranks. argv[1] is one of:
 *
 *   returns  the last rank returns from main without PtlFini; the others hear of it as of its death
 *   last     the last rank puts, calls PtlFini and returns: what it sent has arrived
 *   _exit    the same, but the rank ends by _exit
 *   forks    each rank has a child, which is no rank: PtlInit fails there, and other calls return PTL_NO_INIT
 */
#include <signal.h>
#include <sys/wait.h>

#include "live_common.h"

enum { WORDS = 300 };

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "returns";
  signal(SIGUSR1, SIG_IGN); /* Hydra's way to tell that one has left */
  begin();
  const unsigned leaver = ranks - 1;
  const ptl_handle_ct_t landed = counter();
  uint64_t* const in = some_memory(WORDS * sizeof *in);
  uint64_t out[WORDS];
  ptl_handle_eq_t eq;
  MUST(PtlEQAlloc(ni, 256, &eq));
  open_portal(PTL_EQ_NONE, 0);
  append_to(0, in, WORDS * sizeof *in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, landed, 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(out, sizeof out, 0, PTL_EQ_NONE, PTL_CT_NONE);
  const ptl_handle_md_t told_md = bind(out, sizeof out, 0, eq, PTL_CT_NONE);
  for (unsigned i = 0; i < WORDS; ++i) out[i] = word_of(my_rank, i);
  barrier();

  if (strcmp(what, "forks") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      ptl_ct_event_t count;
      int bad = PtlInit() == PTL_OK;
      bad += PtlCTGet(landed, &count) != PTL_NO_INIT;
      bad += PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_of(0), 0, 0, 0, NULL, 0) != PTL_NO_INIT;
      PtlFini();
      exit(bad == 0 ? 7 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(1, WIFEXITED(status));
    EXPECT(7, WEXITSTATUS(status));
    MUST(PtlPut(md, 0, sizeof out, PTL_NO_ACK_REQ, rank_of((my_rank + 1) % ranks), 0, 0, 0, NULL, 0));
    WAIT_FOR(landed, 1);
    const unsigned from = (my_rank + ranks - 1) % ranks;
    for (unsigned i = 0; i < WORDS; ++i) EXPECT(word_of(from, i), in[i]);
    return end();
  }

  if (my_rank == leaver) {
    if (strcmp(what, "returns") == 0) return 0;
    for (unsigned i = 0; i < WORDS; ++i) {
      MUST(PtlPut(md, i * 8, 8, PTL_NO_ACK_REQ, rank_of(0), 0, 0, i * 8, NULL, 0));
    }
    PtlFini();
    if (strcmp(what, "_exit") == 0) _exit(0);
    return 0;
  }
  if (my_rank == 0 && strcmp(what, "returns") != 0) {
    WAIT_FOR(landed, WORDS);
    for (unsigned i = 0; i < WORDS; ++i) EXPECT(word_of(leaver, i), in[i]);
  }
  ptl_event_t event;
  do { /* this ends when it is heard that the other has left */
    MUST(PtlPut(told_md, 0, 8, PTL_ACK_REQ, rank_of(leaver), 0, 0, 0, NULL, 0));
    MUST(PtlEQWait(eq, &event));
    if (event.ni_fail_type == PTL_NI_OK) MUST(PtlEQWait(eq, &event));
    sleep_ms(1);
  } while (event.ni_fail_type != PTL_NI_UNDELIVERABLE);
  printf("rank %u: %d answers\n", my_rank, answers);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
