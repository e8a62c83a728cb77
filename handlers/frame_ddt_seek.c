/* Unpacks SLMP messages by seeking: each packet finds its first byte in the compact program and walks on from there, so
 * packets may come in any order on any HPU, with any window. */
#include "frame_ddt.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_ddt_frames *const ddt = spl_constants();
  slmp_frame_t *const frame = (slmp_frame_t *)spl_frame();
  frame_ddt_place place;
  (void)p;
  (void)state;
  if (!frame_ddt_find(ddt, frame, &place)) return DROP;
  spl_walk_narrow((const uint8_t *)ddt + ddt->blob_offset, place.first, place.bytes, frame_ddt_emit, &place);
  if (spl_net16(frame->slmp.flags) & SPL_SLMP_SYN) frame_ddt_acknowledge(frame);
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  return frame_ddt_done(state);
}
