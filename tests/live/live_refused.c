/* A program names handlers that are not there: the call returns an error, and a sentence says why. argv[1]: a file
 * that is no image. */
#include <portals4_spin.h>

#include "live_common.h"

static int append_with(const char* image, const char* handler) {
  ptl_me_t me = {
      .ct_handle = PTL_CT_NONE, .uid = PTL_UID_ANY, .options = PTL_ME_OP_PUT, .match_id = {.rank = PTL_RANK_ANY}};
  ptl_spin_t spin = {.image = image, .payload_handler = handler, .hpu_memory = PTL_HPU_MEM_NONE};
  ptl_handle_me_t made;
  return PtlSpinMEAppend(ni, 0, &me, &spin, PTL_PRIORITY_LIST, NULL, &made);
}

int main(int argc, char** argv) {
  begin();
  open_portal(PTL_EQ_NONE, 0);
  EXPECT(PTL_ARG_INVALID, append_with("no_such_image", "payload_handler"));
  EXPECT(PTL_ARG_INVALID, append_with(argc > 1 ? argv[1] : "broken.elf", "payload_handler"));
  EXPECT(PTL_ARG_INVALID, append_with("accumulate", "no_such_handler"));
  return end();
}
