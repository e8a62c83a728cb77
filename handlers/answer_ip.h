/* Frames of IPv4 that come back to who sent them.
 *
 * Contract: spl_ip_whole() gives the IPv4 header of a frame to one receiver, whole in the frame, not a fragment,
 * without options, of this protocol, with at least `least` bytes behind the header; otherwise NULL. spl_ip_asked()
 * gives only those for this station, whose address is in the constants.
 * spl_ip_answer() turns the frame around: addresses exchanged, time to live 64. Both leave checksums as right, or as
 * wrong, as they were: who gets the answer sees what was damaged on the way here.
 */
#ifndef SPINLOOM_HANDLERS_ANSWER_IP_H
#define SPINLOOM_HANDLERS_ANSWER_IP_H

#include <string.h>

#include "spinloom/frame.h"

enum {
  SPL_ETHERNET_BYTES = 14,
  SPL_IPV4_BYTES = 20,
  SPL_TIME_TO_LIVE = 64
};

static inline spl_ipv4_t *spl_ip_whole(uint8_t protocol, uint32_t least) {
  uint8_t *const frame = spl_frame();
  const uint32_t bytes = spl_frame_bytes();
  if (bytes < SPL_ETHERNET_BYTES + SPL_IPV4_BYTES + least) return NULL;
  const spl_eth_t *const ethernet = (const spl_eth_t *)frame;
  spl_ipv4_t *const ip = (spl_ipv4_t *)(frame + SPL_ETHERNET_BYTES);
  if ((ethernet->destination[0] & 1) != 0 || ethernet->type != spl_net16(0x0800)) return NULL;
  if (ip->version_words != 0x45 || ip->protocol != protocol || (ip->fragment & spl_net16(0x3fff)) != 0) return NULL;
  const uint32_t length = spl_net16(ip->length);
  if (length < SPL_IPV4_BYTES + least || length > bytes - SPL_ETHERNET_BYTES) return NULL;
  return ip;
}

static inline spl_ipv4_t *spl_ip_asked(uint8_t protocol, uint32_t least) {
  const spl_station_t *const station = spl_constants();
  spl_ipv4_t *const ip = spl_ip_whole(protocol, least);
  return ip != NULL && (station->ip == 0 || station->ip == ip->destination) ? ip : NULL;
}

static inline void spl_ip_answer(spl_ipv4_t *ip) {
  spl_eth_t *const ethernet = (spl_eth_t *)spl_frame();
  uint8_t asker[6];
  memcpy(asker, ethernet->source, 6);
  memcpy(ethernet->source, ethernet->destination, 6);
  memcpy(ethernet->destination, asker, 6);
  const uint32_t source = ip->source;
  ip->source = ip->destination;
  ip->destination = source;
  const uint16_t before = (uint16_t)(ip->time_to_live | ip->protocol << 8);
  ip->time_to_live = SPL_TIME_TO_LIVE;
  ip->checksum = spl_checksum_update(ip->checksum, before, (uint16_t)(ip->time_to_live | ip->protocol << 8));
}

#endif
