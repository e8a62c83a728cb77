// Every kernel set that this CPU runs, at random cuts, against the oracle; and forcing one by name.
#include "layout/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "layout/committed.hpp"
#include "layout/copy.hpp"
#include "layout/test_support.hpp"
#include "layout/transfer.hpp"

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

std::vector<std::byte> noise(Random& random, int64_t bytes) {
  std::vector<std::byte> made(static_cast<size_t>(bytes));
  for (size_t at = 0; at < made.size(); at += sizeof(uint32_t)) {
    const auto word = static_cast<uint32_t>(random.below(uint64_t{1} << 32));
    std::memcpy(made.data() + at, &word, std::min(sizeof word, made.size() - at));
  }
  return made;
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

std::vector<int64_t> blocks() {
  std::vector<int64_t> found(exact_blocks.begin(), exact_blocks.end());
  for (const int64_t end : range_ends) found.push_back(std::min<int64_t>(end, 1300));
  return found;
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
      ready += from->structs(count) != nullptr;
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
  EXPECT_EQ(one->structs(1), nullptr);
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

TEST(Kernels, EverySetCopiesFromLayoutToLayout) {
  for (const std::string& name : names()) {
    const Forced forced(name);
    SCOPED_TRACE(name);
    test::for_seeds(6, [&](Random& random) {
      for (const int64_t block : blocks()) {
        const int64_t count = random.between(1, 3);
        const bool wide = random.chance(1, 4);
        const Type from_type = shaped(random, block);
        const Type to_type = random.chance(1, 2) ? partner(random, from_type) : *dup(from_type);
        SCOPED_TRACE(text(print(from_type), " to ", print(to_type)));
        const auto from_blob = Blob::build(from_type, {wide ? Width::wide : Width::automatic, count});
        const auto to_blob = Blob::build(to_type, {wide ? Width::wide : Width::automatic, count});
        ASSERT_TRUE(from_blob && to_blob);
        const Place from(random, from_type, count);
        Place to(random, to_type, count);
        if (*oracle::overlaps(to_type, count)) continue;
        const std::vector<std::byte> before = to.bytes;
        ASSERT_TRUE(
            copy({*from_blob, count, from.bytes.data() + from.base}, {*to_blob, count, to.bytes.data() + to.base}));
        std::vector<std::byte> packed(static_cast<size_t>(count * from_type.size()));
        ASSERT_TRUE(oracle::pack(from_type, count, from.bytes.data() + from.base, packed));
        const auto same = oracle::compare(to_type, count, packed, to.bytes, to.base, before);
        ASSERT_TRUE(same) << same.error().message;
      }
    });
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
      const Width width = random.chance(1, 4) ? Width::wide : Width::automatic;
      SCOPED_TRACE(text(count, " ", print(from_type), " to ", print(to_type)));
      const auto from_blob = Blob::build(from_type, {width, count});
      const auto to_blob = Blob::build(to_type, {width, count});
      ASSERT_TRUE(from_blob && to_blob);
      const Place from(random, from_type, count);
      Place to(random, to_type, count);
      const std::vector<std::byte> before = to.bytes;
      ASSERT_TRUE(
          copy({*from_blob, count, from.bytes.data() + from.base}, {*to_blob, count, to.bytes.data() + to.base}));
      std::vector<std::byte> packed(static_cast<size_t>(count * from_type.size()));
      ASSERT_TRUE(oracle::pack(from_type, count, from.bytes.data() + from.base, packed));
      const auto same = oracle::compare(to_type, count, packed, to.bytes, to.base, before);
      ASSERT_TRUE(same) << same.error().message;
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

// ---- every entry of every set, called by itself ----

// Compares a kernel, called by itself, with naive copies of single blocks into a buffer of noise.
class Bench {
 public:
  explicit Bench(Random& random) : from_(noise(random, bytes)), to_(noise(random, bytes)), wanted_(to_) {}

  [[nodiscard]] const std::byte* from() const { return from_.data() + middle; }
  [[nodiscard]] std::byte* to() { return to_.data() + middle; }
  void want(int64_t to, int64_t from, int64_t block) {
    for (int64_t i = 0; i < block; ++i) {
      wanted_[static_cast<size_t>(middle + to + i)] = from_[static_cast<size_t>(middle + from + i)];
    }
  }
  [[nodiscard]] bool right() const { return to_ == wanted_; }

 private:
  static constexpr int64_t bytes = 1 << 18;  // the largest grid reaches 83 KiB either way
  static constexpr int64_t middle = bytes / 2;
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  std::vector<std::byte> wanted_;
};

void check_grids(Random& random, const KernelSet& set, int64_t block) {
  for (size_t mode = 0; mode < modes; ++mode) {
    Bench bench(random);
    Grid grid;
    grid.rows = random.between(1, 3);
    grid.blocks = random.between(1, 20);
    grid.block = block;
    const int64_t sign = random.chance(1, 2) ? 1 : -1;
    grid.to.block = mode == 0 ? block : sign * (block + random.between(0, 70));
    grid.from.block = mode == 1 ? block : -sign * (block + random.between(0, 70));
    grid.to.row = grid.to.block * grid.blocks;
    grid.from.row = grid.from.block * grid.blocks + 1;
    set.grid[mode][block_class(block)](bench.to(), bench.from(), grid);
    for (int64_t row = 0; row < grid.rows; ++row) {
      for (int64_t i = 0; i < grid.blocks; ++i) {
        bench.want(row * grid.to.row + i * grid.to.block, row * grid.from.row + i * grid.from.block, block);
      }
    }
    ASSERT_TRUE(bench.right()) << set.name << ", grid of mode " << mode << ", block " << block;

    Bench one(random);
    set.row[mode][block_class(block)](one.to(), one.from(), grid.blocks, block, grid.to.block, grid.from.block);
    for (int64_t i = 0; i < grid.blocks; ++i) one.want(i * grid.to.block, i * grid.from.block, block);
    ASSERT_TRUE(one.right()) << set.name << ", row of mode " << mode << ", block " << block;
  }
}

template <class Tables, class Offset>
void check_lists(Random& random, const Tables& tables, int64_t block, Offset) {
  const int64_t count = random.between(1, 20);
  std::vector<Offset> to(static_cast<size_t>(count));
  std::vector<Offset> from(to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] =
        static_cast<Offset>(static_cast<int64_t>(i % 2 == 0 ? i : to.size() + i) * (block + 3) * (i % 4 == 0 ? -1 : 1));
    from[i] = static_cast<Offset>(random.between(-30000, 30000));
  }
  const size_t number = block_class(block);
  Bench packing(random);
  Bench unpacking(random);
  Bench copying(random);
  tables.pack[number](packing.to(), packing.from(), from.data(), count, block);
  tables.unpack[number](unpacking.to(), unpacking.from(), to.data(), count, block);
  tables.copy[number](copying.to(), to.data(), copying.from(), from.data(), count, block);
  for (size_t i = 0; i < to.size(); ++i) {
    packing.want(static_cast<int64_t>(i) * block, from[i], block);
    unpacking.want(to[i], static_cast<int64_t>(i) * block, block);
    copying.want(to[i], from[i], block);
  }
  ASSERT_TRUE(packing.right() && unpacking.right() && copying.right()) << "list, block " << block;
}

template <class Tables, class Run>
void check_runs(Random& random, const Tables& tables, Run) {
  // Stretches of one length, and of many.
  const int64_t length = random.chance(1, 2) ? 4 * random.between(1, 6) : 0;
  const int64_t longest = random.chance(1, 2) ? 200 : 600;
  std::vector<Run> runs(static_cast<size_t>(random.between(1, 150) + 1));
  Bench packing(random);
  Bench unpacking(random);
  int64_t start = 16;
  int64_t place = -100;
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool last = i + 1 == runs.size();
    const int64_t bytes = last ? 0 : length != 0 && !random.chance(1, 60) ? length : random.between(1, longest);
    runs[i].offset = static_cast<decltype(runs[i].offset)>(place);
    runs[i].start = static_cast<decltype(runs[i].start)>(start);
    packing.want(start - 16, place, bytes);
    unpacking.want(place, start - 16, bytes);
    start += bytes;
    place += bytes + random.between(0, 50);
  }
  tables.pack_runs(packing.to(), packing.from(), runs.data(), static_cast<int64_t>(runs.size()) - 1);
  tables.unpack_runs(unpacking.to(), unpacking.from(), runs.data(), static_cast<int64_t>(runs.size()) - 1);
  ASSERT_TRUE(packing.right() && unpacking.right()) << "runs";
}

void check_transpose(Random& random, TransposeKernel kernel, int64_t element) {
  Bench bench(random);
  const int64_t rows = random.between(1, 70);
  const int64_t columns = random.between(1, 70);
  const int64_t to_pitch = rows * element + random.between(0, 40);
  const int64_t from_pitch = columns * element + random.between(0, 40);
  kernel(bench.to(), to_pitch, bench.from(), from_pitch, rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) bench.want(j * to_pitch + i * element, i * from_pitch + j * element, element);
  }
  ASSERT_TRUE(bench.right()) << "transpose of " << rows << " x " << columns << ", element " << element;
}

// Blocks that fill lines, packed to a place where streams() takes them.
void check_dense_stream(Random& random, const KernelSet& set, int64_t block) {
  Bench bench(random);
  const int64_t unit = std::min<int64_t>(block, 64);
  const auto shift = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(bench.to()) % static_cast<uintptr_t>(unit));
  std::byte* const to = bench.to() + shift;
  Grid grid;
  grid.rows = random.between(1, 3);
  grid.blocks = random.between(1, 70);
  grid.block = block;
  grid.to = {block * grid.blocks, block};
  grid.from = {-1500 * random.between(0, 2), random.between(-200, 200)};
  EXPECT_TRUE(streams(Mode::pack, to, block, stream_bytes_min));
  EXPECT_FALSE(streams(Mode::pack, to, block, stream_bytes_min - 1));
  EXPECT_FALSE(streams(Mode::pack, to + 1, block, stream_bytes_min));
  set.stream_grid(to, bench.from(), grid);
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t i = 0; i < grid.blocks; ++i) {
      bench.want(shift + row * grid.to.row + i * block, row * grid.from.row + i * grid.from.block, block);
    }
  }
  ASSERT_TRUE(bench.right()) << "streamed blocks of " << block;
  Bench paced(random);
  set.paced_row(paced.to(), paced.from(), grid.blocks, block, block + 3, grid.from.block);
  for (int64_t i = 0; i < grid.blocks; ++i) paced.want(i * (block + 3), i * grid.from.block, block);
  ASSERT_TRUE(paced.right()) << "paced blocks of " << block;
}

