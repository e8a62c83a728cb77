/* A rank has left and lives on, and other ranks meet it only then: their operations towards it must fail soon.
 * argv[1]: a file that the rank makes when it has left. */
#include "live_common.h"

int main(int argc, char** argv) {
  const char* const mark = argc > 1 ? argv[1] : "late.mark";
  ptl_process_t me;
  ptl_size_t size;
  MUST(PtlInit());
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits, &ni));
  MUST(PtlGetId(ni, &me));
  MUST(PtlGetMap(ni, 0, NULL, &size));
  my_rank = me.rank;
  ranks = (unsigned)size;
  if (my_rank == ranks - 1) {
    PtlNIFini(ni);
    PtlFini();
    FILE* const made = fopen(mark, "w");
    if (made == NULL || fclose(made) != 0) return 3;
    sleep_ms(4000);
    return 0;
  }
  while (access(mark, F_OK) != 0) sleep_ms(5);
  ptl_handle_eq_t eq;
  MUST(PtlEQAlloc(ni, 64, &eq));
  uint64_t word = 7;
  const ptl_handle_md_t md = bind(&word, sizeof word, 0, eq, PTL_CT_NONE);
  for (int again = 0; again < 2; ++again) {
    MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(ranks - 1), 0, 0, 0, NULL, 0));
    ptl_event_t event;
    unsigned which;
    do { /* its SEND may be good, the last event is not */
      MUST(PtlEQPoll(&eq, 1, 1000, &event, &which));
    } while (event.ni_fail_type == PTL_NI_OK);
    EXPECT(PTL_NI_UNDELIVERABLE, event.ni_fail_type);
  }
  printf("rank %u: %d answers\n", my_rank, answers);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
