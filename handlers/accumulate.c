/* Multiplies an array of complex numbers in host memory by the message's, element by element.
 *
 * Contract: elements are pairs of 32-bit integers (real, imaginary) that wrap around; a message holds whole elements
 * and begins on one in the entry. A packet carries at most PACKET_BYTES. No constants, no state. x = x * y:  re = xr *
 * yr - xi * yi,  im = xr * yi + xi * yr The array's piece is fetched to the stack, which is this processor's own: its
 * accesses need no order with others'. Integers, because the cores have no floating point yet; an A15's multiplications
 * take as long either way. Source: SC'17 sPIN paper, section 4.4.2.
 */
#include "spinloom/handler.h"

#define PACKET_BYTES 4096

int payload_handler(const ptl_payload_t p, void *state) {
  uint32_t x[PACKET_BYTES / sizeof(uint32_t)];
  const uint32_t *const y = (const uint32_t *)p.base;
  const uint32_t words = (uint32_t)p.length / sizeof(uint32_t);
  (void)state;
  if (p.length > sizeof x) return FAIL;
  const int fetched = PtlHandlerDMAFromHostB(p.offset, x, p.length, PTL_ME_HOST_MEM);
  if (fetched != SUCCESS) return fetched;
  for (uint32_t i = 0; i + 1 < words; i += 2) {
    const uint32_t real = x[i] * y[i] - x[i + 1] * y[i + 1];
    x[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i];
    x[i] = real;
  }
  return PtlHandlerDMAToHostB(x, p.offset, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);
}
