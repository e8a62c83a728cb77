/* Adds up messages of several senders, packet by packet, and sends the sums on: what a switch does in a reduction tree.
 *
 * Contract: every sender has a number below `senders`, and puts the same elements, all `bytes` of them, at remote offset
 * number << shift. When the packets of all senders at an offset are here, their sum is put to each of the ranks as a message of its own at
 * base + offset. Packets come in any order and from all senders at once. Elements are int32_t or int64_t; sums wrap around.
 * State: a slot for each packet of a message, zero at the beginning and after its sum has been sent. A slot's payload
 * is cut into segments, each with a lock; senders begin at different segments, so that they seldom wait for each other.
 * A packet that is no whole packet of the message, of an unknown sender, or the second of one sender before the sum
 * has been sent is refused (FAIL).
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
  uint32_t element_bytes; /* 4 or 8 */
  uint32_t match_bits;
  uint32_t base_low;
  uint32_t base_high;
  uint32_t count;
  uint32_t ranks[];
} reduce_constants;

/* The payload lies behind all slots. */
typedef struct {
  uint32_t seen[SENDERS / 32]; /* who has sent */
  uint32_t added;              /* packets that are in the sum */
  uint32_t unused;
  uint32_t locks[SEGMENTS];
  uint8_t filled[SEGMENTS];
} reduce_slot;

static void lock(uint32_t *one) {
  while (__atomic_exchange_n(one, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
}
static void unlock(uint32_t *one) { __atomic_store_n(one, 0u, __ATOMIC_RELEASE); }

static void add(void *sum, const void *from, uint32_t bytes, uint32_t element_bytes) {
  if (element_bytes == 4) {
    uint32_t *const to = sum;
    const uint32_t *const with = from;
    for (uint32_t i = 0; i < bytes / 4; ++i) to[i] += with[i];
  } else {
    uint64_t *const to = sum;
    const uint64_t *const with = from;
    for (uint32_t i = 0; i < bytes / 8; ++i) to[i] += with[i];
  }
}

static void copy(void *to, const void *from, uint32_t bytes) {
  uint32_t *const words = to;
  const uint32_t *const with = from;
  for (uint32_t i = 0; i < bytes / 4; ++i) words[i] = with[i];
}

static int send(const reduce_constants *c, const void *sum, uint32_t bytes, uint32_t at) {
  const ptl_size_t base = (ptl_size_t)c->base_high << 32 | c->base_low;
  for (uint32_t i = 0; i < c->count; ++i) {
    ptl_process_t target = {{0, 0}};
    target.rank = c->ranks[i];
    const int put =
        PtlHandlerPutFromDevice(sum, bytes, 0, PTL_NO_ACK_REQ, target, c->match_bits, base + at, NULL, 0);
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
  if (bytes != (c->bytes - at < packet_bytes ? c->bytes - at : packet_bytes)) return FAIL;

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
      add(sum + first, p.base + first, length, c->element_bytes);
    } else {
      copy(sum + first, p.base + first, length);
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
