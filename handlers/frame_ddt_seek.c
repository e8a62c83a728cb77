/* Unpacks SLMP messages by seeking: each packet finds its first byte in the compact program and walks on from there, so
 * packets may come in any order on any HPU, with any window. */
#include "frame_ddt.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const frame_ddt_t *const ddt = spl_constants();
  slmp_frame_t *const frame = (slmp_frame_t *)spl_frame();
  frame_ddt_place place = frame_ddt_place_of(ddt, frame);
  const uint32_t bytes = (uint32_t)p.length - (uint32_t)sizeof *frame;
  (void)state;
  spl_walk_narrow((const uint8_t *)ddt + ddt->blob_offset, spl_net32(frame->slmp.offset), bytes, frame_ddt_emit, &place);
  if (spl_net16(frame->slmp.flags) & SPL_SLMP_SYN) frame_ddt_acknowledge(frame);
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  return frame_ddt_done(state);
}
