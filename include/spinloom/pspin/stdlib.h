/* The part of the C library's stdlib.h that handlers have: there is no heap. */
#ifndef SPINLOOM_PSPIN_STDLIB_H
#define SPINLOOM_PSPIN_STDLIB_H

#if defined(__riscv)
#include <stddef.h>
static inline int abs(int value) { return value < 0 ? -value : value; }
#else
#include_next <stdlib.h>
#endif

#endif
