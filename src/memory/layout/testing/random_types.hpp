// Test support - seeded random types.
//
// Threads: tests run in one thread. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/text.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout::test {

using spinloom::for_seeds;

// A random type of at most about `bytes_max` bytes of data.
inline Type random_type(Random& random, int64_t depth, int64_t bytes_max) {
  static constexpr const char* names[] = {"byte", "short", "int", "double", "double_complex"};
  if (depth == 0 || random.chance(1, 12)) return *primitive(names[random.below(5)]);
  for (;;) {
    const Type child = random_type(random, depth - 1, bytes_max);
    const int64_t room = std::max<int64_t>(1, bytes_max / std::max<int64_t>(1, child.size()));
    const auto up_to = [&](int64_t most) { return random.between(random.chance(1, 20) ? 0 : 1, std::min(most, room)); };
    const auto list = [&](int64_t count, int64_t scale) {
      std::vector<int64_t> values;
      int64_t at = random.between(-8, 8) * scale;
      const bool regular = random.chance(1, 3);
      const int64_t step = random.between(-6, 12) * scale;
      for (int64_t i = 0; i < count; ++i) {
        values.push_back(at);
        at += regular ? step : random.between(-6, 12) * scale;
      }
      return IndexList(std::move(values));
    };
    const auto lengths = [&](int64_t count) {
      std::vector<int64_t> values;
      const bool equal = random.chance(1, 3);
      for (int64_t i = 0; i < count; ++i) values.push_back(equal ? 2 : random.between(0, 3));
      return values;
    };
    Result<Type> result = fail(Code::invalid, "nothing made");
    switch (random.below(12)) {
      case 0: result = contiguous(up_to(6), child); break;
      case 1: {
        const int64_t block = up_to(4);
        result = vector(up_to(6), block, random.between(-5, 9), child);
        break;
      }
      case 2: result = hvector(up_to(6), up_to(3), random.between(-100, 300), child); break;
      case 3: {
        const int64_t count = up_to(7);
        result = indexed(list(count, 1), lengths(count), child);
        break;
      }
      case 4: {
        const int64_t count = up_to(7);
        result = hindexed(list(count, random.between(1, 9)), lengths(count), child);
        break;
      }
      case 5: result = indexed_block(up_to(3), list(up_to(8), 1), child); break;
      case 6: {
        const int64_t count = up_to(8);
        if (random.chance(1, 2)) {
          result = hindexed_block(up_to(3), *IndexList::range(random.between(-50, 50), random.between(-40, 90), count),
                                  child);
        } else {
          result = indexed_block(up_to(3), *IndexList::random(random.below(1000), count + random.between(0, 50), count),
                                 child);
        }
        break;
      }
      case 7: {
        std::vector<int64_t> at;
        std::vector<int64_t> block_lengths;
        std::vector<Type> children;
        const int64_t count = random.between(0, 4);
        for (int64_t i = 0; i < count; ++i) {
          at.push_back(random.between(-200, 400));
          block_lengths.push_back(random.between(0, 2));
          children.push_back(random.chance(1, 2) ? child : random_type(random, depth - 1, bytes_max / 4));
        }
        result = structure(std::move(at), std::move(block_lengths), std::move(children));
        break;
      }
      case 8: result = dup(child); break;
      case 9: {
        DarrayArguments arguments;
        std::vector<int64_t> sizes;
        std::vector<int64_t> grid;
        for (int64_t d = random.between(1, 3); d > 0; --d) {
          const auto distribution = static_cast<Distribution>(random.below(3));
          sizes.push_back(random.between(1, 7));
          grid.push_back(distribution == Distribution::none ? 1 : random.between(1, 3));
          arguments.distributions.push_back(distribution);
          const int64_t whole = (sizes.back() - 1) / grid.back() + 1;
          const int64_t argument =
              distribution == Distribution::block ? whole + random.between(0, 2) : random.between(1, 4);
          arguments.distribution_arguments.push_back(random.chance(1, 3) ? darray_default : argument);
          arguments.processes *= grid.back();
        }
        arguments.rank = random.between(0, arguments.processes - 1);
        arguments.sizes = sizes;
        arguments.grid = grid;
        arguments.order = random.chance(1, 2) ? Order::c : Order::fortran;
        result = darray(arguments, child);
        break;
      }
      case 10: result = resized(random.between(-30, 30), random.between(-60, 200), child); break;
      default: {
        std::vector<int64_t> sizes;
        std::vector<int64_t> subsizes;
        std::vector<int64_t> starts;
        const int64_t dimensions = random.between(1, 4);
        for (int64_t d = 0; d < dimensions; ++d) {
          sizes.push_back(random.between(1, 5));
          subsizes.push_back(random.between(1, sizes.back()));
          starts.push_back(random.between(0, sizes.back() - subsizes.back()));
        }
        result = subarray(sizes, subsizes, starts, random.chance(1, 2) ? Order::c : Order::fortran, child);
        break;
      }
    }
    if (result && result->size() <= 2 * bytes_max) return *result;
  }
}

// The memory offset of each packed byte, from the oracle.
inline std::vector<int64_t> byte_map(const Type& type, int64_t count) {
  std::vector<int64_t> map;
  oracle::for_each_primitive_of(type, count, [&](int64_t offset, int64_t bytes) {
    for (int64_t i = 0; i < bytes; ++i) map.push_back(offset + i);
  });
  return map;
}

inline Type must_parse(std::string_view source) {
  auto type = parse(source);
  EXPECT_TRUE(type.ok()) << source << ": " << (type.ok() ? "" : type.error().message);
  return type.ok() ? *type : *primitive("byte");
}

}  // namespace spinloom::layout::test
