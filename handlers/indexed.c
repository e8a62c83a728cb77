/* Specialised handler for lists: blocks of one length at listed offsets (found by one multiplication) or of any
 * length (found by binary search over the prefix sums). Constants: a blob whose root is a list or runs. */
#include "ddt.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_layout_header *blob = spl_constants();
  const spl_node_narrow *root = (const spl_node_narrow *)(blob + 1);
  (void)state;
  if (p.length == 0) return SUCCESS;
  spl_walk_leaf_narrow(root, (uint32_t)blob->origin, (uint32_t)p.offset, (uint32_t)p.length, 0, ddt_emit_narrow,
                       (void *)p.base);
  return SUCCESS;
}

#ifndef SPL_DDT_GATHER
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
#endif
