/* The part of the C library's string.h that handlers have on an HPU.
 *
 * Contract: the functions mean what C11 says. They are ordinary instructions of the handler
 *   (handlers/runtime/string.c), word by word where both addresses allow it, and cost what those cost. Native handlers
 *   use the host's own string.h.
 * Threads: as the handler's memory. Time: none but the instructions'.
 */
#ifndef SPINLOOM_RUNTIME_STRING_H
#define SPINLOOM_RUNTIME_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);
size_t strlen(const char *text);

#endif
