// Test moves - messages, moved by some runner of programs and compared with the type map.
//
// Contract: layout_ways() are ways of the suite over all layouts (memory/layout/testing/layout_ways.hpp), one for each
//   kernel and one that chooses; a way refuses a move that its kernel cannot make. check_halo() and check_pairs() move
//   sets. A runner is handed the program, the addresses, and the buffers in which they lie, and leaves in the buffers
//   what the program wrote.
// Invariants: the same seed gives the same bytes and places.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "memory/gpu/program.hpp"
#include "memory/layout/testing/layout_ways.hpp"

namespace spinloom::gpu::test {

// Buffers that begin at multiples of 64.
struct Memory {
  struct Buffer {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  std::vector<Buffer> buffers;
};

using Runner = std::function<Status(const Program&, std::span<const Ends>, Memory&)>;

[[nodiscard]] std::vector<layout::test::LayoutWay> layout_ways(const Runner& run, uint64_t messages);
// The way with the kernel of this name; empty: chosen.
[[nodiscard]] layout::test::LayoutWay layout_way(std::string_view kernel, const Runner& run);
// Packs and unpacks the 26 faces, edges and corners of a cube of doubles, each direction one program.
void check_halo(int64_t side, std::string_view kernel, const Runner& run);
// Packs `pairs` messages whose addresses are all given apart.
void check_pairs(uint32_t pairs, const Runner& run);

}  // namespace spinloom::gpu::test