// Every sequence of moves that has a kernel: up to three of any length, or four of 4 to 16 bytes.
void check_moves(Random& random, const KernelSet& set) {
  constexpr std::array<int64_t, 7> any = {0, 1, 2, 4, 8, 16, 32};
  std::vector<MoveLengths> all;
  for (const int64_t a : any) {
    for (const int64_t b : any) {
      for (const int64_t c : any) {
        if (a != 0 && (b != 0 || c == 0)) all.push_back({a, b, c, 0});
        for (const int64_t d : {4, 8, 16}) {
          if (is_common({a, b, c, d}) && a * b * c != 0) all.push_back({a, b, c, d});
        }
      }
    }
  }
  ASSERT_EQ(all.size(), 6u + 36 + 216 + 81);
  std::vector<MovesKernel> seen;
  for (const MoveLengths& lengths : all) {
    const MovesKernel kernel = set.moves[moves_kernel(lengths)];
    ASSERT_NE(kernel, nullptr);
    seen.push_back(kernel);
    Bench bench(random);
    MoveSide to{static_cast<int32_t>(random.between(128, 150)), static_cast<int32_t>(random.between(-20, 20)), {}};
    MoveSide from{static_cast<int32_t>(random.between(-150, 150)), static_cast<int32_t>(random.between(-20, 20)), {}};
    int32_t place = 0;
    for (size_t i = 0; i + 1 < group_moves; ++i) {
      place += static_cast<int32_t>(lengths[i] + random.between(0, 3));
      to.further[i] = place;
      from.further[i] = static_cast<int32_t>(random.between(-60, 60));
    }
    const int64_t structs = random.between(1, 20);
    kernel(bench.to(), bench.from(), structs, to, from);
    for (int64_t one = 0; one < structs; ++one) {
      for (size_t i = 0; i < group_moves; ++i) {
        bench.want(one * to.step + to.first + (i == 0 ? 0 : to.further[i - 1]),
                   one * from.step + from.first + (i == 0 ? 0 : from.further[i - 1]), lengths[i]);
      }
    }
    ASSERT_TRUE(bench.right()) << "moves of " << lengths[0] << ", " << lengths[1] << ", " << lengths[2] << ", "
                               << lengths[3];
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end()) << "two sequences share a kernel";
}

