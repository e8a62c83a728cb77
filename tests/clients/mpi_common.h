/* Shared by the MPI programs: a count of answers, and bytes that identify their message.
 *
 * Contract: begin() is MPI_Init, end() is main's exit code after MPI_Finalize: 0 where every answer of this rank was
 * right. Byte i of the message `key` is letter(key, i). A wrong answer is printed. Threads: one. Time: real; nothing
 * here relies on speed.
 */
#ifndef SPINLOOM_TESTS_MPI_COMMON_H
#define SPINLOOM_TESTS_MPI_COMMON_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static unsigned long long answers, wrong;

static inline void expect(int line, const char* what, long long expected, long long found) {
  ++answers;
  if (found == expected) return;
  if (++wrong <= 20) printf("rank %d, line %d: %s is %lld, not %lld\n", rank, line, what, found, expected);
}
#define EXPECT(expected, what) expect(__LINE__, #what, (long long)(expected), (long long)(what))

/* MPI's own error handler ends the job where a call fails. */
static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline int end(void) {
  MPI_Finalize();
  printf("rank %d of %d: %llu answers, %llu wrong\n", rank, ranks, answers, wrong);
  return wrong == 0 && answers > 0 ? 0 : 1;
}

static inline uint64_t word_of(uint64_t key, uint64_t index) {
  uint64_t z = key * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u + 1;
  z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline unsigned char letter(uint64_t key, uint64_t i) {
  return (unsigned char)(word_of(key, i / 8) >> (8 * (i % 8)));
}

static inline void fill(unsigned char* at, uint64_t key, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) at[i] = letter(key, i);
}

/* The first byte that is another one, or -1. */
static inline long long difference(const unsigned char* at, uint64_t key, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) {
    if (at[i] != letter(key, i)) return (long long)i;
  }
  return -1;
}
#define EXPECT_BYTES(at, key, bytes) \
  expect(__LINE__, "the first wrong byte of " #at, -1, difference((const unsigned char*)(at), key, bytes))

static inline void* memory(uint64_t bytes) {
  void* made = calloc(1, bytes == 0 ? 1 : bytes);
  if (made == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  return made;
}

/* A sequence of numbers that every rank draws alike from the same seed. */
static inline uint64_t drawn(uint64_t* state) { return word_of(0x5eed, ++*state); }
static inline int below(uint64_t* state, int limit) { return (int)(drawn(state) % (uint64_t)limit); }

#endif
