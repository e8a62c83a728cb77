/* Adds up messages of several senders, packet by packet, and sends the sums on: what a switch does in a reduction tree.
 *
 * Contract: every sender has a number below `senders`, and puts the same elements, all `bytes` of them, at remote
 * offset number << shift. When the packets of all senders at an offset are here, their sum is put to each of the ranks
 * as a message of its own at base + offset. Packets come in any order and from all senders at once. Elements are
 * int32_t; sums wrap around. State: a slot for each packet of a message, zero at the beginning and after its sum has
 * been sent. A slot's payload is cut into segments, each with a lock; senders begin at different segments, so that they
 * seldom wait for each other. A packet that is no whole packet of the message, of an unknown sender, or the second of
 * one sender before the sum has been sent is refused (FAIL).
 */
#include "spinloom/handler.h"

#define SEGMENT_BYTES 256u
#define SEGMENTS 64u
#define SENDERS 64u

typedef struct {
  uint32_t senders;
  uint32_t shift;
  uint32_t bytes;
  uint32_t packet_shift; /* a packet has 1 << packet_shift bytes */
  uint32_t match_bits;
  uint32_t base_low;
  uint32_t base_high;
  uint32_t count;
  uint32_t ranks[];
} reduce_constants;

/* The payload lies behind all slots. */
typedef struct {
  uint32_t seen[SENDERS / 32]; /* a bit for each sender that has sent */
  uint32_t added; /* packets that are in the sum */
  uint32_t unused;
  uint32_t locks[SEGMENTS];
  uint8_t filled[SEGMENTS];
} reduce_slot;

static void lock(uint32_t *one) {
  while (__atomic_exchange_n(one, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
}
static void unlock(uint32_t *one) { __atomic_store_n(one, 0u, __ATOMIC_RELEASE); }

/* Four words a step: their loads do not wait for each other's stores. */
static void add(uint32_t *restrict to, const uint32_t *restrict with, uint32_t words) {
  uint32_t i = 0;
  for (; i + 4 <= words; i += 4) {
    const uint32_t a = to[i] + with[i];
    const uint32_t b = to[i + 1] + with[i + 1];
    const uint32_t c = to[i + 2] + with[i + 2];
    const uint32_t d = to[i + 3] + with[i + 3];
    to[i] = a;
    to[i + 1] = b;
    to[i + 2] = c;
    to[i + 3] = d;
  }
  for (; i < words; ++i) to[i] += with[i];
}

static void copy(uint32_t *restrict to, const uint32_t *restrict from, uint32_t words) {
  uint32_t i = 0;
  for (; i + 4 <= words; i += 4) {
    to[i] = from[i];
    to[i + 1] = from[i + 1];
    to[i + 2] = from[i + 2];
    to[i + 3] = from[i + 3];
  }
  for (; i < words; ++i) to[i] = from[i];
}

static int send(const reduce_constants *c, const void *sum, uint32_t bytes, uint32_t at) {
  const ptl_size_t base = (ptl_size_t)c->base_high << 32 | c->base_low;
  for (uint32_t i = 0; i < c->count; ++i) {
    ptl_process_t target = {{0, 0}};
    target.rank = c->ranks[i];
    const int put = PtlHandlerPutFromDevice(sum, bytes, 0, PTL_NO_ACK_REQ, target, c->match_bits, base + at, NULL, 0);
    if (put != SUCCESS) return put;
  }
  return SUCCESS;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const reduce_constants *const c = spl_constants();
  const uint32_t entry_at = (uint32_t)(p.entry_offset + p.offset);
  const uint32_t sender = entry_at >> c->shift;
  const uint32_t at = entry_at - (sender << c->shift);
  const uint32_t packet_bytes = 1u << c->packet_shift;
  const uint32_t bytes = (uint32_t)p.length;
  if (sender >= c->senders || at >= c->bytes || (at & (packet_bytes - 1)) != 0) return FAIL;
  if (bytes != (c->bytes - at < packet_bytes ? c->bytes - at : packet_bytes) || bytes % 4 != 0) return FAIL;

  const uint32_t slots = (c->bytes + packet_bytes - 1) >> c->packet_shift;
  const uint32_t number = at >> c->packet_shift;
  reduce_slot *const slot = (reduce_slot *)state + number;
  uint8_t *const sum = (uint8_t *)((reduce_slot *)state + slots) + at;
  const uint32_t one = 1u << sender % 32;
  if ((__atomic_fetch_or(&slot->seen[sender / 32], one, __ATOMIC_ACQ_REL) & one) != 0) return FAIL;

  const uint32_t segments = (bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
  uint32_t segment = sender;
  while (segment >= segments) segment -= segments;
  for (uint32_t i = 0; i < segments; ++i) {
    const uint32_t first = segment * SEGMENT_BYTES;
    const uint32_t length = bytes - first < SEGMENT_BYTES ? bytes - first : SEGMENT_BYTES;
    uint32_t *const locked = &slot->locks[segment];
    lock(locked);
    if (slot->filled[segment] != 0) {
      add((uint32_t *)(sum + first), (const uint32_t *)(p.base + first), length / 4);
    } else {
      copy((uint32_t *)(sum + first), (const uint32_t *)(p.base + first), length / 4);
      slot->filled[segment] = 1;
    }
    unlock(locked);
    if (++segment == segments) segment = 0;
  }
  if (__atomic_add_fetch(&slot->added, 1, __ATOMIC_ACQ_REL) != c->senders) return SUCCESS;
  const int sent = send(c, sum, bytes, at);
  for (uint32_t i = 0; i < segments; ++i) slot->filled[i] = 0;
  for (uint32_t i = 0; i < SENDERS / 32; ++i) slot->seen[i] = 0;
  __atomic_store_n(&slot->added, 0, __ATOMIC_RELEASE);
  return sent;
}
