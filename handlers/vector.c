/* Specialised handler for one-level vectors: the first block of a packet by one multiplication, then one DMA a
 * block, with the blocks that packet boundaries cut (after SC'19 datatypes paper, section 3.2.3, which shows the
 * case without cuts). Constants: spl_ddt_vector. */
#include "ddt.h"
#include "spinloom/ddt.h"

int payload_handler(const ptl_payload_t p, void *state) {
  const spl_ddt_vector *vector = spl_constants();
  const uint8_t *from = p.base;
  uint32_t bytes = (uint32_t)p.length;
  const uint32_t block = vector->block_bytes;
  const uint32_t stride = (uint32_t)vector->stride_bytes;
  const uint32_t first = (uint32_t)p.offset;
  const uint32_t index = spl_divide_narrow(first, vector->reciprocal, vector->shift);
  const uint32_t within = first - index * block;
  uint32_t offset = (uint32_t)vector->origin + index * stride;
  (void)state;
  if (within != 0) {
    const uint32_t rest = block - within < bytes ? block - within : bytes;
    ddt_emit_narrow((void *)from, (int32_t)(offset + within), 0, rest);
    from += rest;
    bytes -= rest;
    offset += stride;
  }
  while (bytes >= block) {
    ddt_emit_narrow((void *)from, (int32_t)offset, 0, block);
    from += block;
    bytes -= block;
    offset += stride;
  }
  if (bytes != 0) ddt_emit_narrow((void *)from, (int32_t)offset, 0, bytes);
  return SUCCESS;
}

#ifndef SPL_DDT_GATHER
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return ddt_complete();
}
#endif
