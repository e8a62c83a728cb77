#include "memory/layout/testing/random_layouts.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "memory/layout/kernel_test.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout::test {
namespace {

Type bytes_of(int64_t count) { return *contiguous(count, *primitive("byte")); }

// Anything.
Row any(Random& random, uint64_t /*index*/) {
  return {"", random_type(random, random.between(0, 6), random.chance(1, 8) ? 2000 : 250), random.between(0, 4)};
}

// Vectors, lists, runs, transposes and interleaved rows of each block size that has a kernel of its own, and one of
// each range.
Row blocks_in_turn(Random& random, uint64_t index) {
  static const std::vector<int64_t> sizes = blocks();
  const int64_t block = sizes[index % sizes.size()];
  const Type item = bytes_of(block);
  const int64_t gap = random.between(1, 40);
  const int64_t many = random.between(1, 90);
  const auto type = [&]() -> Type {
    switch (random.below(6)) {
      case 0: return *hvector(many, 1, block + gap, item);
      case 1:
        return *hvector(random.between(2, 5), 1, (block + gap) * many + gap, *hvector(many, 1, block + gap, item));
      case 2: return *hvector(random.between(2, 40), 1, block, *hvector(many, 1, 40 * block + gap, item));  // transpose
      case 3:
        return *hvector(random.between(2, 6), 1, block + 1,
                        *hvector(random.between(100, 200), 1, 8 * block + 64, item));
      case 4: return *indexed_block(1, *IndexList::random(random.below(1000), 2 * many, many), item);
      default: {
        std::vector<int64_t> lengths;
        std::vector<int64_t> at;
        int64_t place = 0;
        for (int64_t i = 0; i < many; ++i) {
          at.push_back(place);
          lengths.push_back(random.chance(1, 8) ? random.between(1, 3) : 1);
          place += lengths.back() + random.between(1, 3);
        }
        return *indexed(std::move(at), std::move(lengths), item);
      }
    }
  };
  return {"", type(), random.between(1, 3)};
}

// Blocks of these lengths, in any order in memory, with gaps. Its extent lets no two elements share a byte.
Type struct_of(Random& random, const std::vector<int64_t>& lengths) {
  std::vector<size_t> order(lengths.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (random.chance(1, 4)) std::shuffle(order.begin(), order.end(), std::minstd_rand(random.below(1000)));
  std::vector<int64_t> places(lengths.size());
  int64_t end = random.between(0, 8);
  for (const size_t field : order) {
    places[field] = end + random.between(0, random.chance(1, 6) ? 100 : 9);
    end = places[field] + lengths[field];
  }
  const Type item = *hindexed(std::move(places), lengths, *primitive("byte"));
  return *resized(0, random.chance(1, 8) ? -end : end + random.between(0, 20), item);
}

// The array is part of the type, or the count makes it.
Row array_of(Random& random, const Type& one, int64_t many) {
  if (random.chance(1, 2)) return {"", *contiguous(many, one), random.between(1, 2)};
  return {"", one, many};
}

// Arrays of structs. Several small ones share a window of the kernels.
Row structs(Random& random, uint64_t /*index*/) {
  const bool small = random.chance(1, 2);
  std::vector<int64_t> lengths(static_cast<size_t>(random.between(2, small ? 3 : random.chance(1, 4) ? 18 : 6)));
  for (int64_t& length : lengths) length = random.between(1, small ? 5 : random.chance(1, 4) ? 90 : 16);
  return array_of(random, struct_of(random, lengths), random.between(1, random.chance(1, 4) ? 300 : 9));
}

// Structs of 160 bytes, cut into runs of 32 and 64 bytes: the kernels see the same moves in all of them.
Row structs_of_windows(Random& random, uint64_t /*index*/) {
  std::vector<int64_t> lengths;
  for (int64_t left = 5; left > 0; left -= lengths.back() / 32) {
    lengths.push_back(32 * random.between(1, std::min<int64_t>(left, 2)));
  }
  return {"", struct_of(random, lengths), random.between(1, 9)};
}

// Structs that are longer than the way from one to the next, with fields in any order. Most share no byte.
Row interleaved(Random& random, uint64_t /*index*/) {
  const int64_t stride = random.between(2, 40);
  std::vector<int64_t> places;
  std::vector<int64_t> lengths;
  for (int64_t i = random.between(2, 5); i > 0; --i) {
    lengths.push_back(random.between(1, 2));
    places.push_back(random.between(-stride, 2 * stride));
  }
  const Type one = *resized(0, stride, *hindexed(places, lengths, *primitive("byte")));
  const int64_t rows = random.between(1, 9);
  if (random.chance(1, 2)) return {"", *resized(0, stride * rows, *contiguous(rows, one)), random.between(1, 40)};
  return {"", one, rows};
}

constexpr Family all[] = {{"any", any},
                          {"blocks", blocks_in_turn},
                          {"structs", structs},
                          {"structs of windows", structs_of_windows},
                          {"interleaved", interleaved}};

}  // namespace

std::span<const Family> families() { return all; }

Side partner(Random& random, const Type& type, int64_t count) {
  const int64_t bytes = count * type.size();
  if (bytes == 0) return {type, count};
  if (random.chance(1, 3) && !*oracle::overlaps(type, count)) return {*dup(type), count};
  std::vector<int64_t> lengths;
  oracle::for_each_block(type, 1, [&](const oracle::Block& block) { lengths.push_back(block.bytes); });
  if (random.chance(1, 2) && lengths.size() <= 32) return {struct_of(random, lengths), count};
  int64_t piece = random.between(1, std::min<int64_t>(bytes, 200));
  while (bytes % piece != 0) --piece;
  return {*hvector(bytes / piece, 1, piece + random.between(0, 30), bytes_of(piece)), 1};
}

}  // namespace spinloom::layout::test
