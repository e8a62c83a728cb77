/* Answers each UDP datagram with its own bytes, from the NIC.
 *
 * Contract: constants: spl_station_t. A frame that is no datagram for this station is for the host's stack. The
 * datagram's checksum stays as it is: exchanging addresses and ports leaves the sum alone. Source: FPsPIN's udp_ping
 * (deliverable D4.7, section 5).
 */
#include "answer_ip.h"

int payload_handler(const ptl_payload_t p, void *state) {
  spl_ipv4_t *const ip = spl_ip_asked(17, sizeof(spl_udp_t));
  if (ip == NULL) return PROCEED;
  spl_udp_t *const udp = (spl_udp_t *)(ip + 1);
  spl_ip_answer(ip);
  const uint16_t source = udp->source;
  udp->source = udp->destination;
  udp->destination = source;
  return spl_send_frame(spl_frame(), spl_frame_bytes(), NULL);
}
