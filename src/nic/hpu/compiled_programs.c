#include "compiled_programs.h"

static uint32_t next_random(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8 ^ *state << 9;
}

static void fill(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) memory[i] = (uint8_t)next_random(&seed);
}

static uint32_t digest(const uint8_t* memory, uint32_t bytes) {
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < bytes; ++i) hash = (hash ^ memory[i]) * 16777619u;
  return hash;
}

static void quick_sort(int32_t* values, int32_t low, int32_t high) {
  while (low < high) {
    const int32_t pivot = values[low + (high - low) / 2];
    int32_t i = low;
    int32_t j = high;
    while (i <= j) {
      while (values[i] < pivot) ++i;
      while (values[j] > pivot) --j;
      if (i <= j) {
        const int32_t swapped = values[i];
        values[i++] = values[j];
        values[j--] = swapped;
      }
    }
    if (j - low < high - i) { /* the shorter part by recursion: the stack stays small */
      quick_sort(values, low, j);
      low = i;
    } else {
      quick_sort(values, i, high);
      high = j;
    }
  }
}

uint32_t program_sort(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  fill(seed, memory, bytes);
  quick_sort((int32_t*)(void*)memory, 0, (int32_t)(bytes / 4) - 1);
  return digest(memory, bytes);
}

/* Shifts, sums and products of 64 bits: no library routine is needed for them on RV32. */
uint32_t program_arithmetic_64(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  uint64_t a = seed;
  uint64_t b = ~(uint64_t)seed << 13;
  for (uint32_t i = 0; i + 8 <= bytes; i += 8) {
    const uint32_t shift = next_random(&seed) & 63;
    a = a * 6364136223846793005u + b;
    b = (b << (shift & 31)) ^ (a >> (shift & 31)) ^ (uint64_t)((int64_t)a >> 7);
    const uint64_t sum = a + b - (a < b) + ((int64_t)a < (int64_t)b ? shift : 0);
    for (uint32_t k = 0; k < 8; ++k) memory[i + k] = (uint8_t)(sum >> (8 * k));
  }
  return digest(memory, bytes);
}

uint32_t program_misaligned_copy(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  const uint32_t half = bytes / 2;
  fill(seed, memory, bytes);
  for (uint32_t round = 0; round < 16; ++round) {
    const uint32_t from = next_random(&seed) & 15;
    const uint32_t to = half + (next_random(&seed) & 15);
    const uint32_t count = half - 32;
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) { /* plain word accesses at odd addresses: legal on the core and on x86 */
      uint32_t word;
      __builtin_memcpy(&word, memory + from + i, 4);
      word += round;
      __builtin_memcpy(memory + to + i, &word, 4);
    }
    for (; i < count; ++i) memory[to + i] = memory[from + i];
  }
  return digest(memory, bytes);
}

uint32_t program_crc(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  uint32_t crc = 0xffffffffu;
  fill(seed, memory, bytes);
  for (uint32_t i = 0; i < bytes; ++i) {
    crc ^= memory[i];
    for (uint32_t bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

uint32_t program_divide(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i + 4 <= bytes; i += 4) {
    const uint32_t a = next_random(&seed);
    const uint32_t b = next_random(&seed) >> (i & 31) | 1;
    const int32_t c = (int32_t)(b | 2);
    const uint32_t value = a / b + a % b + (uint32_t)((int32_t)a / c) - (uint32_t)((int32_t)a % c);
    sum += value;
    for (uint32_t k = 0; k < 4; ++k) memory[i + k] = (uint8_t)(value >> (8 * k));
  }
  return sum;
}

static uint32_t add_one(uint32_t x) { return x + 1; }
static uint32_t rotate(uint32_t x) { return x << 7 | x >> 25; }
static uint32_t invert(uint32_t x) { return ~x; }
static uint32_t triple(uint32_t x) { return x * 3; }

/* A table of functions in read-only data: indirect calls. */
uint32_t program_indirect(uint32_t seed, uint8_t* memory, uint32_t bytes) {
  static uint32_t (*const table[])(uint32_t) = {add_one, rotate, invert, triple};
  uint32_t value = seed;
  for (uint32_t i = 0; i < bytes; ++i) {
    value = table[next_random(&seed) & 3](value);
    memory[i] = (uint8_t)value;
  }
  return value;
}
