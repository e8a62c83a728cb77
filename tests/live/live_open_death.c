/* Engines are opened together, and one rank never opens its own: argv[1] is `killed` (by SIGKILL), or `leaves` (it ends
 * well). The others get an error, may ask again, and hear the same. With five ranks not everybody talks to that
 * rank. */
#include <signal.h>
#include <spinloom/offload.h>

#include "live_common.h"

int main(int argc, char** argv) {
  const int is_killed = argc > 1 && strcmp(argv[1], "killed") == 0;
  signal(SIGUSR1, SIG_IGN);
  begin();
  const unsigned missing = ranks - 1;
  const spl_oe_options options = {.portal = 20};
  spl_oe* oe;
  barrier();
  if (my_rank == missing) {
    /* The moment varies: the others wait for this rank already, or do not yet. Both must end in the same error. */
    usleep(5000 + (unsigned)getpid() % 5000);
    if (is_killed) kill(getpid(), SIGKILL);
    PtlNIFini(ni);
    PtlFini();
    return 0;
  }
  for (int time = 0; time < 2; ++time) {
    EXPECT(PTL_FAIL, spl_oe_open(ni, &options, &oe));
    /* The error of a rank that asks late may name another rank, which has left after its own error. */
    EXPECT(1, strstr(spl_oe_error(NULL), " is gone, and all ranks open their engines together") != NULL);
  }
  printf("rank %u: %d answers\n", my_rank, answers - wrong);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
