/* Ranks that do not go on, each in its own way, until they are killed; the last one leaves. With "init" rank 1 never
 * calls PtlInit; with "open" all end at once and close nothing. */
#include "live_common.h"

int main(int argc, char** argv) {
  ptl_handle_eq_t eq;
  ptl_ct_event_t count;
  ptl_event_t event;
  unsigned which;
  if (argc > 1 && strcmp(argv[1], "init") == 0 && strcmp(getenv("PMI_RANK"), "1") == 0) {
    for (;;) pause();
  }
  begin();
  const ptl_handle_ct_t cts[2] = {counter(), counter()};
  const ptl_size_t tests[2] = {3, 7};
  MUST(PtlEQAlloc(ni, 8, &eq));
  MUST(PtlCTInc(cts[0], (ptl_ct_event_t){2, 0}));
  barrier();
  if (argc > 1 && strcmp(argv[1], "open") == 0) return 0;
  switch (my_rank) {
    case 0: PtlCTWait(cts[0], 3, &count); break;
    case 1: PtlEQWait(eq, &event); break;
    case 2: PtlCTPoll(cts, tests, 2, PTL_TIME_FOREVER, &count, &which); break;
    case 3:
      for (;;) pause();
    case 4:
      for (;;) MUST(PtlCTGet(cts[0], &count));
    default: break;
  }
  PtlNIFini(ni);
  PtlFini();
  printf("rank %u has left\n", my_rank);
  fflush(stdout);
  return 0;
}
