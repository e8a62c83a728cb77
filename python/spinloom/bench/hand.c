/* Hand - the loops that a user would write instead of a datatype, compiled where they run: cc -O3 -march=native.
 *
 * Contract: a layout is an array of hand_part: up to two nested loops (rows, then blocks) around a block of
 *   whole elements, or a list of blocks, as the application that has the data would write it down. Every size is
 *   known at run time only. Each loop exists once by element (what benchmarks of datatypes do), once with memcpy a
 *   block; the caller takes the quicker one. Strides and places count elements, offsets bytes.
 * Threads: pure over disjoint memory. Time: none.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  int64_t offset; /* bytes from the buffer address */
  int64_t rows, blocks, block;
  int64_t row_stride, block_stride;
  const int32_t* places;  /* a list: blocks places, block_stride unused */
  const int32_t* lengths; /* runs: the length of each block */
  int64_t element;        /* bytes: 1, 2, 4, 8, 16 */
} hand_part;

typedef struct {
  double re, im;
} pair;

#define LOOPS(T)                                                                                              \
  static char* pack_##T(const hand_part* p, char* packed, const char* memory) {                               \
    T* restrict out = (T*)packed;                                                                             \
    const T* restrict in = (const T*)(memory + p->offset);                                                    \
    const int64_t rows = p->rows, blocks = p->blocks, block = p->block;                                       \
    int64_t n = 0;                                                                                            \
    if (p->lengths) {                                                                                         \
      for (int64_t j = 0; j < blocks; ++j)                                                                    \
        for (int64_t k = 0; k < p->lengths[j]; ++k) out[n++] = in[p->places[j] + k];                          \
    } else if (p->places && block == 1) {                                                                     \
      for (int64_t j = 0; j < blocks; ++j) out[n++] = in[p->places[j]];                                       \
    } else if (p->places) {                                                                                   \
      for (int64_t j = 0; j < blocks; ++j)                                                                    \
        for (int64_t k = 0; k < block; ++k) out[n++] = in[p->places[j] + k];                                  \
    } else if (block == 1) {                                                                                  \
      for (int64_t i = 0; i < rows; ++i)                                                                      \
        for (int64_t j = 0; j < blocks; ++j) out[n++] = in[i * p->row_stride + j * p->block_stride];          \
    } else {                                                                                                  \
      for (int64_t i = 0; i < rows; ++i)                                                                      \
        for (int64_t j = 0; j < blocks; ++j)                                                                  \
          for (int64_t k = 0; k < block; ++k) out[n++] = in[i * p->row_stride + j * p->block_stride + k];     \
    }                                                                                                         \
    return (char*)(out + n);                                                                                  \
  }                                                                                                           \
  static const char* unpack_##T(const hand_part* p, const char* packed, char* memory) {                       \
    const T* restrict in = (const T*)packed;                                                                  \
    T* restrict out = (T*)(memory + p->offset);                                                               \
    const int64_t rows = p->rows, blocks = p->blocks, block = p->block;                                       \
    int64_t n = 0;                                                                                            \
    if (p->lengths) {                                                                                         \
      for (int64_t j = 0; j < blocks; ++j)                                                                    \
        for (int64_t k = 0; k < p->lengths[j]; ++k) out[p->places[j] + k] = in[n++];                          \
    } else if (p->places && block == 1) {                                                                     \
      for (int64_t j = 0; j < blocks; ++j) out[p->places[j]] = in[n++];                                       \
    } else if (p->places) {                                                                                   \
      for (int64_t j = 0; j < blocks; ++j)                                                                    \
        for (int64_t k = 0; k < block; ++k) out[p->places[j] + k] = in[n++];                                  \
    } else if (block == 1) {                                                                                  \
      for (int64_t i = 0; i < rows; ++i)                                                                      \
        for (int64_t j = 0; j < blocks; ++j) out[i * p->row_stride + j * p->block_stride] = in[n++];          \
    } else {                                                                                                  \
      for (int64_t i = 0; i < rows; ++i)                                                                      \
        for (int64_t j = 0; j < blocks; ++j)                                                                  \
          for (int64_t k = 0; k < block; ++k) out[i * p->row_stride + j * p->block_stride + k] = in[n++];     \
    }                                                                                                         \
    return (const char*)(in + n);                                                                             \
  }                                                                                                           \
  static void copy_##T(const hand_part* to, char* target, const hand_part* from, const char* source) {        \
    T* restrict out = (T*)(target + to->offset);                                                              \
    const T* restrict in = (const T*)(source + from->offset);                                                 \
    const int64_t rows = to->rows, blocks = to->blocks, block = to->block;                                    \
    if (to->lengths || from->lengths) {                                                                       \
      for (int64_t j = 0; j < blocks; ++j)                                                                    \
        for (int64_t k = 0; k < to->lengths[j]; ++k) out[to->places[j] + k] = in[from->places[j] + k];        \
    } else if (to->places && from->places) {                                                                  \
      for (int64_t j = 0; j < blocks; ++j)                                                                    \
        for (int64_t k = 0; k < block; ++k) out[to->places[j] + k] = in[from->places[j] + k];                 \
    } else if (block == 1) {                                                                                  \
      for (int64_t i = 0; i < rows; ++i)                                                                      \
        for (int64_t j = 0; j < blocks; ++j)                                                                  \
          out[i * to->row_stride + j * to->block_stride] = in[i * from->row_stride + j * from->block_stride]; \
    } else {                                                                                                  \
      for (int64_t i = 0; i < rows; ++i)                                                                      \
        for (int64_t j = 0; j < blocks; ++j)                                                                  \
          for (int64_t k = 0; k < block; ++k)                                                                 \
            out[i * to->row_stride + j * to->block_stride + k] =                                              \
                in[i * from->row_stride + j * from->block_stride + k];                                        \
    }                                                                                                         \
  }

