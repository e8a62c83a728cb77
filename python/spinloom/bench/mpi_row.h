/* MPI row - the two datatypes of a bench row, built with the MPI's own constructors, and the memory that they describe.
 *
 * Contract: load_sides(FILE) reads what src/app/measure/mpi_program.hpp describes and fills `sides`: 0 for the
 *   first type, 1 for the second. fill() and hash_of() are those of src/app/measure/layout_bench.cpp.
 * Threads: one. Time: now_ns() is the host's clock.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  int64_t size, true_lb, true_extent;
  MPI_Datatype type;
  int64_t *words, word_count; /* the program that builds the type */
  char* memory; /* true_extent bytes, from the true lower bound on */
} side;

static side sides[2];

static uint64_t pattern(uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  return word ^ (word >> 27);
}

static void fill(char* bytes, int64_t length, uint64_t seed) {
  for (int64_t at = 0; at < length; at += 8) {
    const uint64_t word = pattern(seed + (uint64_t)at / 8);
    memcpy(bytes + at, &word, (size_t)(length - at < 8 ? length - at : 8));
  }
}

static uint64_t hash_of(const char* bytes, int64_t length) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, bytes + at, (size_t)(length - at < 8 ? length - at : 8));
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

static void* must_allocate(int64_t bytes) {
  void* made = NULL;
  if (posix_memalign(&made, 64, (size_t)(bytes > 0 ? bytes : 1)) != 0) abort();
  return made;
}

/* Goes over so many bytes of other memory: so a computation leaves the caches. */
static __attribute__((unused)) void sweep(long bytes) {
  static char* swept;
  static long room;
  if (bytes > room) {
    free(swept);
    swept = must_allocate((size_t)bytes);
    room = bytes;
  }
  for (long i = 0; i < bytes; i += 64) ++swept[i];
}

static int* ints(const int64_t* words, int64_t count) {
  int* made = must_allocate(count * (int64_t)sizeof(int));
  for (int64_t i = 0; i < count; ++i) made[i] = (int)words[i];
  return made;
}

static MPI_Aint* addresses(const int64_t* words, int64_t count) {
  MPI_Aint* made = must_allocate(count * (int64_t)sizeof(MPI_Aint));
  for (int64_t i = 0; i < count; ++i) made[i] = (MPI_Aint)words[i];
  return made;
}

static MPI_Datatype primitive(int64_t bytes) {
  switch (bytes) {
    case 1: return MPI_BYTE;
    case 2: return MPI_SHORT;
    case 4: return MPI_FLOAT;
    case 8: return MPI_DOUBLE;
    default: return MPI_C_DOUBLE_COMPLEX;
  }
}

/* Runs a postfix program; intermediate types are freed when the program ends. */
static MPI_Datatype build(const int64_t* word, const int64_t* end) {
  static MPI_Datatype stack[4096], made[4096];
  int depth = 0, total = 0;
  while (word != end) {
    const int64_t code = *word++;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    if (code == 0) {
      stack[depth++] = primitive(*word++);
      continue;
    }
    MPI_Datatype child = stack[depth - 1];
    if (code == 1) {
      MPI_Type_contiguous((int)word[0], child, &type);
      word += 1;
    } else if (code == 2) {
      MPI_Type_vector((int)word[0], (int)word[1], (int)word[2], child, &type);
      word += 3;
    } else if (code == 3) {
      MPI_Type_create_hvector((int)word[0], (int)word[1], (MPI_Aint)word[2], child, &type);
      word += 3;
    } else if (code == 4 || code == 5) {
      const int64_t n = *word++;
      int* lengths = ints(word + n, n);
      if (code == 4) {
        int* at = ints(word, n);
        MPI_Type_indexed((int)n, lengths, at, child, &type);
        free(at);
      } else {
        MPI_Aint* at = addresses(word, n);
        MPI_Type_create_hindexed((int)n, lengths, at, child, &type);
        free(at);
      }
      free(lengths);
      word += 2 * n;
    } else if (code == 6 || code == 7) {
      const int64_t n = word[0];
      if (code == 6) {
        int* at = ints(word + 2, n);
        MPI_Type_create_indexed_block((int)n, (int)word[1], at, child, &type);
        free(at);
      } else {
        MPI_Aint* at = addresses(word + 2, n);
        MPI_Type_create_hindexed_block((int)n, (int)word[1], at, child, &type);
        free(at);
      }
      word += 2 + n;
    } else if (code == 8) {
      const int64_t n = *word++;
      MPI_Aint* at = addresses(word, n);
      int* lengths = ints(word + n, n);
      MPI_Type_create_struct((int)n, lengths, at, stack + depth - n, &type);
      free(at);
      free(lengths);
      depth -= (int)n - 1;
      word += 2 * n;
    } else if (code == 9) {
      MPI_Type_create_resized(child, (MPI_Aint)word[0], (MPI_Aint)word[1], &type);
      word += 2;
    } else {
      const int64_t n = word[0];
      int *sizes = ints(word + 2, n), *subsizes = ints(word + 2 + n, n), *starts = ints(word + 2 + 2 * n, n);
      MPI_Type_create_subarray((int)n, sizes, subsizes, starts, word[1] ? MPI_ORDER_FORTRAN : MPI_ORDER_C, child,
                               &type);
      free(sizes);
      free(subsizes);
      free(starts);
      word += 2 + 3 * n;
    }
    stack[depth - 1] = made[total++] = type;
  }
  MPI_Datatype result;
  MPI_Type_dup(stack[0], &result);
  MPI_Type_commit(&result);
  while (total > 0) MPI_Type_free(&made[--total]);
  return result;
}

static int load_sides(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) return 0;
  for (int i = 0; i < 2; ++i) {
    int64_t head[4];
    if (sides[i].memory) {
      free(sides[i].memory);
      free(sides[i].words);
      MPI_Type_free(&sides[i].type);
      sides[i].memory = NULL;
    }
    if (fread(head, sizeof head, 1, file) != 1) return 0;
    int64_t* words = must_allocate(head[3] * 8);
    if (fread(words, 8, (size_t)head[3], file) != (size_t)head[3]) return 0;
    sides[i].size = head[0];
    sides[i].true_lb = head[1];
    sides[i].true_extent = head[2];
    sides[i].type = build(words, words + head[3]);
    sides[i].memory = must_allocate(head[2]);
    sides[i].words = words;
    sides[i].word_count = head[3];
  }
  fclose(file);
  return 1;
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}
