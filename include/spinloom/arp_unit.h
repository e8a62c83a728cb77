/* The protocol unit of ARP: a context that finds Ethernet addresses for the handlers of others, by mail.
 *
 * Contract: its handlers are handlers/arp_unit.c; its constants spl_station_t, with both addresses; its state an
 * spl_arp_state, at first zero; its rules take ARP. Mail asks: the argument is an IPv4 address in network order, the
 * value is the caller's own. Mail answers the caller's context with the same value, and in the argument the six bytes
 * of the Ethernet address, the first one lowest; at once if the unit knows it, otherwise when its station has answered.
 * No answer comes if that station is silent: ask again. Each mail for an address that is not known sends a query on the
 * wire.
 * Source: FPsPIN, deliverable D4.7, section 4.4.5: a coprocessor for the protocols below, with a mailbox.
 */
#ifndef SPINLOOM_ARP_UNIT_H
#define SPINLOOM_ARP_UNIT_H

#include <stdint.h>

#define SPL_ARP_NEIGHBOURS 16u
#define SPL_ARP_QUERY_BYTES 60u

typedef struct {
  uint32_t ip; /* the network's byte order; 0: none */
  uint8_t mac[6];
  uint8_t known;
  uint8_t waits; /* mail waits for the answer: the newest caller's */
  uint32_t context;
  uint32_t value;
  uint8_t query[SPL_ARP_QUERY_BYTES]; /* the frame that asks */
} spl_arp_neighbour;

typedef struct {
  uint32_t lock;
  uint32_t next; /* the neighbour that is forgotten next */
  spl_arp_neighbour neighbours[SPL_ARP_NEIGHBOURS];
} spl_arp_state;

#endif
