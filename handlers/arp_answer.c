/* Answers who asks for the station's Ethernet address (ARP, RFC 826), from the NIC.
 *
 * Contract: constants: spl_station_t, both addresses. Every other frame is for the host's stack.
 */
#include <string.h>

#include "spinloom/frame.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_station_t *const station = spl_constants();
  if (spl_frame_bytes() < sizeof(spl_eth_t) + sizeof(spl_arp_t)) return PROCEED;
  spl_eth_t *const ethernet = (spl_eth_t *)spl_frame();
  spl_arp_t *const arp = (spl_arp_t *)(ethernet + 1);
  const int is_arp = ethernet->type == spl_net16(0x0806) && arp->hardware == spl_net16(1) &&
                     arp->protocol == spl_net16(0x0800) && arp->hardware_bytes == 6 && arp->protocol_bytes == 4;
  if (!is_arp || arp->operation != spl_net16(1) || station->ip == 0 || arp->target_ip != station->ip) return PROCEED;
  arp->operation = spl_net16(2);
  memcpy(arp->target, arp->sender, 6);
  arp->target_ip = arp->sender_ip;
  memcpy(arp->sender, station->mac, 6);
  arp->sender_ip = station->ip;
  memcpy(ethernet->destination, ethernet->source, 6);
  memcpy(ethernet->source, station->mac, 6);
  return spl_send_frame(spl_frame(), spl_frame_bytes(), NULL);
}
