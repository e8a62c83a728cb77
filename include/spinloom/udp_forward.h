/* The data of handlers/udp_forward.c, which forwards datagrams for the station to another station.
 *
 * Contract: constants: spl_forward. State: an spl_forward_state, at first zero. The handler asks the context `unit` by
 * mail for the Ethernet address of the other station (spinloom/arp_unit.h). Datagrams that come before the address is
 * known are dropped and counted, as are those that cannot be sent. A forwarded datagram has this station as its source,
 * and keeps its source port.
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
