/* Buffer - memory for elements of a form, all of whose bytes are known, the gaps and the bytes around included.
 *
 * Contract: buffer_make() fills it with the bytes that follow from `seed`. buffer_wrong() compares it with what it must
 * hold after the first `bytes` packed bytes of what `sent` describes have been received into it. */
#ifndef BUFFER_H
#define BUFFER_H
#include "form.h"

typedef struct {
  unsigned char *arena, *memory; /* the bytes as the test sees them, and their place: the same on the host */
  unsigned char* base;           /* the address in `memory` that MPI is told */
  long length, first;            /* bytes in all; where the base lies */
  uint64_t seed;
  Form const* form;
  long count;
} Buffer;

void bytes_begin(void); /* the process does this once */
Buffer buffer_make(Form const* form, long count, uint64_t seed);
void buffer_refill(Buffer* buffer, uint64_t seed);
void buffer_free(Buffer* buffer);

typedef struct {
  Form const* form;
  long count;
  uint64_t seed;
} Sent; /* a message, as its sender has made it */

enum { all_right = -1 };
/* Where the first wrong byte lies in the arena; `any_inside`: the bytes of the form itself may be anything. */
long buffer_wrong(Buffer const* buffer, Sent const* sent, long bytes, int any_inside);
#endif
