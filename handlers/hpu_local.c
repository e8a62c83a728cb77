/* HPU-local: one segment for each virtual HPU (SC'19 datatypes paper, section 3.2.4). With blocked round-robin over as
 * many virtual HPUs as there are HPUs, one packet in a row, nobody else touches a segment; between two of its
 * packets it catches up with the packets of all others, and it is reset when a packet is behind it.
 * Constants: spl_ddt_local, blob. State: the segments. */
#include "segments.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_ddt_local *local = spl_constants();
  const void *blob = (const uint8_t *)local + local->blob_offset;
  spl_segment_narrow *segment = (spl_segment_narrow *)((uint8_t *)state + PTL_MY_VHPU * local->segment_bytes);
  const uint32_t first = (uint32_t)p.offset;
  set_up(segment, blob, first);
  process(segment, blob, first, (uint32_t)p.length, p.base);
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
