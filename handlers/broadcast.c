/* Forwards each message to this rank's children of a binomial tree and lands it here.
 *
 * Contract: constants: uint32_t rank, ranks, match bits, store, bytes of a packet. Rank 0 is the root; rank r's
 * children are r + half for every power of two `half` below ranks that is smaller than the lowest set bit of r (any,
 * for the root), the largest first: the subtree that takes longest starts first. store = 0: each packet is forwarded
 * from the NIC's memory as it comes, as a message of its own at its offset (stream). store = 1: a message of more than
 * one packet lands first and is forwarded from host memory when all of it is in. No state but the length. Source: SC'17
 * sPIN paper, section 4.4.3.
 */
#include "spinloom/handler.h"

typedef struct {
  uint32_t rank;
  uint32_t ranks;
  uint32_t match_bits;
  uint32_t store;
  uint32_t packet_bytes;
} broadcast_constants;

typedef struct {
  uint64_t stored_bytes; /* 0: forwarded packet by packet */
} broadcast_state;

static const broadcast_constants *constants(void) { return spl_constants(); }

/* The child after the one at distance `half`, by its distance; 0: none. */
static uint32_t next_half(uint32_t half) {
  const broadcast_constants *const c = constants();
  for (half /= 2; half != 0; half /= 2) {
    if (c->rank % (half * 2) == 0 && c->rank + half < c->ranks) return half;
  }
  return 0;
}
static uint32_t first_half(void) {
  uint32_t above = 1;
  while (above < constants()->ranks) above *= 2;
  return next_half(above);
}

static ptl_process_t child(uint32_t half) {
  ptl_process_t process = {{0, 0}};
  process.rank = constants()->rank + half;
  return process;
}

int header_handler(const ptl_header_t h, void *state) {
  broadcast_state *const kept = state;
  const bool stores = constants()->store != 0 && h.length > constants()->packet_bytes;
  if (constants()->store == 0) return PROCESS_DATA; /* several messages at a time: nothing is kept of one */
  kept->stored_bytes = stores ? h.length : 0;
  return stores ? PROCEED : PROCESS_DATA;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const ptl_size_t at = p.entry_offset + p.offset;
  (void)state;
  for (uint32_t half = first_half(); half != 0; half = next_half(half)) {
    const int put =
        PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, child(half), constants()->match_bits, at, NULL, 0);
    if (put != SUCCESS) return put;
  }
  return PtlHandlerDMAToHostNB(p.base, at, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  const broadcast_state *const kept = state;
  (void)dropped_bytes;
  (void)flow_control_triggered;
  if (constants()->store == 0 || kept->stored_bytes == 0) return SUCCESS;
  for (uint32_t half = first_half(); half != 0; half = next_half(half)) {
    const int put = PtlHandlerPutFromHost(0, kept->stored_bytes, 0, PTL_NO_ACK_REQ, child(half),
                                          constants()->match_bits, 0, NULL, 0);
    if (put != SUCCESS) return put;
  }
  return SUCCESS;
}