void check_stream(Random& random, const KernelSet& set) {
  Bench bench(random);
  Grid grid;
  grid.rows = random.between(1, 3);
  grid.blocks = random.between(1, 6);
  grid.block = random.between(stream_block_min, 1500);
  grid.to.block = grid.block + random.between(0, 100);
  grid.from.block = grid.block + random.between(0, 100);
  grid.to.row = grid.to.block * grid.blocks;
  grid.from.row = grid.from.block * grid.blocks + 1;
  set.stream_grid(bench.to(), bench.from(), grid);
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t i = 0; i < grid.blocks; ++i) {
      bench.want(row * grid.to.row + i * grid.to.block, row * grid.from.row + i * grid.from.block, grid.block);
    }
  }
  ASSERT_TRUE(bench.right()) << "streamed blocks of " << grid.block;
}

template <class Tables, class Offset, class Run>
void check_tables(Random& random, const Tables& tables, Offset, Run) {
  // Lists and runs on either side, whose entries end at different places.
  const int64_t unit = random.chance(1, 2) ? 8 : random.between(1, 30);
  const int64_t count = 2 * random.between(1, 80);
  std::vector<Offset> places;
  std::vector<Run> runs;
  int64_t at = -3000;
  for (int64_t i = 0; i < count; ++i, at += unit + random.between(0, 9)) places.push_back(static_cast<Offset>(at));
  int64_t start = 0;
  for (at = 1000; start < count * unit;) {
    const int64_t bytes = random.chance(1, 6) ? std::min(count * unit - start, random.between(1, 70))
                                              : std::min(count * unit - start, unit);
    Run run{};
    run.offset = static_cast<decltype(run.offset)>(at);
    run.start = static_cast<decltype(run.start)>(start);
    runs.push_back(run);
    start += bytes;
    at += bytes + random.between(0, 9);
  }
  Run end{};
  end.start = static_cast<decltype(end.start)>(start);
  runs.push_back(end);
  const Table<Offset, Run> list{count, places.data(), unit, nullptr};
  const Table<Offset, Run> table{static_cast<int64_t>(runs.size()) - 1, nullptr, 0, runs.data()};
  const auto place_of = [&](const Table<Offset, Run>& side, int64_t byte) {
    if (side.runs == nullptr) return static_cast<int64_t>(places[static_cast<size_t>(byte / unit)]) + byte % unit;
    size_t i = 0;
    while (static_cast<int64_t>(runs[i + 1].start) <= byte) ++i;
    return static_cast<int64_t>(runs[i].offset) + byte - static_cast<int64_t>(runs[i].start);
  };
  for (const auto& [to, from] : {std::pair{list, list}, {list, table}, {table, list}, {table, table}}) {
    Bench bench(random);
    tables.copy_tables(bench.to(), to, bench.from(), from, start);
    for (int64_t byte = 0; byte < start; ++byte) bench.want(place_of(to, byte), place_of(from, byte), 1);
    ASSERT_TRUE(bench.right()) << "tables of " << unit;
  }
}

