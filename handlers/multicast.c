/* Sends each packet on to several ranks, once to each: what a switch does for its links of a multicast tree.
 *
 * Contract: constants: uint32_t match bits, number of ranks, the ranks. Each packet is put to each of them as it comes,
 * as a message of its own at its offset in the entry. Nothing reaches the host; there may be none. No state.
 */
#include "spinloom/handler.h"

typedef struct {
  uint32_t match_bits;
  uint32_t count;
  uint32_t ranks[];
} multicast_constants;

int payload_handler(const ptl_payload_t p, void *state) {
  const multicast_constants *const c = spl_constants();
  const ptl_size_t at = p.entry_offset + p.offset;
  (void)state;
  for (uint32_t i = 0; i < c->count; ++i) {
    ptl_process_t target = {{0, 0}};
    target.rank = c->ranks[i];
    const int put = PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, target, c->match_bits, at, NULL, 0);
    if (put != SUCCESS) return put;
  }
  return SUCCESS;
}
