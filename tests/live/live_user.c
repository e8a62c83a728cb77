/* A process is its user's, and opens the library once. */
#include "live_common.h"

/* Rules: P4F-3.2, P4F-3.4, P4F-4.1. */
int main(void) {
  ptl_uid_t uid = PTL_UID_ANY;
  begin();
  EXPECT(PTL_OK, PtlGetUid(ni, &uid));
  EXPECT(geteuid(), uid);
  barrier();
  MUST(PtlNIFini(ni));
  PtlFini();
  EXPECT(PTL_NO_INIT, PtlGetUid(ni, &uid));
  EXPECT(PTL_FAIL, PtlInit());
  printf("rank %u: %d answers\n", my_rank, answers);
  return wrong == 0 ? 0 : 1;
}
