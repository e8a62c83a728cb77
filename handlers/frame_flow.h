/* The flow to which a frame belongs: its addresses, ports and protocol.
 *
 * Contract: fields that the frame does not have are zero: all of them where it is not IPv4 or is cut short, ports where
 *   it is neither TCP nor UDP or is not the first fragment. Addresses stay in network order, ports do not.
 */
#ifndef SPINLOOM_HANDLERS_FRAME_FLOW_H
#define SPINLOOM_HANDLERS_FRAME_FLOW_H

#include "spinloom/frame.h"

typedef struct {
  uint32_t source;
  uint32_t destination;
  uint16_t source_port;
  uint16_t destination_port;
  uint32_t protocol;
} frame_flow;

static inline frame_flow frame_flow_of(const uint8_t *frame, uint32_t bytes) {
  frame_flow flow = {0, 0, 0, 0, 0};
  const spl_eth_t *const ethernet = (const spl_eth_t *)frame;
  const spl_ipv4_t *const ip = (const spl_ipv4_t *)(ethernet + 1);
  if (bytes < sizeof *ethernet + sizeof *ip || ethernet->type != spl_net16(0x0800)) return flow;
  const uint32_t header = (uint32_t)(ip->version_words & 15) * 4;
  if (ip->version_words >> 4 != 4 || header < sizeof *ip) return flow;
  flow.source = ip->source;
  flow.destination = ip->destination;
  flow.protocol = ip->protocol;
  const spl_udp_t *const ports = (const spl_udp_t *)((const uint8_t *)ip + header); /* TCP's begin as UDP's */
  const bool has_ports = (ip->protocol == 6 || ip->protocol == 17) && (spl_net16(ip->fragment) & 0x1fff) == 0;
  if (has_ports && bytes >= sizeof *ethernet + header + 4) {
    flow.source_port = spl_net16(ports->source);
    flow.destination_port = spl_net16(ports->destination);
  }
  return flow;
}

#endif
