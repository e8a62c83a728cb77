/* Multiplies an array of complex numbers in host memory by the message's, element by element.
 *
 * Contract: elements are pairs of double (real, imaginary); a message holds whole elements and begins on one in the
 * entry. A packet carries at most PACKET_BYTES. No constants, no state. x = x * y:  re = xr * yr - xi * yi,  im = xr *
 * yi + xi * yr, every product and sum rounded by itself. The array's piece is fetched to the stack, which is this
 * processor's own: its accesses need no order with others'. Source: SC'17 sPIN paper, section 4.4.2 and appendix C.3.2,
 * whose listing multiplies pairs of float.
 */
#include "spinloom/handler.h"

#define PACKET_BYTES 4096

int payload_handler(const ptl_payload_t p, void *state) {
  double x[PACKET_BYTES / sizeof(double)];
  const double *const y = (const double *)p.base;
  const uint32_t numbers = (uint32_t)p.length / sizeof(double);
  (void)state;
  if (p.length > sizeof x) return FAIL;
  const int fetched = PtlHandlerDMAFromHostB(p.offset, x, p.length, PTL_ME_HOST_MEM);
  if (fetched != SUCCESS) return fetched;
  for (uint32_t i = 0; i + 1 < numbers; i += 2) {
    const double real = x[i] * y[i] - x[i + 1] * y[i + 1];
    x[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i];
    x[i] = real;
  }
  return PtlHandlerDMAToHostB(x, p.offset, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);
}
