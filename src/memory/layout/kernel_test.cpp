// Every kernel set that this CPU runs, at random cuts, against the oracle; and forcing one by name.
#include "memory/layout/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "memory/layout/committed.hpp"
#include "memory/layout/copy.hpp"
#include "memory/layout/kernel_test.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/transfer.hpp"

namespace spinloom::layout {
namespace {

constexpr int64_t guard = 128;

// Forces a kernel set; at its end the environment decides again.
class Forced {
 public:
  explicit Forced(const std::string& name) {
    const Status done = force_kernels(name);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
  ~Forced() {
    const char* const asked = std::getenv("SPINLOOM_KERNEL");
    EXPECT_TRUE(force_kernels(asked == nullptr ? "" : asked));
  }
};

std::vector<std::string> names() {
  std::vector<std::string> found{"walker"};
  for (const KernelSet* set : kernel_sets()) found.emplace_back(set->name);
  return found;
}

// A type in memory with guards around it.
struct Place {
  Place(Random& random, Type of, int64_t elements)
      : type(std::move(of)),
        count(elements),
        reach(oracle::reach(type, count)),
        base(guard - reach.first),
        bytes(noise(random, reach.last - reach.first + 2 * guard)) {}

  Type type;
  int64_t count;
  oracle::Reach reach;
  int64_t base;
  std::vector<std::byte> bytes;
};

// Shapes that reach each kernel: vectors, lists, runs, transposes and interleaved rows, with every block size that
// has a kernel of its own and one of each range.
Type shaped(Random& random, int64_t block) {
  const Type item = *contiguous(block, *primitive("byte"));
  const int64_t gap = random.between(1, 40);
  const int64_t many = random.between(1, 90);
  switch (random.below(6)) {
    case 0: return *hvector(many, 1, block + gap, item);
    case 1: return *hvector(random.between(2, 5), 1, (block + gap) * many + gap, *hvector(many, 1, block + gap, item));
    case 2: return *hvector(random.between(2, 40), 1, block, *hvector(many, 1, 40 * block + gap, item));  // transpose
    case 3:
      return *hvector(random.between(2, 6), 1, block + 1, *hvector(random.between(100, 200), 1, 8 * block + 64, item));
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
}

void check_cuts(Random& random, const Type& type, int64_t count, Width width) {
  const auto blob = Blob::build(type, {width, count});
  ASSERT_TRUE(blob) << blob.error().message;
  Place place(random, type, count);
  const std::vector<std::byte> before = place.bytes;
  const int64_t total = count * type.size();
  const std::vector<std::byte> packed = noise(random, total);
  for (int64_t first = 0; first < total;) {
    const int64_t last = random.chance(1, 3) ? total : std::min(total, first + random.between(1, 3 * total / 4 + 1));
    const std::span<const std::byte> part{packed.data() + first, static_cast<size_t>(last - first)};
    ASSERT_TRUE(unpack(*blob, count, place.bytes.data() + place.base, first, last, part));
    first = last;
  }
  const auto same = oracle::compare(type, count, packed, place.bytes, place.base, before);
  ASSERT_TRUE(same) << same.error().message;

  std::vector<std::byte> expected(packed.size());
  ASSERT_TRUE(oracle::pack(type, count, place.bytes.data() + place.base, expected));
  for (int cut = 0; cut < 4; ++cut) {
    const int64_t a = cut == 0 ? 0 : random.between(0, total);
    const int64_t b = cut == 0 ? total : random.between(0, total);
    const int64_t first = std::min(a, b);
    const int64_t last = std::max(a, b);
    std::vector<std::byte> made = noise(random, last - first + 2 * guard);
    const std::vector<std::byte> around = made;
    ASSERT_TRUE(pack(*blob, count, place.bytes.data() + place.base, first, last,
                     {made.data() + guard, static_cast<size_t>(last - first)}));
    for (int64_t i = -guard; i < last - first + guard; ++i) {
      const auto at = static_cast<size_t>(i + guard);
      const bool inside = i >= 0 && i < last - first;
      ASSERT_EQ(made[at], inside ? expected[static_cast<size_t>(first + i)] : around[at])
          << "packed byte " << i << " of " << first << " to " << last;
    }
  }
}

TEST(Kernels, EverySetCopiesEveryShapeAtAnyCut) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    test::for_seeds(6, [&](Random& random) {
      for (const int64_t block : blocks()) {
        const Type type = shaped(random, block);
        SCOPED_TRACE(print(type));
        ASSERT_NO_FATAL_FAILURE(
            check_cuts(random, type, random.between(1, 3), random.chance(1, 4) ? Width::wide : Width::automatic));
      }
    });
  }
}

// Fields of a struct: how long they are, in the order of their packed bytes.
std::vector<int64_t> fields(Random& random) {
  const bool small = random.chance(1, 2);  // several structs share a window
  std::vector<int64_t> lengths(static_cast<size_t>(random.between(2, small ? 3 : random.chance(1, 4) ? 18 : 6)));
  for (int64_t& length : lengths) length = random.between(1, small ? 5 : random.chance(1, 4) ? 90 : 16);
  return lengths;
}

// A struct with these fields, in any order in memory, with gaps. Its extent lets no two structs share a byte.
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

TEST(Kernels, EverySetCopiesArraysOfStructsAtAnyCut) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    test::for_seeds(60, [&](Random& random) {
      const Type one = struct_of(random, fields(random));
      const int64_t many = random.between(1, random.chance(1, 4) ? 300 : 9);
      const bool inside = random.chance(1, 2);  // the array is part of the type, or the count makes it
      const Type type = inside ? *contiguous(many, one) : one;
      SCOPED_TRACE(text(many, " ", print(type)));
      ASSERT_NO_FATAL_FAILURE(check_cuts(random, type, inside ? random.between(1, 2) : many,
                                         random.chance(1, 4) ? Width::wide : Width::automatic));
    });
  }
}

