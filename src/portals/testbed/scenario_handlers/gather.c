/* Does the inverse of scatter.c: byte p of the message is byte (p / block) * stride + p % block of the put's memory.
 * Constants: block, stride. */
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
    PtlHandlerDMAFromHostNB(position / block * stride + position % block, (uint8_t*)p.base + done, piece,
                            PTL_ME_HOST_MEM, NULL);
    done += piece;
  }
  return SUCCESS;
}
