/* Answers who asks for the station's Ethernet address (ARP, RFC 826), from the NIC.
 *
 * Contract: constants: spl_station_t, both addresses. Every other frame is for the host's stack.
 */
#include "arp.h"

int payload_handler(const ptl_payload_t p, void *state) {
  spl_arp_t *const arp = arp_of(spl_frame(), spl_frame_bytes());
  if (arp == NULL || !arp_answer(spl_frame(), arp, spl_constants())) return PROCEED;
  return spl_send_frame(spl_frame(), spl_frame_bytes(), NULL);
}
