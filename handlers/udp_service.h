/* Shared by handlers of UDP services: the payload of a datagram, and its frame made into an answer to the sender.
 *
 * Contract: udp_payload() gives the payload of a datagram to one receiver (answer_ip.h), of at least `least` bytes;
 *   otherwise NULL. udp_answer() exchanges the ends of a frame's headers and sets their lengths for
 *   an answer of `bytes` payload bytes; the datagram has no checksum (zero), the IPv4 header a new one.
 */
#ifndef SPINLOOM_HANDLERS_UDP_SERVICE_H
#define SPINLOOM_HANDLERS_UDP_SERVICE_H

#include <string.h>

#include "answer_ip.h"
#include "spinloom/frame.h"

typedef struct {
  spl_eth_t ethernet;
  spl_ipv4_t ip;
  spl_udp_t udp;
} __attribute__((packed, aligned(2))) udp_headers;

static inline uint8_t *udp_payload(uint32_t least, uint32_t *bytes) {
  spl_ipv4_t *const ip = spl_ip_whole(17, sizeof(spl_udp_t) + least);
  if (ip == NULL) return NULL;
  const uint32_t length = spl_net16(((const udp_headers *)spl_frame())->udp.length);
  if (length < sizeof(spl_udp_t) + least || length > spl_net16(ip->length) - sizeof *ip) return NULL;
  *bytes = length - sizeof(spl_udp_t);
  return spl_frame() + sizeof(udp_headers);
}

static inline void udp_answer(udp_headers *headers, uint32_t bytes) {
  uint8_t station[6];
  memcpy(station, headers->ethernet.source, sizeof station);
  memcpy(headers->ethernet.source, headers->ethernet.destination, sizeof station);
  memcpy(headers->ethernet.destination, station, sizeof station);
  const uint32_t address = headers->ip.source;
  headers->ip.source = headers->ip.destination;
  headers->ip.destination = address;
  const uint16_t port = headers->udp.source;
  headers->udp.source = headers->udp.destination;
  headers->udp.destination = port;
  headers->udp.length = spl_net16((uint16_t)(sizeof(spl_udp_t) + bytes));
  headers->udp.checksum = 0;
  headers->ip.length = spl_net16((uint16_t)(sizeof(spl_ipv4_t) + sizeof(spl_udp_t) + bytes));
  headers->ip.time_to_live = 64;
  headers->ip.checksum = 0;
  headers->ip.checksum = spl_checksum(spl_checksum_add(0, &headers->ip, sizeof headers->ip));
}

#endif
