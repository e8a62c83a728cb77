/* Commits the misdeed that its first constant names; its second constant is a number unknown at compile time.
 *
 * Contract: state: 8 bytes. Built as an image only. */
#include "spinloom/handler.h"

enum {
  LOOP_FOREVER,
  WRITE_OUTSIDE,
  DIVIDE_BY_ZERO,
  JUMP_TO_NOWHERE,
  RECURSE_FOREVER,
  SMASH_STACK,
  READ_BEYOND_STATE,
  WRITE_CONSTANTS,
  TRAP,
  UNKNOWN_CALL,
  UNKNOWN_CODE,
  WRITE_PACKET
};

static __attribute__((noinline)) uint32_t recurse(volatile uint32_t* above, uint32_t depth) {
  volatile uint32_t frame[16];
  frame[depth % 16] = above[0] + depth;
  if (depth == UINT32_MAX) return 0;
  return recurse(frame, depth + 1) + frame[3];
}

static __attribute__((noinline)) void smash(uint32_t words) {
  volatile uint32_t frame[4];
  volatile uint32_t* at = frame;
  for (uint32_t i = 0; i < words; ++i) at[i] = 0x70000000u + i;
}

int payload_handler(const ptl_payload_t p, void* state) {
  const volatile uint32_t* const constants = spl_constants();
  volatile uint32_t* const words = state;
  const uint32_t number = constants[1];
  switch (constants[0]) {
    case LOOP_FOREVER:
      for (;;) words[0] += 1;
    case WRITE_OUTSIDE: *(volatile uint32_t*)(uintptr_t)(number + 0x1000u) = 1; break;
    case DIVIDE_BY_ZERO: {
      uint32_t quotient; /* the compiler may think what it likes of C's division by zero */
      __asm__ volatile("divu %0, %1, %2" : "=r"(quotient) : "r"(1000u), "r"(number));
      return quotient == UINT32_MAX ? SUCCESS : 4000;
    }
    case JUMP_TO_NOWHERE: ((void (*)(void))(uintptr_t)(number + 0x70000000u))(); break;
    case RECURSE_FOREVER: return (int)recurse((volatile uint32_t*)words, number);
    case SMASH_STACK: smash(number + 12u); break;
    case READ_BEYOND_STATE: return (int)words[number + 2u];
    case WRITE_CONSTANTS: ((volatile uint32_t*)constants)[0] = number; break;
    case TRAP: __asm__ volatile("ebreak"); break;
    case UNKNOWN_CALL: (void)spl_issue(0xfeu); break;
    case UNKNOWN_CODE: return 4242;
    case WRITE_PACKET: *(volatile uint8_t*)(uintptr_t)p.base = 1; break;
    default: break;
  }
  return SUCCESS;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return SUCCESS;
}
