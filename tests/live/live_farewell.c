/* A rank leaves while another one has not taken what was sent to it. Two ranks; argv[1] is one of:
 *
 *   slow     the last message of rank 0 fills the NIC of rank 1, whose handlers need 12 s to take the rest
 *   stopped  rank 1 is stopped, and the channel to it is full: rank 0 waits a second, says what it cost, and leaves
 */
#include <portals4_spin.h>
#include <signal.h>

#include "live_common.h"

enum { LARGE = 8 << 20, SMALL = 800 };

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  const int slow = argc > 1 && strcmp(argv[1], "slow") == 0;
  begin();
  const ptl_handle_ct_t landed = counter();
  unsigned char* const memory = some_memory(LARGE);
  const ptl_handle_md_t md = bind(memory, LARGE, 0, PTL_EQ_NONE, PTL_CT_NONE);
  open_portal(PTL_EQ_NONE, 0);
  ptl_me_t entry = {.start = memory,
                    .length = LARGE,
                    .ct_handle = landed,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                    .match_id = {.rank = PTL_RANK_ANY}};
  ptl_handle_me_t handle;
  if (slow && my_rank == 1) {
    const ptl_spin_t handlers = {
        .image = "slow_handler", .payload_handler = "payload_handler", .hpu_memory = PTL_HPU_MEM_NONE};
    MUST(PtlSpinMEAppend(ni, 0, &entry, &handlers, PTL_PRIORITY_LIST, NULL, &handle));
  } else {
    MUST(PtlMEAppend(ni, 0, &entry, PTL_PRIORITY_LIST, NULL, &handle));
  }
  barrier();
  if (my_rank == 1) {
    if (!slow) {
      fflush(stdout);
      kill(getpid(), SIGSTOP);
    }
    WAIT_FOR(landed, 1);
    PtlFini();
    printf("rank 1: %d answers\n", answers);
    return wrong == 0 ? 0 : 1;
  }
  if (slow) {
    MUST(PtlPut(md, 0, LARGE, PTL_NO_ACK_REQ, rank_of(1), 0, 0, 0, NULL, 0));
  } else {
    wait_for_a_stopped_peer();
    for (unsigned i = 0; i < SMALL; ++i) {
      MUST(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_of(1), 0, 0, 0, NULL, 0));
    }
    wait_until_at_rest();
    const double before = processor_seconds();
    sleep_ms(1000);
    printf("used %.0f us\n", (processor_seconds() - before) * 1e6);
  }
  const double begun = now();
  PtlFini();
  printf("left after %.1f s\n", now() - begun);
  return 0;
}
