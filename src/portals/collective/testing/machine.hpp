// Machine - ranks on the loopback driver that play random schedules of users, and a plain reference for them.
//
// Contract: Script::random() makes the operations of all ranks in one order, in which each of them could be done; the
//   reference does them so, one after the other. Each operation writes a cell of its own, and reads only cells that are
//   written by what it waits for: one that begins too early has wrong elements. An operation that waits for one of
//   several others copies the cells of all of them: one must be there.
// Threads: one. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "portals/collective/graph.hpp"

namespace spinloom::collective::test {

using Elements = std::vector<int32_t>;
inline constexpr int32_t garbage = -77'777'777;

// Memory of elements in several pieces, with guards between them.
class Cell {
 public:
  Cell(size_t count, uint32_t pieces, Random& random);
  [[nodiscard]] size_t count() const { return count_; }
  [[nodiscard]] const Pieces& pieces() const { return pieces_; }
  void fill(const Elements& elements);
  void spoil() { fill(Elements(count_, garbage)); }
  [[nodiscard]] Elements read() const;
  [[nodiscard]] bool guards_are_whole() const;

 private:
  size_t count_;
  Elements memory_;
  Pieces pieces_;
};

struct ScriptOperation {
  VertexKind kind = VertexKind::copy;
  uint32_t rank = 0;
  uint32_t peer = 0;
  uint32_t tag = 0;
  size_t from = 0;  // a cell of the rank
  size_t to = 0;  // a cell of the rank
  std::vector<size_t> any_from;  // the cells of a copy that waits for one of several operations: it copies them all
  uint32_t window = 0;  // the place at the peer, for puts, gets and atomics
  bool cpu_dependent = false;
  std::vector<uint32_t> all;  // operations of the same rank, by their numbers there
  std::vector<uint32_t> any;
  uint32_t number = 0;  // its number among the operations of its rank
};

// The operations of a schedule at all ranks of a team.
struct Script {
  uint32_t ranks = 0;
  std::vector<ScriptOperation> operations;
  std::vector<std::vector<size_t>> cells;  // each rank's cells: the number of elements that each has
  std::vector<size_t> inputs;  // the number of each rank's cells that are inputs
  std::vector<uint32_t> windows;  // the number of each rank's places for puts
  std::vector<uint32_t> sums;  // the number of each rank's places for atomics

  static Script random(uint32_t ranks, uint32_t count, size_t elements_max, Random& random);
  // Returns the elements of each cell of each rank at the end of start `start`, if input() gives those of the inputs.
  using Input = int32_t (*)(uint64_t start, uint32_t rank, size_t cell, size_t element);
  [[nodiscard]] std::vector<std::vector<Elements>> play(uint64_t start, Input input) const;
  // The values that puts bring to the windows of a rank, and atomics to its sums, each with its element's place there.
  struct Places {
    std::vector<std::pair<size_t, int32_t>> windows;
    std::vector<std::pair<size_t, int32_t>> sums;
  };
  [[nodiscard]] Places play_places(uint64_t start, Input input, uint32_t rank) const;

 private:
  template <class Visit>
  [[nodiscard]] std::vector<std::vector<Elements>> play_with(uint64_t start, Input input, const Visit& visit) const;
};

inline constexpr size_t window_elements = 16;

}  // namespace spinloom::collective::test
