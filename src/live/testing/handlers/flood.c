/* A packet whose first byte is not 0 makes the handler put zeros to its own entry for ever.
 *
 * Contract: constants: the rank, the match bits of the entry. State: a count of its puts. Built as an image only. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  const volatile uint32_t* const constants = spl_constants();
  volatile uint32_t* const puts = state;
  const ptl_process_t self = {.rank = constants[0]};
  uint8_t zeros[32];
  if (((const uint8_t*)p.base)[0] == 0) return SUCCESS;
  for (unsigned i = 0; i < sizeof zeros; ++i) zeros[i] = 0;
  for (;;) {
    PtlHandlerPutFromDevice(zeros, sizeof zeros, 0, PTL_NO_ACK_REQ, self, constants[1], 0, NULL, 0);
    puts[0] += 1;
  }
}
