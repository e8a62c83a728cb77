// Test moves - random and chosen messages, moved by some runner of programs and compared with the type map.
//
// Contract: check() packs and unpacks a case with the kernel of a name (empty: chosen) and copies it to another layout;
//   check_copy() copies test_case.type to test_case.target. All memory is compared after each: bytes, gaps, guards, and
//   what was only read. Both return the kernel that packed (copied). A runner is handed the program, the addresses, and
//   the buffers in which they lie, and leaves in the buffers what the program wrote.
// Invariants: the same seed gives the same bytes and places.
// Threads: tests run in one thread. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "memory/gpu/program.hpp"
#include "memory/layout/type.hpp"

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

struct Case {
  layout::Type type;
  int64_t count = 1;
  std::optional<layout::Type> target;
  int64_t target_count = 1;
  std::string name;
};

Case case_of(const layout::Type& type, int64_t count, Random& random);
Case random_case(Random& random);

std::string check(const Case& test_case, std::string_view kernel, Random& random, const Runner& run);
std::string check_copy(const Case& test_case, std::string_view kernel, Random& random, const Runner& run);
// Packs and unpacks the 26 faces, edges and corners of a cube of doubles, each direction one program.
void check_halo(int64_t side, std::string_view kernel, const Runner& run);
// Packs `pairs` messages whose addresses are all given apart.
void check_pairs(uint32_t pairs, const Runner& run);

}  // namespace spinloom::gpu::test
