/* Waits for bytes of the rank that its first constant names, which never answers. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  const uint32_t* const constants = spl_constants();
  uint64_t word = 0;
  ptl_process_t peer = {{0, 0}};
  (void)p;
  (void)state;
  peer.rank = constants[0];
  return PtlHandlerGetFromDevice(&word, sizeof word, peer, 1, 0);
}
