/* Shared by the handlers of the ping studies: the exchange of addresses, and Internet checksums.
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

/* The checksum of all that follows the IP header, computed anew. That begins two bytes before a word's boundary. */
static inline void ping_sum(ping_frame_t *frame) {
  typedef uint32_t __attribute__((may_alias)) word_t;
  uint32_t length = spl_net16(frame->ip.length) - (uint32_t)sizeof frame->ip - 2;
  const word_t *at = (const word_t *)(const void *)((const uint8_t *)&frame->in + 2);
  frame->in.icmp.checksum = 0;
  uint64_t sum = *(const uint16_t *)(const void *)&frame->in;
  for (; length >= 16; length -= 16, at += 4) {
    const uint32_t a = at[0], b = at[1], c = at[2], d = at[3];
    sum += a;
    sum += b;
    sum += c;
    sum += d;
  }
  for (; length >= 4; length -= 4, ++at) sum += *at;
  const uint8_t *rest = (const uint8_t *)at;
  sum += spl_checksum_add(0, rest, length);
  sum = (sum & 0xffffffffu) + (sum >> 32);
  sum = (sum & 0xffffffffu) + (sum >> 32);
  const uint32_t folded = (uint32_t)sum;
  frame->in.icmp.checksum = spl_checksum((folded & 0xffffu) + (folded >> 16));
}

#endif