// Structs that are longer than the way from one to the next, with fields in any order, but that share no byte.
TEST(Kernels, EverySetCopiesStructsThatInterleave) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    int copied = 0;
    test::for_seeds(400, [&](Random& random) {
      const int64_t stride = random.between(2, 40);
      std::vector<int64_t> places;
      std::vector<int64_t> lengths;
      for (int64_t i = random.between(2, 5); i > 0; --i) {
        lengths.push_back(random.between(1, 2));
        places.push_back(random.between(-stride, 2 * stride));
      }
      const Type one = *resized(0, stride, *hindexed(places, lengths, *primitive("byte")));
      const int64_t rows = random.between(1, 9);
      const bool inside = random.chance(1, 2);
      const Type type = inside ? *resized(0, stride * rows, *contiguous(rows, one)) : one;
      const int64_t count = inside ? random.between(1, 40) : rows;
      if (*oracle::overlaps(type, count)) return;
      ++copied;
      SCOPED_TRACE(text(count, " ", print(type)));
      ASSERT_NO_FATAL_FAILURE(check_cuts(random, type, count, random.chance(1, 4) ? Width::wide : Width::automatic));
    });
    EXPECT_GT(copied, 50);
  }
}

// Whole messages of committed types, which are made ready once for a kernel set.
TEST(Kernels, EverySetCopiesCommittedStructs) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    int64_t ready = 0;
    test::for_seeds(200, [&](Random& random) {
      const std::vector<int64_t> lengths = fields(random);
      const bool loop = random.chance(1, 2);  // the array is part of the type, or the count makes it
      const int64_t many = random.between(1, random.chance(1, 4) ? 200 : 9);
      const auto array = [&](const Type& one) { return loop ? *contiguous(many, one) : one; };
      const int64_t count = loop ? random.between(1, 2) : many;
      const Type type = array(struct_of(random, lengths));
      const Type other = array(struct_of(random, lengths));
      SCOPED_TRACE(text(count, " ", print(type), " to ", print(other)));
      const auto from = Committed::commit(type);
      const auto to = Committed::commit(other);
      ASSERT_TRUE(from && to);
      ready += from->struct_array(count) != nullptr;
      const Place source(random, type, count);
      const auto total = static_cast<size_t>(count * type.size());
      std::vector<std::byte> expected(total);
      ASSERT_TRUE(oracle::pack(type, count, source.bytes.data() + source.base, expected));

      std::vector<std::byte> packed = noise(random, static_cast<int64_t>(total) + 2 * guard);
      std::vector<std::byte> wanted = packed;
      std::copy(expected.begin(), expected.end(), wanted.begin() + guard);
      const std::span<std::byte> inside{packed.data() + guard, total};
      if (!from->pack_at_once(count, source.bytes.data() + source.base, inside.data())) {
        ASSERT_TRUE(from->pack(count, source.bytes.data() + source.base, {0, count * type.size()}, inside));
      }
      ASSERT_EQ(packed, wanted);
      if (*oracle::overlaps(other, count)) return;  // arrays at negative extents, one after the other

      for (const bool unpacks : {true, false}) {
        Place target(random, other, count);
        const std::vector<std::byte> before = target.bytes;
        std::byte* const base = target.bytes.data() + target.base;
        if (!unpacks) {
          ASSERT_TRUE(copy({&*from, count, source.bytes.data() + source.base}, {&*to, count, base}));
        } else if (!to->unpack_at_once(count, base, expected.data())) {
          ASSERT_TRUE(to->unpack(count, base, {0, count * type.size()}, expected));
        }
        const auto same = oracle::compare(other, count, expected, target.bytes, target.base, before);
        ASSERT_TRUE(same) << (unpacks ? "unpack: " : "copy: ") << same.error().message;
      }
    });
    EXPECT_EQ(ready > 0, name != "walker");
  }
}

