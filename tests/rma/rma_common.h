/* Shared by the programs of one-sided memory: a context beside the interface of portals_common.h.
 *
 * Contract: RMA() ends the program with the context's error text when a call does not return PTL_OK. ANSWERS() counts
 * a code that a call has to return. The first argument of a program is the way: native, emulated, fallback (accesses
 * that are long or in small pieces are emulated) or mixed (odd ranks emulate). Threads: one. Time: none.
 */
#ifndef SPINLOOM_TESTS_RMA_COMMON_H
#define SPINLOOM_TESTS_RMA_COMMON_H

#include <spinloom/rma.h>
#include <stdint.h>

#include "../portals/portals_common.h"

static spl_rma* rma;

static void rma_must(int line, int code) {
  if (code == PTL_OK) return;
  printf("rank %u, line %d: code %d: %s\n", my_rank, line, code, spl_rma_error(rma));
  fflush(stdout);
  _exit(2);
}
#define RMA(call) rma_must(__LINE__, call)
#define ANSWERS(code, call) expect(__LINE__, #call, (unsigned long long)(code), (unsigned long long)(call))

static inline spl_rma_options options_for(const char* way) {
  spl_rma_options options = {0};
  if (strcmp(way, "emulated") == 0 || (strcmp(way, "mixed") == 0 && my_rank % 2 == 1)) options.way = SPL_RMA_EMULATED;
  if (strcmp(way, "fallback") == 0) options.above_limit = SPL_RMA_EMULATE;
  if (strcmp(way, "fallback") == 0) options.small_pieces = 64;
  return options;
}

static inline void open_rma(int argc, char** argv) {
  const spl_rma_options options = options_for(argc > 1 ? argv[1] : "native");
  RMA(spl_rma_open(ni, &options, &rma));
  EXPECT(my_rank, spl_rma_rank(rma));
  EXPECT(ranks, spl_rma_size(rma));
}

/* A generator of the programs' own: splitmix64. */
static inline uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

#endif