TEST(Kernels, EveryEntryOfEverySetCopiesItsBlocks) {
  const auto sets = kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_STREQ(sets.back()->name, "portable");
  for (const KernelSet* set : sets) {
    SCOPED_TRACE(set->name);
    test::for_seeds(3, [&](Random& random) {
      for (const int64_t block : blocks()) {
        ASSERT_NO_FATAL_FAILURE(check_grids(random, *set, block));
        ASSERT_NO_FATAL_FAILURE(check_lists(random, set->narrow, block, int32_t{}));
        ASSERT_NO_FATAL_FAILURE(check_lists(random, set->wide, block, int64_t{}));
      }
      ASSERT_NO_FATAL_FAILURE(check_moves(random, *set));
      for (int64_t number = 0; number < 5; ++number) {
        ASSERT_NO_FATAL_FAILURE(check_transpose(random, set->transpose[static_cast<size_t>(number)], 1 << number));
      }
      for (int64_t bytes = 0; bytes < 300; ++bytes) {
        Bench bench(random);
        set->piece(bench.to(), bench.from(), bytes);
        bench.want(0, 0, bytes);
        ASSERT_TRUE(bench.right()) << "piece of " << bytes;
        if (bytes > 20) continue;
        ASSERT_NO_FATAL_FAILURE(check_stream(random, *set));
        for (const int64_t block : {4, 8, 16, 32, 64, 128, 448}) {
          ASSERT_NO_FATAL_FAILURE(check_dense_stream(random, *set, block));
        }
        ASSERT_NO_FATAL_FAILURE(check_tables(random, set->narrow, int32_t{}, spl_run_narrow{}));
        ASSERT_NO_FATAL_FAILURE(check_tables(random, set->wide, int64_t{}, spl_run_wide{}));
        ASSERT_NO_FATAL_FAILURE(check_runs(random, set->narrow, spl_run_narrow{}));
        ASSERT_NO_FATAL_FAILURE(check_runs(random, set->wide, spl_run_wide{}));
      }
    });
  }
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