TEST(Kernels, StructsWithinOneArrayAreAllReadBeforeAnyIsWritten) {
  const auto one =
      Committed::commit(test::must_parse("resized(0B, 32B, struct([(0B, int), (8B, contig(3, double))]))"));
  ASSERT_TRUE(one);
  Random random(7, "structs");
  std::vector<std::byte> memory = noise(random, 640);
  std::vector<std::byte> packed(280);
  ASSERT_TRUE(oracle::pack(one->type(), 10, memory.data(), packed));
  ASSERT_TRUE(copy({&*one, 10, memory.data()}, {&*one, 10, memory.data() + 32}));
  std::vector<std::byte> again(280);
  ASSERT_TRUE(oracle::pack(one->type(), 10, memory.data() + 32, again));
  EXPECT_EQ(again, packed);
}

TEST(Kernels, ACommittedTypeFollowsAForcedSet) {
  const auto one =
      Committed::commit(test::must_parse("resized(0B, 32B, struct([(0B, int), (8B, contig(3, double))]))"));
  ASSERT_TRUE(one);
  const Forced forced("walker");
  EXPECT_EQ(one->struct_array(1), nullptr);
}

// A type of the same size as `type`, with a loop in common or with nothing but the size.
Type partner(Random& random, const Type& type) {
  if (random.chance(1, 3)) {
    const int64_t size = type.size();
    int64_t piece = random.between(1, size);
    while (size % piece != 0) --piece;
    return *hvector(size / piece, 1, piece + random.between(0, 30), *contiguous(piece, *primitive("byte")));
  }
  return type;
}

