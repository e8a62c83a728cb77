#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"

enum { guard = 256, prime = 65521, row = 4 * 65536 };

static unsigned char known[row + prime];

void bytes_begin(void) {
  Draw draw = draw_from(1, 2, 3);
  for (int i = 0; i < prime; ++i) known[i] = (unsigned char)draw_next(&draw);
  for (int i = prime; i < (int)sizeof known; ++i) known[i] = known[i - prime];
}

/* The bytes that a buffer made from `seed` has at `at` and behind. */
static void copy_known(unsigned char* to, uint64_t seed, long at, long length) {
  while (length > 0) {
    long const part = length < row ? length : row;
    memcpy(to, known + ((uint64_t)at + seed) % prime, (size_t)part);
    to += part, at += part, length -= part;
  }
}

static long base_of(Form const* form, long count, long* length) {
  long low, high;
  form_span(form, count, &low, &high);
  *length = high - low + 2 * guard;
  return guard - low;
}

Buffer buffer_make(Form const* form, long count, uint64_t seed) {
  Buffer buffer = {.form = form, .count = count};
  buffer.first = base_of(form, count, &buffer.length);
  buffer.memory = device_alloc(buffer.length, &buffer.arena);
  buffer.base = buffer.memory + buffer.first;
  buffer_refill(&buffer, seed);
  return buffer;
}

void buffer_refill(Buffer* buffer, uint64_t seed) {
  buffer->seed = seed % 1000000007;
  copy_known(buffer->arena, buffer->seed, 0, buffer->length);
}

void buffer_free(Buffer* buffer) { device_free(buffer->memory, buffer->arena), buffer->arena = NULL; }

static void packed_of(Sent const* sent, long bytes, unsigned char* packed) {
  long length, first = base_of(sent->form, sent->count, &length);
  Form const* const form = sent->form;
  for (long j = 0; j < sent->count && bytes > 0; ++j)
    for (long i = 0; i < form->pieces && bytes > 0; ++i) {
      long const part = form->length[i] < bytes ? form->length[i] : bytes;
      copy_known(packed, sent->seed % 1000000007, first + j * form->extent + form->at[i], part);
      packed += part, bytes -= part;
    }
}

long buffer_wrong(Buffer const* buffer, Sent const* sent, long bytes, int any_inside) {
  long const inside = buffer->form->size * buffer->count;
  unsigned char* const expected = malloc((size_t)buffer->length);
  unsigned char* const packed = malloc((size_t)(bytes > inside ? bytes : inside) + 1);
  copy_known(expected, buffer->seed, 0, buffer->length);
  if (any_inside) {
    form_gather(buffer->form, buffer->count, inside, buffer->arena + buffer->first, packed);
    form_scatter(buffer->form, buffer->count, inside, expected + buffer->first, packed);
  } else if (bytes > 0) {
    packed_of(sent, bytes, packed);
    form_scatter(buffer->form, buffer->count, bytes, expected + buffer->first, packed);
  }
  long at = all_right;
  if (memcmp(expected, buffer->arena, (size_t)buffer->length) != 0)
    for (at = 0; expected[at] == buffer->arena[at];) ++at;
  free(expected), free(packed);
  return at;
}
