/* Unpacks SLMP messages by a segment (MPITypes' dataloop state), one for each message in handler memory. A segment
 * serves one packet at a time: the sender's window is one packet, and messages run beside each other. */
#include "frame_ddt.h"
#include "spinloom/segment.h"

int header_handler(const ptl_header_t h, void *state) {
  const spl_ddt_frames *const ddt = spl_constants();
  (void)h;
  if (!frame_ddt_knows(ddt)) return DROP;
  spl_segment_init_narrow((spl_segment_narrow *)frame_ddt_state(ddt, state), (const uint8_t *)ddt + ddt->blob_offset);
  return PROCESS_DATA;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_ddt_frames *const ddt = spl_constants();
  slmp_frame_t *const frame = (slmp_frame_t *)spl_frame();
  frame_ddt_place place;
  (void)p;
  if (!frame_ddt_find(ddt, frame, &place)) return DROP;
  spl_segment_manipulate_narrow((spl_segment_narrow *)frame_ddt_state(ddt, state),
                                (const uint8_t *)ddt + ddt->blob_offset, place.first, place.first + place.bytes,
                                frame_ddt_emit, &place);
  if (spl_net16(frame->slmp.flags) & SPL_SLMP_SYN) frame_ddt_acknowledge(frame);
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  return frame_ddt_done(state);
}
