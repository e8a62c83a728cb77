/* Every packet adds to a number under a lock, as raid_parity.c does, and to another by the NIC's own atomics.
 *
 * Contract: constants: uint32_t additions. State: uint32_t lock, uint32_t sum, uint64_t counted; it goes to the entry's
 * beginning at the end. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  const uint32_t* const constants = spl_constants();
  uint32_t* const words = state;
  (void)p;
  for (uint32_t i = 0; i < constants[0]; ++i) {
    while (__atomic_exchange_n(&words[0], 1u, __ATOMIC_ACQUIRE) != 0) {
    }
    words[1] += 1;
    __atomic_store_n(&words[0], 0u, __ATOMIC_RELEASE);
    if (PtlHandlerFAdd((uint64_t*)state + 1, NULL, 1) != 0) return FAIL;
  }
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  return PtlHandlerDMAToHostB(state, 0, 16, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);
}
