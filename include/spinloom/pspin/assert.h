/* assert() of handlers: one that fails says so (printf) and ends the handler as a fault; natively the host's. */
#ifndef SPINLOOM_PSPIN_ASSERT_H
#define SPINLOOM_PSPIN_ASSERT_H

#if defined(__riscv)
#include "spinloom/pspin/stdio.h"
#ifndef static_assert
#define static_assert _Static_assert
#endif
#if defined(NDEBUG)
#define assert(condition) ((void)0)
#else
#define assert(condition) \
  ((condition) ? (void)0 : ((void)printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), __builtin_trap()))
#endif
#else
#include_next <assert.h>
#endif

#endif
