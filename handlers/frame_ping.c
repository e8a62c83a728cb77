/* Answers ICMP echo requests and UDP datagrams with the same bytes, from the NIC alone. As FPsPIN's ping handlers do,
 * the ICMP checksum is computed anew over the whole payload, so that an answer takes time in proportion to its length;
 * UDP needs no checksum. Source: deliverable D4.7, section 4.5.3. */
#include "frame_ping.h"

int payload_handler(const ptl_payload_t p, void *state) {
  ping_frame_t *const frame = (ping_frame_t *)spl_frame();
  (void)p;
  (void)state;
  ping_turn(frame);
  if (frame->ip.protocol == 17) {
    ping_exchange(&frame->in.udp.source, &frame->in.udp.destination, 1);
  } else {
    frame->in.icmp.type = 0;
    ping_sum(frame);
  }
  return spl_send_frame(frame, spl_frame_bytes(), NULL);
}
