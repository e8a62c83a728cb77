// LayoutWays - every layout over every way to move its bytes: one suite for all back ends.
//
// Contract: a way opens a move from one side to another; each side is a layout in memory or packed bytes. The mover
//   moves cuts of the packed bytes between two buffers. SPINLOOM_LAYOUT_SUITE(Name, ways) makes the tests: they pack,
//   unpack and copy each listed layout (tests/conformance/layouts.txt) and random messages (random_layouts.hpp), and
//   compare the whole of both buffers after each cut: blocks, gaps, guards, and what was only read. A way that cannot
//   make a move opens it with Code::unsupported. A new back end needs a file with its ways and this line.
// Invariants: (1) the same seed gives the same messages, cuts and bytes; (2) before a cut is moved, each byte that it
//   has to write is wrong; (3) a failure is shrunk, and prints the command that replays it.
// Environment: SPINLOOM_TEST_LAYOUT='3 x vector(2, 1, 5, int)' is the only message that is tried; SPINLOOM_TEST_SEED
//   is the first seed; SPINLOOM_TEST_CASES times as many random messages are tried.
// Threads: one owner. Time: that of the back end.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout::test {

// One end of a move: `count` elements of a type, or packed bytes.
struct Side {
  std::optional<Type> type;
  int64_t count = 1;

  [[nodiscard]] bool is_packed() const { return !type.has_value(); }
};

// The packed bytes [first, last) of a message.
struct Cut {
  int64_t first = 0;
  int64_t last = 0;

  [[nodiscard]] int64_t bytes() const { return last - first; }
};

struct Buffer {
  std::span<std::byte> memory;  // all of it, with guards; begins at a multiple of 64
  std::byte* base = nullptr;    // a layout's address as given to MPI; of packed bytes the first one of the cut
};

class Mover {
 public:
  Mover() = default;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  virtual ~Mover() = default;
  // An Error is a failure of the test.
  [[nodiscard]] virtual Status move(const Buffer& from, const Buffer& to, const Cut& cut) = 0;
};
using MoverPointer = std::unique_ptr<Mover>;

using Open = std::function<Result<MoverPointer>(const Side& from, const Side& to, Random& random)>;
// For back ends that do not copy from layout to layout; `packs`: from the type to packed bytes.
using OpenPacking = std::function<Result<MoverPointer>(const Type& type, int64_t count, bool packs, Random& random)>;

struct LayoutWay {
  std::string name;
  Open open;
  uint64_t messages = 60;  // random messages of each family
  bool copies = true;      // false: it packs and unpacks only
  bool cuts = true;        // false: it moves whole messages only
  int64_t refuses = 0;     // moves of the listed layouts that it may refuse
  int64_t bytes_max = 1 << 20;  // the longest message that is tried; it reaches four times as far at most
  std::function<std::string()> missing = {};  // says why this machine cannot try it, or ""
};
inline void PrintTo(const LayoutWay& way, std::ostream* out) { *out << way.name; }
[[nodiscard]] LayoutWay packing_way(std::string name, OpenPacking open, uint64_t messages);

// A listed layout.
struct Row {
  std::string name;
  Type type;
  int64_t count = 1;
};
[[nodiscard]] const std::vector<Row>& listed_layouts();

// Each returns "", or what differs; those of a test also say how to replay it.
[[nodiscard]] std::string hold_listed(const LayoutWay& way, const std::string& test);
[[nodiscard]] std::string hold_random(const LayoutWay& way, const std::string& test);
// One move of a whole message, and of its cuts.
[[nodiscard]] std::string hold_move(const LayoutWay& way, const Side& from, const Side& to);
// Moves listed layouts, and damages one byte after each: "" if every damage was found.
[[nodiscard]] std::string hold_damage(const LayoutWay& way);

}  // namespace spinloom::layout::test

#define SPINLOOM_LAYOUT_SUITE(Name, ways)                                                                \
  class Name : public ::testing::TestWithParam<spinloom::layout::test::LayoutWay> {                      \
   protected:                                                                                            \
    void SetUp() override {                                                                              \
      const std::string why = GetParam().missing ? GetParam().missing() : std::string();                 \
      if (!why.empty()) GTEST_SKIP() << why;                                                             \
    }                                                                                                    \
  };                                                                                                     \
  TEST_P(Name, MovesListedLayouts) {                                                                     \
    EXPECT_EQ(spinloom::layout::test::hold_listed(GetParam(), "*" #Name ".MovesListedLayouts"), "");     \
  }                                                                                                      \
  TEST_P(Name, MovesRandomLayouts) {                                                                     \
    EXPECT_EQ(spinloom::layout::test::hold_random(GetParam(), "*" #Name ".MovesRandomLayouts"), "");     \
  }                                                                                                      \
  TEST_P(Name, IsComparedByteByByte) { EXPECT_EQ(spinloom::layout::test::hold_damage(GetParam()), ""); } \
  INSTANTIATE_TEST_SUITE_P(Layouts, Name, ::testing::ValuesIn(ways), [](const auto& of) { return of.param.name; })
