/* Makes one call that asks for nothing; `calls` in its constants many. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  const uint32_t* const calls = spl_constants();
  (void)p;
  (void)state;
  for (uint32_t i = 0; i < calls[0]; ++i) PtlHandlerYield();
  return SUCCESS;
}
