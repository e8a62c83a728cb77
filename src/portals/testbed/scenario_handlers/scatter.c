/* Packed byte p goes to (p / block) * stride + p % block. Constants: block, stride. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  const uint32_t* constants = spl_constants();
  const uint32_t block = constants[0];
  const uint32_t stride = constants[1];
  const uint32_t first = (uint32_t)p.offset;
  const uint32_t length = (uint32_t)p.length;
  (void)state;
  for (uint32_t done = 0; done < length;) {
    const uint32_t position = first + done;
    const uint32_t rest = block - position % block;
    const uint32_t piece = rest < length - done ? rest : length - done;
    PtlHandlerDMAToHostNB(p.base + done, position / block * stride + position % block, piece,
                          PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
    done += piece;
  }
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return PtlHandlerDMAToHostNB(NULL, 0, 0, PTL_ME_HOST_MEM, NULL);
}
