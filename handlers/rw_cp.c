/* RW-CP: progressing checkpoints (SC'19 datatypes paper, section 3.2.4). Blocked round-robin scheduling makes the
 * packets of one checkpoint run one after the other, so each checkpoint has one owner and is progressed in
 * place. A packet from before its checkpoint's position puts the master copy back and catches up.
 * Constants: spl_ddt_checkpoints, blob, master copies. State: the progressed copies. */
#include "ddt.h"
#include "spinloom/ddt.h"
#include "spinloom/segment.h"

static __attribute__((noinline)) void restore(uint32_t *to, const uint32_t *from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes / 4; ++i) to[i] = from[i];
}

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_ddt_checkpoints *checkpoints = spl_constants();
  const uint8_t *constants = (const uint8_t *)checkpoints;
  const void *blob = constants + checkpoints->blob_offset;
  const uint32_t first = (uint32_t)p.offset;
  const uint32_t index = spl_divide_narrow(first, checkpoints->reciprocal, checkpoints->shift);
  const uint32_t at = index * checkpoints->checkpoint_bytes;
  spl_segment_narrow *segment = (spl_segment_narrow *)((uint8_t *)state + at);
  if (__builtin_expect(spl_segment_beyond_narrow(segment, first), 0)) {
    restore((uint32_t *)segment, (const uint32_t *)(constants + checkpoints->masters_offset + at),
            checkpoints->checkpoint_bytes);
  }
  spl_segment_manipulate_narrow(segment, blob, first, first + (uint32_t)p.length, ddt_emit_narrow, (void *)p.base);
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
