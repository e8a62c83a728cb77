/* Answers pings with the host's help: addresses change places here, the host computes the checksum. The frame goes to
 * this HPU's page of host memory, a request and its answer follow, the frame comes back and leaves. State:
 * spl_host_data.
 * Source: deliverable D4.7, section 4.5.3 (Host+FPsPIN). */
#include "frame_ping.h"

int payload_handler(const ptl_payload_t p, void *state) {
  ping_frame_t *const frame = (ping_frame_t *)spl_frame();
  const uint32_t bytes = spl_frame_bytes();
  const ptl_size_t page = (ptl_size_t)PTL_MY_HPU * SPL_HOST_PAGE_BYTES + SPL_HOST_PAGE_PAYLOAD;
  (void)p;
  ping_turn(frame);
  if (frame->ip.protocol == 17) {
    ping_exchange(&frame->in.udp.source, &frame->in.udp.destination, 1);
  } else {
    frame->in.icmp.type = 0;
  }
  (void)PtlHandlerDMAToHostB(frame, page, bytes, PTL_HANDLER_HOST_MEM);
  (void)spl_host_request((struct spl_host_data *)state, bytes);
  (void)PtlHandlerDMAFromHostB(page, frame, bytes, PTL_HANDLER_HOST_MEM);
  return spl_send_frame(frame, bytes, NULL);
}
