/* All ranks but rank 0 put to rank 0 at once, as fast as they can. argv[1]: messages of each rank; argv[2]: bytes of a
 * message. All bytes of the last messages are compared. Rank 0 says how many bytes a second came, the others how long
 * they took. */
#include "live_common.h"

enum { PT_IN, WINDOW = 16 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  const unsigned messages = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 200;
  const uint64_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : 65536;
  begin();
  const ptl_handle_ct_t landed = counter(), sent = counter();
  open_portal(PTL_EQ_NONE, PT_IN);
  unsigned char* const in = some_memory(bytes * ranks);
  unsigned char* const out = some_memory(bytes);
  fill(out, my_rank, bytes);
  for (unsigned from = 1; my_rank == 0 && from < ranks; ++from) {
    append_to(PT_IN, in + bytes * from, bytes, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, landed, from, PTL_PRIORITY_LIST);
  }
  const ptl_handle_md_t md = bind(out, bytes, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, sent);
  barrier();
  const double begun = seconds();
  if (my_rank == 0) {
    WAIT_FOR(landed, (uint64_t)messages * (ranks - 1));
    const double took = seconds() - begun;
    for (unsigned from = 1; from < ranks; ++from) CHECK_BYTES(in + bytes * from, from, bytes);
    printf("%.3g GB/s from %u ranks\n", (double)messages * (ranks - 1) * (double)bytes / took * 1e-9, ranks - 1);
  } else {
    for (unsigned i = 1; i <= messages; ++i) {
      MUST(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, rank_of(0), PT_IN, my_rank, 0, NULL, 0));
      if (i > WINDOW) WAIT_FOR(sent, i - WINDOW);
    }
    WAIT_FOR(sent, messages);
    printf("rank %u took %.3g s\n", my_rank, seconds() - begun);
  }
  barrier();
  return end();
}
