/* A handler that needs 12 ms for each packet of a message's first 4 MiB, and no processor. */
#include "spinloom/handler.h"

int usleep(unsigned us); /* native handlers are part of their process */

int payload_handler(const ptl_payload_t p, void* state) {
  (void)state;
  if (p.offset < 4 << 20) usleep(12000);
  return SUCCESS;
}
