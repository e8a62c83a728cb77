/* A rank whose standard streams are closed: what it prints goes nowhere, and not into what others read. argv[1]: a
 * folder where each rank leaves a file of its name when all went well. */
#include <sys/stat.h>

#include "live_common.h"

int main(int argc, char** argv) {
  const char* const folder = argc > 1 ? argv[1] : ".";
  static unsigned char out[200000], in[sizeof out];
  begin();
  for (int file = 0; file <= 2; ++file) {
    struct stat status;
    EXPECT(0, fstat(file, &status));
    EXPECT(0, S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode)); /* memory that peers write, a peer */
  }
  const ptl_handle_ct_t landed = counter();
  open_portal(PTL_EQ_NONE, 3);
  append_to(3, in, sizeof in, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, landed, 5, PTL_PRIORITY_LIST);
  for (int line = 0; line < 10000; ++line) {
    printf("a line that nobody reads\n");
    fprintf(stderr, "nor this one\n");
  }
  fflush(stdout);
  barrier();
  fill(out, my_rank, sizeof out);
  const ptl_handle_md_t md = bind(out, sizeof out, 0, PTL_EQ_NONE, PTL_CT_NONE);
  MUST(PtlPut(md, 0, sizeof out, PTL_NO_ACK_REQ, rank_of((my_rank + 1) % ranks), 3, 5, 0, NULL, 0));
  WAIT_FOR(landed, 1);
  CHECK_BYTES(in, (my_rank + ranks - 1) % ranks, sizeof in);
  if (wrong == 0) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%u", folder, my_rank);
    FILE* const good = fopen(name, "w");
    if (good == NULL || fclose(good) != 0) return 3;
  }
  return end();
}
