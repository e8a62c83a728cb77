/* What handlers/udp_forward.c forwards, and where: datagrams that come for the station go on to another one.
 *
 * Contract: constants: spl_forward. State: an spl_forward_state, at first zero. The Ethernet address of the other
 * station is asked for by mail, of the context `unit` (spinloom/arp_unit.h). Datagrams that come before it is known are
 * dropped and counted, as are those that cannot be sent. The datagram that goes on comes from this station, and its
 * source port stays.
 */
#ifndef SPINLOOM_UDP_FORWARD_H
#define SPINLOOM_UDP_FORWARD_H

#include <stdint.h>

typedef struct {
  uint32_t ip;      /* the station's, in network order, as the next two */
  uint32_t to_ip;
  uint16_t to_port;
  uint16_t unit;
} spl_forward;

typedef struct {
  uint32_t known; /* 1: `mac` is the other station's */
  uint8_t mac[6];
  uint16_t unused;
  uint32_t forwarded;
  uint32_t dropped;
} spl_forward_state;

#endif
