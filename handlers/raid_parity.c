/* The parity node of a RAID-5 array: its block changes by the deltas that data nodes send, without the host.
 *
 * Contract: the entry's memory is the parity block; every data node (and client of it) has an entry of its own, whose
 * constants are raid_parity_constants. A message is one packet: its bytes are the delta at its offset. It is
 * acknowledged by an empty message whose header data is its length, when the block's new bytes are on their way to
 * memory behind which every later read stays.
 * Deltas of several data nodes for the same bytes come at the same time, and reading, changing and writing host memory
 * takes three steps: a range of RAID_PACKET_BYTES is locked meanwhile. All contexts share the state, the locks:
 * uint32_t LOCKS times, zero at the beginning. A delta lies in at most two ranges; the lock of lower number is taken
 * first. Source: SC'17 sPIN paper, section 5.3, which has no locks.
 */
#include "raid.h"

#define LOCKS 64u

typedef struct {
  uint32_t data_rank;
  uint32_t answer_bits;
} raid_parity_constants;

static void lock(uint32_t *one) {
  while (__atomic_exchange_n(one, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
}
static void unlock(uint32_t *one) { __atomic_store_n(one, 0u, __ATOMIC_RELEASE); }

static int apply(const ptl_payload_t *p, ptl_size_t at) {
  uint32_t block[RAID_PACKET_BYTES / sizeof(uint32_t)];
  const int fetched = PtlHandlerDMAFromHostB(at, block, p->length, PTL_ME_HOST_MEM);
  if (fetched != SUCCESS) return fetched;
  raid_xor(block, p->base, (uint32_t)p->length);
  return PtlHandlerDMAToHostB(block, at, p->length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);
}

int payload_handler(const ptl_payload_t p, void *state) {
  const raid_parity_constants *const constants = spl_constants();
  uint32_t *const locks = state;
  if (p.length > RAID_PACKET_BYTES) return FAIL;
  const ptl_size_t at = p.entry_offset + p.offset;
  const uint32_t first = (uint32_t)(at / RAID_PACKET_BYTES) % LOCKS;
  const uint32_t last = (uint32_t)((at + p.length - 1) / RAID_PACKET_BYTES) % LOCKS;
  const uint32_t low = first < last ? first : last;
  const uint32_t high = first < last ? last : first;
  lock(&locks[low]);
  if (high != low) lock(&locks[high]);
  const int applied = apply(&p, at);
  if (high != low) unlock(&locks[high]);
  unlock(&locks[low]);
  if (applied != SUCCESS) return applied;
  return PtlHandlerPutFromDevice(NULL, 0, 0, PTL_NO_ACK_REQ, raid_rank(constants->data_rank), constants->answer_bits, 0,
                                 NULL, p.length);
}
