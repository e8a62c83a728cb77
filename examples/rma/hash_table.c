/* hash_table [WORDS]: a hash table that lies at all ranks. Each rank inserts keys, many of which others insert, too, and
 * counts how often each was inserted.
 *
 * A slot has two elements: a key, 0 while the slot is free, and a count. Who finds a free slot claims it by a compare and
 * swap; if another rank was faster with another key, it looks at the next slot. */
#include "global_array.h"

static uint64_t mixed(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  return (key ^ (key >> 27)) * 0x94d049bb133111ebu;
}

/* The slot of the key, which is claimed if there is none. */
static uint64_t slot_of(Array* table, uint64_t slots, uint64_t key) {
  for (uint64_t slot = (mixed(key) >> 20) % slots;; slot = (slot + 1) % slots) {
    const uint64_t was = array_swap(table, 2 * slot, 0, key);
    if (was == 0 || was == key) return slot;
  }
}

int main(int argc, char** argv) {
  const unsigned words = argc > 1 ? (unsigned)atoi(argv[1]) : 300;
  static const uint64_t one = 1;
  ptl_handle_ni_t ni;
  Array table;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK) {
    return 1;
  }
  const uint64_t slots = 2 * (uint64_t)words;
  array_open(&table, ni, 2 * slots);
  /* Rank r inserts the multiples of r + 1 up to `words`, so key k comes as often as it has divisors among them. */
  for (uint64_t key = table.rank + 1; key <= words; key += table.rank + 1) {
    array_add(&table, 2 * slot_of(&table, slots, key) + 1, &one);
  }
  array_fence(&table);
  /* Each rank looks a part of the keys up. */
  uint64_t wrong = 0;
  for (uint64_t key = table.rank + 1; key <= words; key += table.ranks) {
    uint64_t divisors = 0;
    for (uint64_t by = 1; by <= table.ranks; ++by) divisors += key % by == 0;
    wrong += array_get(&table, 2 * slot_of(&table, slots, key) + 1) != divisors;
  }
  array_fence(&table);
  printf("rank %u of %u: %u keys, %llu wrong\n", table.rank, table.ranks, words, (unsigned long long)wrong);
  array_close(&table);
  PtlNIFini(ni);
  PtlFini();
  return wrong != 0;
}
