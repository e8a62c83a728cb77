/* Keeps its HPU for a while, and does nothing with the packet.
 *
 * Contract: constants: uint32_t cycles, from the handler's first look at the counter.
 */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const uint32_t *const constants = spl_constants();
  const uint64_t begin = spl_cycles();
  (void)p;
  (void)state;
  while (spl_cycles() - begin < constants[0]) {
  }
  return SUCCESS;
}
