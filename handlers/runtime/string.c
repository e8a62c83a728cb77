/* memcpy and its relatives for HPUs, also where the compiler calls them for a struct or a loop. */
#include <stdint.h>
#include <string.h>

typedef uint32_t __attribute__((may_alias)) word_t;

static int is_aligned(const void *one, const void *other) {
  return (((uintptr_t)one | (uintptr_t)other) & (sizeof(word_t) - 1)) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
  uint8_t *write = to;
  const uint8_t *read = from;
  if (is_aligned(to, from)) {
    for (; bytes >= sizeof(word_t); bytes -= sizeof(word_t), write += sizeof(word_t), read += sizeof(word_t)) {
      *(word_t *)write = *(const word_t *)read;
    }
  }
  for (; bytes > 0; --bytes) *write++ = *read++;
  return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
  uint8_t *write = to;
  const uint8_t *read = from;
  if ((uintptr_t)to - (uintptr_t)from >= bytes) return memcpy(to, from, bytes);
  while (bytes > 0) {
    --bytes;
    write[bytes] = read[bytes];
  }
  return to;
}

void *memset(void *to, int value, size_t bytes) {
  uint8_t *write = to;
  if (is_aligned(to, to)) {
    const word_t word = (word_t)(uint8_t)value * 0x01010101u;
    for (; bytes >= sizeof(word_t); bytes -= sizeof(word_t), write += sizeof(word_t)) *(word_t *)write = word;
  }
  for (; bytes > 0; --bytes) *write++ = (uint8_t)value;
  return to;
}

int memcmp(const void *one, const void *other, size_t bytes) {
  const uint8_t *left = one;
  const uint8_t *right = other;
  for (; bytes > 0; --bytes, ++left, ++right) {
    if (*left != *right) return *left < *right ? -1 : 1;
  }
  return 0;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return length;
}
