#include "memory/gpu/testing/moves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu::test {
namespace {

using layout::Blob;
using layout::Type;

constexpr int64_t guard = 80;

class Bytes {
 public:
  Bytes(int64_t bytes, Random& random)
      : data_(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64 + 64))),
              &std::free),
        bytes_(static_cast<size_t>(bytes)) {
    for (size_t i = 0; i < bytes_; i += 8) {
      const uint64_t word = random.next();
      std::memcpy(data_.get() + i, &word, std::min<size_t>(8, bytes_ - i));
    }
  }
  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] Memory::Buffer buffer() const { return {data_.get(), bytes_}; }
  [[nodiscard]] std::vector<std::byte> copy() const { return {data_.get(), data_.get() + bytes_}; }
  // The first byte that differs, or -1.
  [[nodiscard]] int64_t differs(const std::vector<std::byte>& expected) const {
    const auto at = std::mismatch(expected.begin(), expected.end(), data_.get()).first;
    return at == expected.end() ? -1 : at - expected.begin();
  }

 private:
  std::unique_ptr<std::byte[], void (*)(void*)> data_;
  size_t bytes_;
};

// A side in memory: a layout's places of packed bytes, or packed bytes, between guards.
struct MemorySide {
  std::vector<int64_t> places;  // places in the buffer
  int64_t base = 0;             // the place in the buffer from which the layout's offsets count
  int64_t bytes = 0;            // the size of the buffer
};

int64_t place_at(Random& random) { return random.chance(1, 2) ? guard : guard + random.between(0, 15); }

MemorySide layout_side(const Type& type, int64_t count, Random& random) {
  const layout::oracle::Reach reach = layout::oracle::reach(type, count);
  MemorySide side;
  side.base = place_at(random) - reach.first;
  side.places = layout::test::byte_map(type, count);
  for (int64_t& place : side.places) place += side.base;
  side.bytes = side.base + reach.last + guard;
  return side;
}

MemorySide packed_side(int64_t bytes, Random& random) {
  MemorySide side;
  side.base = place_at(random);
  for (int64_t i = 0; i < bytes; ++i) side.places.push_back(side.base + i);
  side.bytes = side.base + bytes + guard;
  return side;
}

bool overlaps(const MemorySide& side) {
  std::vector<int64_t> places = side.places;
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

std::string move(const Message& message, const MemorySide& from, const MemorySide& to, std::string_view kernel,
                 Random& random, const Runner& run, const char* what) {
  if (overlaps(to)) return "";
  ProgramOptions options;
  options.kernel = kernel;
  options.streaming = random.chance(1, 4);
  const auto program = Program::make({&message, 1}, options);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  if (!program) return "";
  const Bytes source(from.bytes, random);
  const Bytes target(to.bytes, random);
  const std::vector<std::byte> before = source.copy();
  std::vector<std::byte> expected = target.copy();
  for (size_t i = 0; i < from.places.size(); ++i) {
    expected[static_cast<size_t>(to.places[i])] = before[static_cast<size_t>(from.places[i])];
  }
  // Addresses count from what the message's offset moves on.
  const Ends ends{source.data() + from.base - message.from.offset, target.data() + to.base - message.to.offset};
  Memory memory{{source.buffer(), target.buffer()}};
  const Status moved = run(*program, {&ends, 1}, memory);
  EXPECT_TRUE(moved.ok()) << (moved.ok() ? "" : moved.error().message);
  EXPECT_EQ(target.differs(expected), -1)
      << what << " with " << program->kernel_name() << ", first wrong byte of " << to.bytes << "; base at " << to.base;
  EXPECT_EQ(source.differs(before), -1) << what << " wrote what it reads";
  EXPECT_GE(program->bytes_touched(), program->bytes());
  return program->kernel_name();
}

Side side_of(const Type& type, int64_t count, Random& random) {
  const layout::BlobOptions wide{layout::Width::wide, count};
  const layout::BlobOptions kept{layout::Width::automatic, count, true};
  return Side::of(*Blob::build(type, random.chance(1, 3) ? wide : kept), count, random.between(-3, 3) * 16);
}

}  // namespace

Case case_of(const Type& type, int64_t count, Random& random) {
  Case test_case{type, count, std::nullopt, 1, text(count, " x ", layout::print(type))};
  // Blocks of a length that divides the message, some bytes apart.
  const int64_t bytes = count * type.size();
  int64_t block = bytes;
  for (int attempt = 0; attempt < 4 && bytes > 0; ++attempt) {
    const int64_t candidate = random.between(1, std::min<int64_t>(bytes, 64));
    if (bytes % candidate == 0) block = candidate;
  }
  if (bytes > 0)
    test_case.target = *layout::hvector(bytes / block, block, block + random.between(0, 9), *layout::primitive("byte"));
  if (random.chance(1, 3)) {
    test_case.target = type;
    test_case.target_count = count;
  }
  return test_case;
}

Case random_case(Random& random) {
  for (;;) {
    const Type type = layout::test::random_type(random, random.between(0, 5), random.chance(1, 6) ? 3000 : 250);
    const int64_t count = random.between(0, 5);
    const layout::oracle::Reach reach = layout::oracle::reach(type, count);
    if (reach.last - reach.first <= 256 << 10) return case_of(type, count, random);
  }
}

