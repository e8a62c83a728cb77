/* histogram [NUMBERS]: each rank draws numbers and counts them in one histogram that lies at all ranks. */
#include "global_array.h"

enum { BINS = 100 };

int main(int argc, char** argv) {
  const unsigned numbers = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
  static const uint64_t one = 1;
  ptl_handle_ni_t ni;
  Array bins;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) {
    return 1;
  }
  array_open(&bins, ni, BINS);
  uint32_t state = bins.rank + 1;
  for (unsigned i = 0; i < numbers; ++i) {
    /* The sum of two draws: a triangle. */
    unsigned sum = 0;
    for (int draw = 0; draw < 2; ++draw) {
      state = state * 1664525u + 1013904223u;
      sum += (state >> 16) % (BINS / 2);
    }
    array_add(&bins, sum, &one);
  }
  array_fence(&bins);
  if (bins.rank == 0) {
    uint64_t all = 0, low = 0;
    for (uint64_t at = 0; at < BINS; ++at) {
      const uint64_t count = array_get(&bins, at);
      all += count;
      if (at < BINS / 2) low += count;
    }
    printf("%u ranks: %llu numbers, %llu of them below %d\n", bins.ranks, (unsigned long long)all,
           (unsigned long long)low, BINS / 2);
  }
  array_fence(&bins);
  array_close(&bins);
  PtlNIFini(ni);
  PtlFini();
  return 0;
}
