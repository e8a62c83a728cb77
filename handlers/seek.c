/* Any datatype, without checkpoints and without state: each packet seeks its first byte in the compact program
 * and walks on from there, so packets may come in any order on any HPU. Constants: a blob. */
#include "ddt.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const void *blob = spl_constants();
  (void)state;
  if (SPL_LIKELY(spl_layout_narrow(blob))) {
    spl_walk_narrow(blob, (uint32_t)p.offset, (uint32_t)p.length, ddt_emit_narrow, (void *)p.base);
  } else {
    spl_walk_wide(blob, p.offset, p.length, ddt_emit_wide, (void *)p.base);
  }
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
