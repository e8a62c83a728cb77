/* Fails for every packet but the first of its message. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  (void)state;
  return p.offset > 0 ? FAIL : SUCCESS;
}
