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

Side side_of(const Type& type, int64_t count, Random& random) {
  const layout::BlobOptions wide{layout::Width::wide, count};
  const layout::BlobOptions kept{layout::Width::automatic, count, true};
  return Side::of(*Blob::build(type, random.chance(1, 3) ? wide : kept), count, random.between(-3, 3) * 16);
}

// The moves of the listed layouts that a kernel refuses: one writes a byte twice, and not all have its shape.
constexpr std::pair<std::string_view, int64_t> refusals[] = {{"", 1},       {"word", 33},  {"warp", 1},
                                                             {"tile", 191}, {"pieces", 1}, {"walk", 1}};

class ProgramMover final : public layout::test::Mover {
 public:
  ProgramMover(Program program, Message message, Runner run)
      : program_(std::move(program)), message_(std::move(message)), run_(std::move(run)) {}

  Status move(const layout::test::Buffer& from, const layout::test::Buffer& to, const layout::test::Cut&) override {
    // Addresses count from what the message's offset moves on.
    const Ends ends{from.base - message_.from.offset, to.base - message_.to.offset};
    Memory memory{{{from.memory.data(), from.memory.size()}, {to.memory.data(), to.memory.size()}}};
    SPL_TRY(run_(program_, {&ends, 1}, memory));
    if (program_.bytes_touched() >= program_.bytes()) return {};
    return fail(Code::mismatch, "it touches ", program_.bytes_touched(), " B of ", program_.bytes());
  }

 private:
  Program program_;
  Message message_;
  Runner run_;
};

Result<layout::test::MoverPointer> open(std::string_view kernel, const Runner& run, const layout::test::Side& from,
                                        const layout::test::Side& to, Random& random) {
  const auto side = [&random](const layout::test::Side& end) {
    return end.is_packed() ? Side::packed(random.between(-2, 2) * 16) : side_of(*end.type, end.count, random);
  };
  if (!to.is_packed() && *layout::oracle::overlaps(*to.type, to.count)) {
    return fail(Code::unsupported, "it writes a byte twice");
  }
  const Message message{side(from), side(to)};
  ProgramOptions options;
  options.kernel = kernel;
  options.streaming = random.chance(1, 4);
  SPL_ASSIGN(Program program, Program::make({&message, 1}, options));
  if (!kernel.empty() && program.bytes() > 0 && program.kernel_name() != kernel) {
    return fail(Code::unsupported, "it takes ", program.kernel_name());
  }
  return layout::test::MoverPointer(std::make_unique<ProgramMover>(std::move(program), message, run));
}

}  // namespace

layout::test::LayoutWay layout_way(std::string_view kernel, const Runner& run) {
  layout::test::LayoutWay way;
  way.name = kernel.empty() ? "chosen" : std::string(kernel);
  way.open = [=](const layout::test::Side& from, const layout::test::Side& to, Random& random) {
    return open(kernel, run, from, to, random);
  };
  way.cuts = false;
  way.bytes_max = 16 << 20;
  return way;
}

std::vector<layout::test::LayoutWay> layout_ways(const Runner& run, uint64_t messages) {
  std::vector<layout::test::LayoutWay> ways;
  for (const auto& [kernel, refuses] : refusals) {
    ways.push_back(layout_way(kernel, run));
    ways.back().messages = messages;
    ways.back().refuses = refuses;
  }
  return ways;
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
