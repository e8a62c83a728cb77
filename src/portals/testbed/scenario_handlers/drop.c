/* Drops every packet. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  (void)p;
  (void)state;
  return DROP;
}
