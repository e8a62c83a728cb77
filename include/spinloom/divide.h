/* Division of 64-bit numbers for handlers: the functions that the compiler calls on a 32-bit core.
 *
 * Contract: a handler that divides 64-bit numbers by anything but a constant includes this header once; otherwise the
 * linker misses __udivdi3 and similar functions. Wide numbers take 64 steps of some five instructions; numbers below
 * 2^32 take one instruction. Division by zero does not trap, as RISC-V's own does not, and has no meaningful result.
 * Threads: pure. Time: see above.
 */
#ifndef SPINLOOM_DIVIDE_H
#define SPINLOOM_DIVIDE_H

#if defined(__riscv)

#include <stdint.h>

static inline uint64_t spl_divide(uint64_t number, uint64_t by, uint64_t *rest) {
  if ((number | by) >> 32 == 0) {
    *rest = (uint32_t)number % (uint32_t)by;
    return (uint32_t)number / (uint32_t)by;
  }
  uint64_t quotient = 0, left = 0;
  for (int bit = 63; bit >= 0; --bit) {
    const uint64_t carry = left >> 63;
    left = left << 1 | (number >> bit & 1);
    if (carry != 0 || left >= by) {
      left -= by;
      quotient |= (uint64_t)1 << bit;
    }
  }
  *rest = left;
  return quotient;
}
static inline uint64_t spl_magnitude(int64_t number) { return number < 0 ? 0 - (uint64_t)number : (uint64_t)number; }

uint64_t __udivdi3(uint64_t number, uint64_t by);
uint64_t __umoddi3(uint64_t number, uint64_t by);
int64_t __divdi3(int64_t number, int64_t by);
int64_t __moddi3(int64_t number, int64_t by);

uint64_t __udivdi3(uint64_t number, uint64_t by) {
  uint64_t rest;
  return spl_divide(number, by, &rest);
}
uint64_t __umoddi3(uint64_t number, uint64_t by) {
  uint64_t rest;
  (void)spl_divide(number, by, &rest);
  return rest;
}
int64_t __divdi3(int64_t number, int64_t by) {
  uint64_t rest;
  const uint64_t quotient = spl_divide(spl_magnitude(number), spl_magnitude(by), &rest);
  return (int64_t)((number < 0) != (by < 0) ? 0 - quotient : quotient);
}
int64_t __moddi3(int64_t number, int64_t by) {
  uint64_t rest;
  (void)spl_divide(spl_magnitude(number), spl_magnitude(by), &rest);
  return (int64_t)(number < 0 ? 0 - rest : rest);
}

#endif /* __riscv */

#endif
