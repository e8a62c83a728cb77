/* Frames of ARP (RFC 826): what handlers read of them, and the answer to who asks for the station.
 *
 * Contract: arp_of() gives the ARP of a frame for Ethernet and IPv4; otherwise NULL. arp_answer() answers who asks for
 *   the station's address, in place, and says whether it was that; the rest of the frame stays.
 */
#ifndef SPINLOOM_HANDLERS_ARP_H
#define SPINLOOM_HANDLERS_ARP_H

#include <string.h>

#include "spinloom/frame.h"

enum {
  ARP_TYPE = 0x0806,
  ARP_ASKS = 1,
  ARP_ANSWERS = 2
};

static inline spl_arp_t *arp_of(uint8_t *frame, uint32_t bytes) {
  spl_arp_t *const arp = (spl_arp_t *)(frame + sizeof(spl_eth_t));
  if (bytes < sizeof(spl_eth_t) + sizeof *arp || ((const spl_eth_t *)frame)->type != spl_net16(ARP_TYPE)) return NULL;
  const int is_arp = arp->hardware == spl_net16(1) && arp->protocol == spl_net16(0x0800) && arp->hardware_bytes == 6 &&
                     arp->protocol_bytes == 4;
  return is_arp ? arp : NULL;
}

static inline int arp_answer(uint8_t *frame, spl_arp_t *arp, const spl_station_t *station) {
  if (arp->operation != spl_net16(ARP_ASKS) || station->ip == 0 || arp->target_ip != station->ip) return 0;
  arp->operation = spl_net16(ARP_ANSWERS);
  memcpy(arp->target, arp->sender, 6);
  arp->target_ip = arp->sender_ip;
  memcpy(arp->sender, station->mac, 6);
  arp->sender_ip = station->ip;
  spl_eth_t *const ethernet = (spl_eth_t *)frame;
  memcpy(ethernet->destination, ethernet->source, 6);
  memcpy(ethernet->source, station->mac, 6);
  return 1;
}

#endif
