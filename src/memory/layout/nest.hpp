// Nest - a normalised datatype in memory: loops, lists and runs, before it is written down as a blob.
//
// Contract: a nest is immutable and shared; a Placed nest lies at a displacement in bytes. The kinds are
//   those of the blob's nodes (include/spinloom/layout_walk.h).
// Invariants: (1) the first packed byte of a nest lies at its offset 0, so equal shapes are equal nests wherever they
//   lie; (2) a nest holds at least one byte; no bytes is a Placed without a nest; (3) loops, lists, runs and members
//   have count >= 2; a vector of count 1 is a run, with stride 0.
// Threads: immutable. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace spinloom::layout {

enum class NestKind : uint8_t { vector, list, runs, loop, child_list, members };

struct Nest;
using NestPtr = std::shared_ptr<const Nest>;

struct Nest {
  NestKind kind = NestKind::vector;
  int64_t count = 0;
  int64_t size = 0;                // packed bytes
  int64_t block = 0;               // packed bytes of one run or child; runs, members: 0
  int64_t stride = 0;              // vector, loop
  std::vector<int64_t> offsets;    // list, runs, child_list, members
  std::vector<int64_t> lengths;    // runs
  std::vector<NestPtr> children;   // loop, child_list: one; members: count
  int64_t depth = 1;               // levels, this one included

  [[nodiscard]] bool is_run() const { return kind == NestKind::vector && count == 1; }
};

struct PlacedNest {
  int64_t displacement = 0;
  NestPtr nest;  // null: no bytes

  [[nodiscard]] bool empty() const { return nest == nullptr; }
};

// Returns one line for tests and explanations, such as "16 + vector(32, 3072 B, stride 49152 B)", or "nothing".
std::string describe(const PlacedNest& placed);

}  // namespace spinloom::layout