// Copies all bytes, at once or in parts in any order. A part changes no other byte.
void copy_somehow(Random& random, const Type& type, const Source& from, const Target& to, Place& place) {
  const int64_t total = from.count * from.blob.size();
  const int64_t cuts = random.chance(1, 2) ? 0 : random.between(1, 4);
  if (cuts == 0) {
    ASSERT_TRUE(copy(from, to));
    return;
  }
  std::vector<int64_t> ends = {0, total};
  for (int64_t i = 0; i < cuts; ++i) ends.push_back(random.between(0, total));
  std::sort(ends.begin(), ends.end());
  std::vector<size_t> order;
  for (size_t i = 0; i + 1 < ends.size(); ++i)
    order.insert(order.begin() + random.between(0, static_cast<int64_t>(i)), i);
  const std::vector<int64_t> map = test::byte_map(type, to.count);
  for (const size_t part : order) {
    std::vector<std::byte> wanted = place.bytes;
    ASSERT_TRUE(copy(from, to, ends[part], ends[part + 1]));
    for (int64_t at = ends[part]; at < ends[part + 1]; ++at) {
      const auto byte = static_cast<size_t>(place.base + map[static_cast<size_t>(at)]);
      wanted[byte] = place.bytes[byte];
    }
    ASSERT_EQ(place.bytes, wanted) << "by the part from " << ends[part] << " to " << ends[part + 1];
  }
}

// A copy of `count` elements from one type to another of the same size, compared with the type map.
void expect_copy(Random& random, const Type& from_type, const Type& to_type, int64_t count, Width width) {
  SCOPED_TRACE(text(count, " ", print(from_type), " to ", print(to_type)));
  const auto from_blob = Blob::build(from_type, {width, count});
  const auto to_blob = Blob::build(to_type, {width, count});
  ASSERT_TRUE(from_blob && to_blob);
  const Place from(random, from_type, count);
  Place to(random, to_type, count);
  const std::vector<std::byte> before = to.bytes;
  copy_somehow(random, to_type, {*from_blob, count, from.bytes.data() + from.base},
               {*to_blob, count, to.bytes.data() + to.base}, to);
  std::vector<std::byte> packed(static_cast<size_t>(count * from_type.size()));
  ASSERT_TRUE(oracle::pack(from_type, count, from.bytes.data() + from.base, packed));
  const auto same = oracle::compare(to_type, count, packed, to.bytes, to.base, before);
  ASSERT_TRUE(same) << same.error().message;
}

Width some_width(Random& random) { return random.chance(1, 4) ? Width::wide : Width::automatic; }

TEST(Kernels, EverySetCopiesFromLayoutToLayout) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    test::for_seeds(6, [&](Random& random) {
      for (const int64_t block : blocks()) {
        const int64_t count = random.between(1, 3);
        const Width width = some_width(random);
        const Type from_type = shaped(random, block);
        const Type to_type = random.chance(1, 2) ? partner(random, from_type) : *dup(from_type);
        if (!*oracle::overlaps(to_type, count)) expect_copy(random, from_type, to_type, count, width);
      }
    });
  }
}

TEST(Kernels, EverySetCopiesPartsOfRandomTypes) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    int64_t tried = 0;
    test::for_seeds(400, [&](Random& random) {
      const Type from_type = test::random_type(random, random.between(1, 4), 2000);
      if (from_type.size() == 0) return;
      const Type to_type = random.chance(1, 3) ? partner(random, from_type) : *dup(from_type);
      const int64_t count = random.between(1, 4);
      if (*oracle::overlaps(to_type, count)) return;
      constexpr int64_t memory_max = 64 << 10;
      const oracle::Reach from_reach = oracle::reach(from_type, count);
      const oracle::Reach to_reach = oracle::reach(to_type, count);
      if (std::max(from_reach.last - from_reach.first, to_reach.last - to_reach.first) > memory_max) return;
      ++tried;
      expect_copy(random, from_type, to_type, count, some_width(random));
    });
    EXPECT_GT(tried, 100);
  }
}

