/* RO-CP: read-only checkpoints (SC'19 datatypes paper, section 3.2.4). Each packet copies the closest checkpoint at or
 * before its first byte to the stack, catches up from there and never writes it back, so that packets run in any
 * order on any HPU. Constants: spl_ddt_checkpoints, blob, checkpoints (as the master copies). */
#include "segments.h"

static __attribute__((noinline)) void copy_checkpoint(uint32_t *to, const uint32_t *from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes / 4; ++i) to[i] = from[i];
}

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_ddt_checkpoints *checkpoints = spl_constants();
  const uint8_t *constants = (const uint8_t *)checkpoints;
  const void *blob = constants + checkpoints->blob_offset;
  const uint32_t first = (uint32_t)p.offset;
  const uint32_t index = spl_divide_narrow(first, checkpoints->reciprocal, checkpoints->shift);
  const uint8_t *checkpoint = constants + checkpoints->masters_offset + index * checkpoints->checkpoint_bytes;
  spl_segment_narrow segment;
  (void)state;
  copy_checkpoint((uint32_t *)&segment, (const uint32_t *)checkpoint, checkpoints->checkpoint_bytes);
  set_up(&segment, blob, first);
  process(&segment, blob, first, (uint32_t)p.length, p.base);
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