std::string check(const Case& test_case, std::string_view kernel, Random& random, const Runner& run) {
  const MemorySide memory = layout_side(test_case.type, test_case.count, random);
  const MemorySide bytes = packed_side(test_case.count * test_case.type.size(), random);
  const Side side = side_of(test_case.type, test_case.count, random);
  const Side stream = Side::packed(random.between(-2, 2) * 16);
  const std::string used = move({side, stream}, memory, bytes, kernel, random, run, "pack");
  (void)move({stream, side}, bytes, memory, kernel, random, run, "unpack");
  if (test_case.target) (void)check_copy(test_case, kernel, random, run);
  return used;
}

std::string check_copy(const Case& test_case, std::string_view kernel, Random& random, const Runner& run) {
  const Message message{side_of(test_case.type, test_case.count, random),
                        side_of(*test_case.target, test_case.target_count, random)};
  return move(message, layout_side(test_case.type, test_case.count, random),
              layout_side(*test_case.target, test_case.target_count, random), kernel, random, run, "copy");
}

void check_halo(int64_t side, std::string_view kernel, const Runner& run) {
  Random random(3, "gpu.halo");
  const int64_t whole = side + 2;
  std::vector<Message> packs;
  std::vector<Message> unpacks;
  std::vector<int64_t> read;
  std::vector<int64_t> written;
  int64_t at = 0;
  for (int64_t d = 0; d < 27; ++d) {
    if (d == 13) continue;
    const int64_t direction[] = {d / 9 - 1, d / 3 % 3 - 1, d % 3 - 1};
    std::vector<int64_t> sub;
    std::vector<int64_t> inner;
    std::vector<int64_t> outer;
    for (const int64_t step : direction) {
      sub.push_back(step == 0 ? side : 1);
      inner.push_back(step > 0 ? side : 1);
      outer.push_back(step > 0 ? side + 1 : step < 0 ? 0 : 1);
    }
    const auto face = [&](const std::vector<int64_t>& starts) {
      return *layout::subarray(std::vector<int64_t>(3, whole), sub, starts, layout::Order::c,
                               *layout::primitive("double"));
    };
    for (const int64_t place : layout::test::byte_map(face(inner), 1)) read.push_back(place);
    for (const int64_t place : layout::test::byte_map(face(outer), 1)) written.push_back(place);
    packs.push_back({Side::of(*Blob::build(face(inner))), Side::packed(at)});
    unpacks.push_back({Side::packed(at), Side::of(*Blob::build(face(outer)))});
    at += face(inner).size();
  }
  ProgramOptions options;
  options.kernel = kernel;
  const Program pack = *Program::make(packs, options);
  const Program unpack = *Program::make(unpacks, options);
  EXPECT_EQ(pack.launches(), 1);
  EXPECT_EQ(pack.bytes(), at);
  const Bytes field(whole * whole * whole * 8, random);
  const Bytes buffer(at, random);
  const Bytes other(whole * whole * whole * 8, random);
  std::vector<std::byte> expected = other.copy();
  const std::vector<std::byte> before = field.copy();
  for (size_t i = 0; i < read.size(); ++i) {
    expected[static_cast<size_t>(written[i])] = before[static_cast<size_t>(read[i])];
  }
  const Ends out{field.data(), buffer.data()};
  const Ends in{buffer.data(), other.data()};
  Memory first{{field.buffer(), buffer.buffer()}};
  Memory second{{buffer.buffer(), other.buffer()}};
  ASSERT_TRUE(run(pack, {&out, 1}, first).ok());
  ASSERT_TRUE(run(unpack, {&in, 1}, second).ok());
  EXPECT_EQ(other.differs(expected), -1);
  EXPECT_EQ(field.differs(before), -1);
}

void check_pairs(uint32_t pairs, const Runner& run) {
  Random random(4, "gpu.pairs");
  const Type type = layout::test::must_parse("vector(20, 3, 7, short)");
  std::vector<Message> messages;
  std::vector<Ends> ends;
  std::vector<Bytes> sources;
  std::vector<Bytes> targets;
  Memory memory;
  for (uint32_t k = 0; k < pairs; ++k) {
    messages.push_back({Side::of(*Blob::build(type), k % 3 + 1), Side::packed(), k});
    sources.emplace_back(type.extent() * 3, random);
    targets.emplace_back(type.size() * 3, random);
    ends.push_back({sources.back().data(), targets.back().data()});
    memory.buffers.push_back(sources.back().buffer());
    memory.buffers.push_back(targets.back().buffer());
  }
  std::vector<std::vector<std::byte>> expected;
  for (uint32_t k = 0; k < pairs; ++k) {
    expected.push_back(targets[k].copy());
    const auto places = layout::test::byte_map(type, k % 3 + 1);
    for (size_t i = 0; i < places.size(); ++i) expected[k][i] = sources[k].data()[places[i]];
  }
  const Program program = *Program::make(messages);
  EXPECT_EQ(program.ends_count(), pairs);
  ASSERT_TRUE(run(program, ends, memory).ok());
  for (uint32_t k = 0; k < pairs; ++k) EXPECT_EQ(targets[k].differs(expected[k]), -1) << k;
}

}  // namespace spinloom::gpu::test
