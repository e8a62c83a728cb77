/* One rank dies by SIGKILL while schedules are under way. Who exchanges messages with it gets an error from
 * spl_schedule_wait(), frees what it has, and goes on with the others. argv[1] says what the others do:
 *
 *   waits    receive from it, and send on what has come
 *   large    receive a message that goes when both ends are ready
 *   sends    send to it, again and again
 *   blocks   all-to-alls among all
 *   chain    the first receives from the second, and only that one from the rank that dies
 */
#include <signal.h>
#include <spinloom/offload.h>

#include "live_common.h"

enum { LARGE = 1 << 20 };

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "waits";
  signal(SIGUSR1, SIG_IGN);
  begin();
  const unsigned victim = ranks - 1;
  const int large = strcmp(what, "large") == 0, sends = strcmp(what, "sends") == 0;
  const unsigned from = strcmp(what, "chain") == 0 ? my_rank + 1 : victim;
  const spl_oe_options options = {.portal = 20};
  unsigned char* const in = some_memory(LARGE);
  unsigned char* const out = some_memory(LARGE);
  unsigned char passed[8] = {0};
  spl_oe* oe;
  spl_team *all, *rest;
  spl_schedule *one, *after;
  ptl_rank_t living[64];
  MUST(spl_oe_open(ni, &options, &oe));
  MUST(spl_team_make(oe, 1, NULL, 0, &all));
  barrier();
  if (my_rank == victim) {
    /* The others are in their loops by then, or come to them later: they get the same answers. */
    usleep(20000 + (unsigned)getpid() % 5000);
    kill(getpid(), SIGKILL);
  }
  if (strcmp(what, "blocks") == 0) {
    spl_call call = {.operation = SPL_ALLTOALL, .send = out, .receive = in, .bytes = 64, .algorithm = "linear"};
    MUST(spl_collective(all, &call, SPL_CACHED, &one));
  } else {
    MUST(spl_schedule_make(all, SPL_CACHED, &one));
    if (sends) spl_send(one, out, 64, victim, 0);
    if (!sends) {
      const spl_op came = spl_receive(one, in, large ? LARGE : 8, from, 0);
      const spl_op next = spl_send(one, in, 8, (my_rank + 1) % victim, 1);
      MUST(spl_after(one, came, next));
    }
  }
  int code = PTL_OK;
  while (code == PTL_OK) {
    code = spl_schedule_start(one);
    if (code == PTL_OK) code = spl_schedule_wait(one);
  }
  EXPECT(PTL_FAIL, code);
  EXPECT(1, strstr(spl_oe_error(oe), "a peer is gone") != NULL);
  EXPECT(PTL_FAIL, spl_schedule_wait(one));
  EXPECT(PTL_OK, spl_schedule_free(one));
  /* The others go on. */
  for (unsigned rank = 0; rank < victim; ++rank) living[rank] = rank;
  MUST(spl_team_make(oe, 2, living, victim, &rest));
  MUST(spl_schedule_make(rest, SPL_ONCE, &after));
  passed[0] = (unsigned char)(my_rank + 1);
  spl_send(after, passed, 1, (my_rank + 1) % victim, 0);
  spl_receive(after, passed + 1, 1, (my_rank + victim - 1) % victim, 0);
  MUST(spl_schedule_start(after));
  MUST(spl_schedule_wait(after));
  EXPECT((my_rank + victim - 1) % victim + 1, passed[1]);
  EXPECT(PTL_OK, spl_oe_close(oe));
  printf("rank %u: %d answers\n", my_rank, answers - wrong);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
