/* Counts frames and bytes by flow, and lets the frames go on.
 *
 * Contract: constants: flow_constants. State: flow_table, zero at the beginning. A flow takes the first free slot from
 *   its hash on, at most PROBES slots away, and keeps it; frames of flows that find none are counted together. Any
 *   number of handlers at once: a slot is taken by compare-and-swap, its key is there when `taken` says so.
 */
#include "frame_flow.h"

#define PROBES 8u

typedef struct {
  uint32_t slots; /* a power of two */
  uint32_t verdict; /* the fate of the frames: PROCEED, or SUCCESS where only the counts matter */
} flow_constants;

enum {
  FREE = 0,
  FILLING = 1,
  TAKEN = 2
};
typedef struct {
  uint32_t taken;
  frame_flow flow;
  uint32_t frames;
  uint32_t bytes_low, bytes_high;
} flow_slot;
typedef struct {
  uint32_t others; /* frames without a slot */
  uint32_t unused;
  flow_slot slot[];
} flow_table;

static bool same(const frame_flow *a, const frame_flow *b) {
  return a->source == b->source && a->destination == b->destination && a->source_port == b->source_port &&
         a->destination_port == b->destination_port && a->protocol == b->protocol;
}

static uint32_t hash(const frame_flow *flow) {
  const uint32_t ports = (uint32_t)flow->source_port << 16 | flow->destination_port;
  const uint32_t words[4] = {flow->source, flow->destination, ports, flow->protocol};
  uint32_t mixed = 0;
  for (int i = 0; i < 4; ++i) {
    mixed = (mixed ^ words[i]) * 0x9e3779b1u;
    mixed ^= mixed >> 15;
  }
  return mixed;
}

static flow_slot *slot_of(flow_table *table, uint32_t slots, const frame_flow *flow) {
  const uint32_t first = hash(flow);
  for (uint32_t probe = 0; probe < PROBES && probe < slots; ++probe) {
    flow_slot *const slot = &table->slot[(first + probe) & (slots - 1)];
    uint32_t seen = FREE;
    if (__atomic_compare_exchange_n(&slot->taken, &seen, FILLING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
      slot->flow = *flow;
      __atomic_store_n(&slot->taken, TAKEN, __ATOMIC_RELEASE);
      return slot;
    }
    while (__atomic_load_n(&slot->taken, __ATOMIC_ACQUIRE) != TAKEN) PtlHandlerYield();
    if (same(&slot->flow, flow)) return slot;
  }
  return NULL;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const flow_constants *const given = spl_constants();
  flow_table *const table = state;
  const uint32_t bytes = (uint32_t)p.length;
  const frame_flow flow = frame_flow_of(p.base, bytes);
  flow_slot *const slot = slot_of(table, given->slots, &flow);
  if (slot == NULL) {
    __atomic_fetch_add(&table->others, 1u, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_add(&slot->frames, 1u, __ATOMIC_RELAXED);
    const uint32_t before = __atomic_fetch_add(&slot->bytes_low, bytes, __ATOMIC_RELAXED);
    if (before + bytes < before) __atomic_fetch_add(&slot->bytes_high, 1u, __ATOMIC_RELAXED);
  }
  return (int)given->verdict;
}
