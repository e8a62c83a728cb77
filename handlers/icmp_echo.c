/* Answers echo requests (ping): the request comes back as an echo reply, from the NIC.
 *
 * Contract: constants: spl_station_t. A frame that is no echo request for this station is for the host's stack. Both
 * checksums are changed by what changes, not computed anew. Source: FPsPIN's icmp_ping (deliverable D4.7, section 5).
 */
#include "answer_ip.h"

int payload_handler(const ptl_payload_t p, void *state) {
  spl_ipv4_t *const ip = spl_ip_asked(1, sizeof(spl_icmp_t));
  if (ip == NULL) return PROCEED;
  spl_icmp_t *const icmp = (spl_icmp_t *)(ip + 1);
  if (icmp->type != 8 || icmp->code != 0) return PROCEED;
  spl_ip_answer(ip);
  icmp->type = 0;
  icmp->checksum = spl_checksum_update(icmp->checksum, spl_net16(0x0800), 0);
  return spl_send_frame(spl_frame(), spl_frame_bytes(), NULL);
}
