/* Loops until somebody sets the second word of its state (uint32_t), then calls the NIC. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  uint32_t* const word = state;
  (void)p;
  __atomic_store_n(&word[0], 1u, __ATOMIC_RELEASE);
  while (__atomic_load_n(&word[1], __ATOMIC_ACQUIRE) == 0) {
  }
  PtlHandlerYield();
  __atomic_store_n(&word[0], 2u, __ATOMIC_RELEASE); /* never: the call ends it */
  return SUCCESS;
}
