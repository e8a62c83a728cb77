// Leaves - the inner loops of a normalised datatype, counted by shape: what a copy of it is made of.
//
// Contract: leaves_of() adds up the leaves of one element. A leaf runs once for each turn of the loops and lists
//   around it. Shapes: `single` is one run; `vector` is runs at a stride; `dense` is a vector whose gaps are no
//   longer than its runs; `across` is a vector inside a loop of a smaller stride, as in a transpose: packed order and
//   memory order disagree; `list` is equal runs at listed places; `runs` is runs of several lengths; `structs` is an
//   array of structs, each of a few short runs (is_struct() in struct_moves.hpp). Leaves of one shape and one
//   block_bytes are one entry.
// Invariants: the `bytes` of all entries add up to the type's size.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/layout/nest.hpp"

namespace spinloom::layout {

enum class LeafShape : uint8_t { single, vector, dense, across, list, runs, structs };

struct LeafGroup {
  LeafShape shape = LeafShape::single;
  int64_t block_bytes = 0;  // runs: the mean, rounded down; structs: bytes of windows that one struct costs
  int64_t nodes = 0;  // different leaves of the program
  int64_t turns = 0;  // the number of times that a leaf is entered
  int64_t blocks = 0;       // runs in all turns; for `structs`, the number of structs
  int64_t bytes = 0;
  int64_t length_changes = 0;  // runs: how often a run is not as long as the one before
  // For `across`, the number of blocks whose packed rows share two sets of a cache; those that share one count thrice.
  int64_t crowded_blocks = 0;
};

std::vector<LeafGroup> leaves_of(const PlacedNest& placed);

}  // namespace spinloom::layout
