#include "memory/gpu/kernel_text.hpp"

#ifdef SPINLOOM_FATBIN
__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "spinloom_fatbin:\n"
    ".incbin \"" SPINLOOM_FATBIN
    "\"\n"
    ".previous\n");
extern "C" const char spinloom_fatbin[] __attribute__((visibility("hidden")));
#endif

namespace spinloom::gpu {

const void* kernel_fatbin() {
#ifdef SPINLOOM_FATBIN
  return spinloom_fatbin;
#else
  return nullptr;
#endif
}

}  // namespace spinloom::gpu
