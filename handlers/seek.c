/* Any datatype, without checkpoints and without state: each packet seeks its first byte in the compact program
 * and walks on from there, so packets may come in any order on any HPU. Constants: a blob. */
#include "ddt.h"

/* 64-bit fields; a function of its own, so that the narrow case does not save its registers. */
static __attribute__((noinline)) int seek_wide(const void *blob, uint64_t first, uint64_t length,
                                               const uint8_t *payload) {
  spl_walk_wide(blob, first, length, ddt_emit_wide, (void *)payload);
  return SUCCESS;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const void *blob = spl_constants();
  (void)state;
  if (__builtin_expect(!spl_layout_narrow(blob), 0)) return seek_wide(blob, p.offset, p.length, p.base);
  spl_walk_narrow(blob, (uint32_t)p.offset, (uint32_t)p.length, ddt_emit_narrow, (void *)p.base);
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
