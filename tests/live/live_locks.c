/* A lock made of remote compare-and-swap, as SHMEM libraries make them. All ranks together acquire it argv[1] times.
 * The word lies in rank 0's memory, so that rank 0's own attempts never leave the process. The holder adds one to a
 * plain number beside the word, by a get and a put. If two ranks ever held the lock at once, some of these additions
 * would be lost. */
#include <stddef.h>

#include "live_common.h"

static struct {
  uint64_t lock;  /* 0, or the holder's rank + 1 */
  uint64_t count; /* the number of acquisitions */
} shared;

static struct {
  uint64_t wanted, before, value;
} mine;

/* Rules: P4F-12.22. */
int main(int argc, char** argv) {
  const uint64_t all = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
  begin();
  const uint64_t share = all / ranks + (my_rank < all % ranks ? 1 : 0);
  open_portal(PTL_EQ_NONE, 0);
  append_to(0, &shared, sizeof shared, PTL_ME_OP_PUT | PTL_ME_OP_GET, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  const ptl_handle_ct_t done = counter();
  const ptl_handle_md_t md =
      bind(&mine, sizeof mine, PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SUCCESS_DISABLE, PTL_EQ_NONE,
           done);
  const ptl_size_t wanted = offsetof(__typeof__(mine), wanted), before = offsetof(__typeof__(mine), before),
                   value = offsetof(__typeof__(mine), value);
  const ptl_size_t lock = offsetof(__typeof__(shared), lock), count = offsetof(__typeof__(shared), count);
  const ptl_process_t home = rank_of(0);
  const uint64_t nobody = 0;
  uint64_t operations = 0, tries = 0;
  barrier();

  for (uint64_t i = 0; i < share; ++i) {
    do {
      mine.wanted = my_rank + 1;
      MUST(PtlSwap(md, before, md, wanted, sizeof(uint64_t), home, 0, 0, lock, NULL, 0, &nobody, PTL_CSWAP,
                   PTL_UINT64_T));
      WAIT_FOR(done, ++operations);
      ++tries;
    } while (mine.before != 0);
    MUST(PtlGet(md, value, sizeof(uint64_t), home, 0, 0, count, NULL));
    WAIT_FOR(done, ++operations);
    ++mine.value;
    MUST(PtlPut(md, value, sizeof(uint64_t), PTL_CT_ACK_REQ, home, 0, 0, count, NULL, 0));
    WAIT_FOR(done, ++operations);
    mine.wanted = 0;
    MUST(PtlPut(md, wanted, sizeof(uint64_t), PTL_CT_ACK_REQ, home, 0, 0, lock, NULL, 0));
    WAIT_FOR(done, ++operations);
  }
  barrier();
  if (my_rank == 0) EXPECT(all, shared.count);
  printf("rank %u: %llu acquisitions, %llu attempts\n", my_rank, (unsigned long long)share, (unsigned long long)tries);
  return end();
}