LOOPS(char)
LOOPS(short)
LOOPS(float)
LOOPS(double)
LOOPS(pair)

#define BY_ELEMENT(verb, part, ...)            \
  switch ((part)->element) {                   \
    case 1: verb##_char(__VA_ARGS__); break;   \
    case 2: verb##_short(__VA_ARGS__); break;  \
    case 4: verb##_float(__VA_ARGS__); break;  \
    case 8: verb##_double(__VA_ARGS__); break; \
    default: verb##_pair(__VA_ARGS__); break;  \
  }

void hand_pack(const hand_part* parts, int64_t count, char* packed, const char* memory) {
  for (const hand_part* p = parts; p != parts + count; ++p) BY_ELEMENT(packed = pack, p, p, packed, memory)
}

void hand_unpack(const hand_part* parts, int64_t count, const char* packed, char* memory) {
  for (const hand_part* p = parts; p != parts + count; ++p) BY_ELEMENT(packed = unpack, p, p, packed, memory)
}

/* The parts of both sides have the same rows, blocks, block and element. */
void hand_copy(const hand_part* to, char* target, const hand_part* from, const char* source, int64_t count) {
  for (int64_t i = 0; i < count; ++i) BY_ELEMENT(copy, to + i, to + i, target, from + i, source)
}

/* ---- a block at a time ---- */

static int64_t place(const hand_part* p, int64_t row, int64_t j) {
  return p->offset + p->element * (p->places ? p->places[j] : row * p->row_stride + j * p->block_stride);
}

static size_t bytes_of(const hand_part* p, int64_t j) {
  return (size_t)(p->element * (p->lengths ? p->lengths[j] : p->block));
}

void hand_pack_blocks(const hand_part* parts, int64_t count, char* packed, const char* memory) {
  for (int64_t n = 0; n < count; ++n) {
    const hand_part p = parts[n];
    for (int64_t i = 0; i < p.rows; ++i)
      for (int64_t j = 0; j < p.blocks; ++j) {
        const size_t bytes = bytes_of(&p, j);
        memcpy(packed, memory + place(&p, i, j), bytes);
        packed += bytes;
      }
  }
}

void hand_unpack_blocks(const hand_part* parts, int64_t count, const char* packed, char* memory) {
  for (int64_t n = 0; n < count; ++n) {
    const hand_part p = parts[n];
    for (int64_t i = 0; i < p.rows; ++i)
      for (int64_t j = 0; j < p.blocks; ++j) {
        const size_t bytes = bytes_of(&p, j);
        memcpy(memory + place(&p, i, j), packed, bytes);
        packed += bytes;
      }
  }
}

void hand_copy_blocks(const hand_part* to, char* target, const hand_part* from, const char* source, int64_t count) {
  for (int64_t n = 0; n < count; ++n) {
    const hand_part out = to[n];
    const hand_part in = from[n];
    for (int64_t i = 0; i < out.rows; ++i)
      for (int64_t j = 0; j < out.blocks; ++j)
        memcpy(target + place(&out, i, j), source + place(&in, i, j), bytes_of(&out, j));
  }
}