TEST(Kernels, EverySetCopiesFromStructsToStructs) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    test::for_seeds(60, [&](Random& random) {
      const std::vector<int64_t> lengths = fields(random);
      const Type from_type = struct_of(random, lengths);
      std::vector<int64_t> others = lengths;
      if (random.chance(1, 3)) std::swap(others.front(), others.back());
      const Type to_type = struct_of(random, others);
      const int64_t count = random.between(1, random.chance(1, 4) ? 300 : 9);
      expect_copy(random, from_type, to_type, count, some_width(random));
    });
  }
}

// Structs of 160 bytes, cut into runs of 32 and 64 bytes: the kernels see the same moves in all of them.
TEST(Kernels, EverySetCopiesStructsThatAreCutAtOtherPlaces) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    test::for_seeds(40, [&](Random& random) {
      const auto cut = [&] {
        std::vector<int64_t> lengths;
        for (int64_t left = 5; left > 0; left -= lengths.back() / 32) {
          lengths.push_back(32 * random.between(1, std::min<int64_t>(left, 2)));
        }
        return struct_of(random, lengths);
      };
      const Type from_type = cut();
      const Type to_type = cut();
      expect_copy(random, from_type, to_type, random.between(1, 9), Width::automatic);
    });
  }
}

TEST(Kernels, ForcingIsSeenInTheName) {
  const auto vector = Blob::build(test::must_parse("vector(100, 1, 2, double)"));
  const auto transpose = Blob::build(test::must_parse("contig(64, resized(0B, 4B, vector(64, 1, 64, float)))"));
  const auto list = Blob::build(test::must_parse("idxblock(1, [5, 0, 3], double)"));
  const auto runs = Blob::build(test::must_parse("indexed([0x1, 3x2, 9x1], double)"));
  const auto structs = Blob::build(test::must_parse("contig(9, resized(0B, 40B, struct([(0B, int), (8B, double)])))"));
  ASSERT_TRUE(vector && transpose && list && runs && structs);
  for (const KernelSet* set : kernel_sets()) {
    const Forced forced(set->name);
    EXPECT_EQ(kernel_name(*vector), text(set->name, " vector 8 B"));
    EXPECT_EQ(kernel_name(*transpose), text(set->name, " transpose 4 B"));
    EXPECT_EQ(kernel_name(*list), text(set->name, " list 8 B"));
    EXPECT_EQ(kernel_name(*structs), text(set->name, " structs 12 B"));
    EXPECT_EQ(kernel_name(*runs), text(set->name, " runs"));
  }
  const Forced forced("walker");
  EXPECT_EQ(kernel_name(*vector), "walker");
  EXPECT_EQ(kernels_if_any(), nullptr);
}

TEST(Kernels, AnUnknownNameIsAnErrorThatListsWhatRuns) {
  const auto wrong = force_kernels("sse9");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::invalid);
  EXPECT_NE(wrong.error().message.find("'sse9'"), std::string::npos) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("walker"), std::string::npos) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("portable"), std::string::npos) << wrong.error().message;
}

TEST(Kernels, OverlappingTargetsKeepPackedOrder) {
  // Rows that step over each other: the last writer in packed order wins, so nothing may be tiled or transposed.
  for (const char* source :
       {"hvector(8, 1, 8B, hvector(200, 1, 16B, double))", "hvector(9, 1, 4B, hvector(300, 1, 20B, float))"}) {
    const Type type = test::must_parse(source);
    const auto blob = Blob::build(type);
    ASSERT_TRUE(blob);
    Random random(7, "overlap");
    Place place(random, type, 1);
    const std::vector<std::byte> before = place.bytes;
    const std::vector<std::byte> packed = noise(random, type.size());
    ASSERT_TRUE(unpack(*blob, 1, place.bytes.data() + place.base, 0, type.size(), packed));
    const auto same = oracle::compare(type, 1, packed, place.bytes, place.base, before);
    EXPECT_TRUE(same) << same.error().message;
  }
}

}  // namespace
}  // namespace spinloom::layout
