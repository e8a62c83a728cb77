/* Draw - seeded randomness: the same numbers from the same seed, on every rank that asks in the same order. */
#ifndef DRAW_H
#define DRAW_H
#include <stdint.h>

typedef struct {
  uint64_t state;
} Draw;

static inline uint64_t draw_next(Draw* draw) { /* splitmix64 */
  uint64_t z = (draw->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline long below(Draw* draw, long n) { return n <= 1 ? 0 : (long)(draw_next(draw) % (uint64_t)n); }
static inline int one_in(Draw* draw, long n) { return below(draw, n) == 0; }
/* A number from 1 to most: small ones as often as large ones of any order of magnitude. */
static inline long magnitude(Draw* draw, long most) {
  int bits = 0;
  while (most >> (bits + 1) > 0) ++bits;
  long const top = 1L << below(draw, bits + 1), n = top + below(draw, top);
  return n > most ? most : n;
}
static inline Draw draw_from(uint64_t a, uint64_t b, uint64_t c) {
  Draw draw = {a * 0x9e3779b97f4a7c15u + 1};
  draw.state = draw_next(&draw) ^ b * 0xbf58476d1ce4e5b9u;
  draw.state = draw_next(&draw) ^ c * 0x94d049bb133111ebu;
  return draw;
}
static inline void shuffle(Draw* draw, int n, int* list) {
  for (int i = n - 1; i > 0; --i) {
    int const j = (int)below(draw, i + 1), k = list[i];
    list[i] = list[j], list[j] = k;
  }
}
#endif
