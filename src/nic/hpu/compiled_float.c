#include "compiled_float.h"

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8 ^ *state << 9;
}

/* Returns a number between -1 and 1. */
static double next_number(uint32_t* state) { return (double)(int32_t)next_random(state) * 0x1p-31; }

static uint32_t digest(const uint8_t* memory, uint32_t bytes) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < bytes; ++i) hash = (hash ^ memory[i]) * 16777619u;
  return hash;
}

/* Products of complex numbers, as the accumulate handler makes them; magnitudes shrink until they are subnormal. */
uint32_t program_complex(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  double* const x = (double*)(void*)memory;
  const uint32_t numbers = bytes / 8;
  for (uint32_t i = 0; i < numbers; ++i) x[i] = next_number(&seed) * 0x1p-900;
  for (uint32_t round = 0; round < 30; ++round) {
    for (uint32_t i = 0; i + 1 < numbers; i += 2) {
      const double re = next_number(&seed) * 0x1p-10;
      const double im = next_number(&seed) * 0x1p-10;
      const double real = x[i] * re - x[i + 1] * im;
      x[i + 1] = x[i] * im + x[i + 1] * re;
      x[i] = real;
    }
  }
  return digest(memory, bytes);
}

/* A polynomial of the same numbers in single precision, with a division. */
uint32_t program_single(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  float* const x = (float*)(void*)memory;
  for (uint32_t i = 0; i < bytes / 4; ++i) {
    const float y = (float)next_number(&seed) * 4.0f;
    x[i] = ((y * 0.3f + 1.7f) * y - 2.5f) / (y * y + 0.01f);
  }
  return digest(memory, bytes);
}

/* Integers, single and double by turns. */
uint32_t program_mixed(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i + 8 <= bytes; i += 8) {
    const double a = next_number(&seed) * 0x1p31;
    const float b = (float)a;
    const int32_t c = (int32_t)(a * 0.99);
    const uint32_t d = (uint32_t)(a < 0 ? -a : a);
    const double e = (double)b + (double)c - (double)d * 0.5;
    sum += (uint32_t)c ^ d ^ (uint32_t)(e > 0);
    __builtin_memcpy(memory + i, &e, sizeof e);
  }
  return sum ^ digest(memory, bytes);
}

/* Square roots by Newton's steps and by the instruction, in both precisions. */
uint32_t program_roots(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  double* const x = (double*)(void*)memory;
  for (uint32_t i = 0; i < bytes / 8; ++i) {
    const double a = next_number(&seed) * 1000.0;
    const double square = a * a + 0.5;
    double root = square;
    for (int step = 0; step < 20; ++step) root = 0.5 * (root + square / root);
    x[i] = root - __builtin_sqrt(square) + (double)__builtin_sqrtf((float)square);
  }
  return digest(memory, bytes);
}

uint32_t program_sort_numbers(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  double* const x = (double*)(void*)memory;
  const uint32_t count = bytes / 8;
  for (uint32_t i = 0; i < count; ++i) x[i] = next_number(&seed);
  for (uint32_t i = 1; i < count; ++i) {
    const double moved = x[i];
    uint32_t at = i;
    for (; at > 0 && x[at - 1] > moved; --at) x[at] = x[at - 1];
    x[at] = moved;
  }
  return digest(memory, bytes);
}

/* The rounding errors of products, which are exact only if a fused multiply-add rounds once. */
uint32_t program_fused(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  double* const x = (double*)(void*)memory;
  for (uint32_t i = 0; i < bytes / 8; ++i) {
    const double a = next_number(&seed);
    const double b = next_number(&seed);
    const double product = a * b;
    const float c = (float)a;
    x[i] = __builtin_fma(a, b, -product) + (double)__builtin_fmaf(c, c, -1.0f);
  }
  return digest(memory, bytes);
}
