/* Waiting costs no processor time: ranks above 0 wait for argv[1] ms in PtlCTWait, rank 0 neither computes nor
 * calls. Prints the processor time that each rank used meanwhile, in microseconds. */
#include "live_common.h"

int main(int argc, char** argv) {
  const unsigned ms = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 2000;
  begin();
  const ptl_handle_ct_t woken = counter();
  open_portal(PTL_EQ_NONE, 0);
  append_to(0, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, woken, 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
  barrier();
  wait_until_at_rest(); /* the barrier's remaining work is done */
  const double before = processor_seconds();
  if (my_rank == 0) {
    sleep_ms(ms);
  } else {
    WAIT_FOR(woken, 1);
  }
  printf("rank %u used %.0f us\n", my_rank, (processor_seconds() - before) * 1e6);
  if (my_rank == 0) {
    for (unsigned to = 1; to < ranks; ++to) {
      MUST(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, rank_of(to), 0, 0, 0, NULL, 0));
    }
  }
  return end();
}
