/* What the handlers of the ping studies share: addresses change places, and Internet checksums.
 *
 * Contract: the frame is IPv4 without options over Ethernet. Exchanging addresses leaves checksums alone.
 */
#ifndef SPINLOOM_HANDLERS_FRAME_PING_H
#define SPINLOOM_HANDLERS_FRAME_PING_H

#include "spinloom/frame.h"

typedef struct {
  spl_eth_t eth;
  spl_ipv4_t ip;
  union {
    spl_udp_t udp;
    spl_icmp_t icmp;
  } in;
} __attribute__((packed, aligned(2))) ping_frame_t;

static inline void ping_exchange(void *a, void *b, uint32_t halfwords) {
  uint16_t *x = (uint16_t *)a, *y = (uint16_t *)b;
  for (uint32_t i = 0; i < halfwords; ++i) {
    const uint16_t kept = x[i];
    x[i] = y[i];
    y[i] = kept;
  }
}

static inline void ping_turn(ping_frame_t *frame) {
  ping_exchange(frame->eth.destination, frame->eth.source, 3);
  ping_exchange(&frame->ip.source, &frame->ip.destination, 2);
}

/* The checksum of all that follows the IP header, computed anew from its 16-bit words. Frames lie at even addresses. */
static inline void ping_sum(ping_frame_t *frame) {
  const uint32_t length = spl_net16(frame->ip.length) - (uint32_t)sizeof frame->ip;
  const uint16_t *at = (const uint16_t *)(const void *)&frame->in;
  uint32_t sum = 0;
  frame->in.icmp.checksum = 0;
  for (uint32_t i = 0; i < length / 2; ++i) sum += at[i];
  if (length & 1) sum += *(const uint8_t *)(at + length / 2);
  frame->in.icmp.checksum = spl_checksum(sum);
}

#endif
