/* An engine is closed and opened again on the same portal table entry, again and again, while messages that nobody
 * takes are on their way: what belongs to an earlier engine never meets a later one. argv[1]: how often. */
#include <spinloom/offload.h>

#include "portals_common.h"

enum { MESSAGES = 9 }; /* more than half the window, so that credits are on their way at the end, too */

/* Rank 1 sends `value`; rank 0 takes it, or does not know of it. */
static void send_one(spl_team* all, int is_taken, uint64_t value) {
  spl_schedule* one;
  uint64_t in = 0;
  if (my_rank == 0 && !is_taken) return;
  MUST(spl_schedule_make(all, SPL_ONCE, &one));
  if (my_rank == 1) spl_send(one, &value, sizeof value, 0, 0);
  if (my_rank == 0) spl_receive(one, &in, sizeof in, 1, 0);
  MUST(spl_schedule_start(one));
  MUST(spl_schedule_wait(one));
  if (my_rank == 0) EXPECT(value, in);
  MUST(spl_schedule_free(one));
}

static void many(spl_team* all, uint64_t value) {
  spl_schedule* one;
  uint64_t in[MESSAGES] = {0}, out[MESSAGES];
  MUST(spl_schedule_make(all, SPL_CACHED, &one));
  for (int i = 0; i < MESSAGES; ++i) {
    out[i] = value + (uint64_t)i;
    spl_send(one, &out[i], sizeof out[i], 1 - my_rank, (unsigned)i);
    spl_receive(one, &in[i], sizeof in[i], 1 - my_rank, (unsigned)i);
  }
  for (int start = 0; start < 2; ++start) {
    MUST(spl_schedule_start(one));
    MUST(spl_schedule_wait(one));
  }
  for (int i = 0; i < MESSAGES; ++i) EXPECT(value + (uint64_t)i, in[i]);
  MUST(spl_schedule_free(one));
}

int main(int argc, char** argv) {
  const int generations = argc > 1 ? atoi(argv[1]) : 40;
  begin();
  for (int generation = 1; generation <= generations; ++generation) {
    const spl_oe_options options = {.portal = 20, .rendezvous = generation % 3 == 0 ? SPL_BY_SENDER : SPL_BY_RECEIVER};
    spl_oe* oe;
    spl_team* all;
    MUST(spl_oe_open(ni, &options, &oe));
    MUST(spl_team_make(oe, 1, NULL, 0, &all));
    if (generation % 2 == 0) many(all, 1000 * (uint64_t)generation);
    send_one(all, generation % 2 == 0, (uint64_t)generation);
    /* One rank closes late, another one each time, so that the next engines meet old ones that are still open. */
    if ((unsigned)generation % 5 == my_rank) usleep(200);
    const int closed = spl_oe_close(oe);
    EXPECT(PTL_OK, closed);
    if (closed != PTL_OK) {
      printf("rank %u, engine %d: %s\n", my_rank, generation, spl_oe_error(oe));
      break;
    }
  }
  return end();
}
