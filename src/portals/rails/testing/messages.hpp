// For tests: messages whose bytes are known, memory between guards, and the ways in which rails may be opened.
//
// Contract: byte_of() says what each byte of a message is. Landing and Scattered are memory for one message, contiguous
//   and in pieces. complete() lets a bed go on until a request is done.
// Threads: one owner. Time: none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "portals/rails/testing/bed.hpp"

namespace spinloom::rails {

inline constexpr uint8_t guard = 0xa5;
inline constexpr uint64_t guard_bytes = 16;

// Byte i of message `number` from `source`.
inline uint8_t byte_of(uint32_t source, uint64_t number, uint64_t i) {
  return static_cast<uint8_t>(31 * source + 7 * number + i + i / 251);
}

inline std::vector<uint8_t> message_of(uint32_t source, uint64_t number, uint64_t bytes) {
  std::vector<uint8_t> message(bytes);
  for (uint64_t i = 0; i < bytes; ++i) message[i] = byte_of(source, number, i);
  return message;
}

// A receive's memory between guards.
struct Landing {
  explicit Landing(uint64_t bytes_) : bytes(bytes_), memory(bytes_ + 2 * guard_bytes, guard) {}
  [[nodiscard]] uint8_t* data() { return memory.data() + guard_bytes; }
  // The first `message_bytes` bytes are those of the message, all others are untouched.
  void expect(uint32_t source, uint64_t number, uint64_t message_bytes) const {
    for (uint64_t i = 0; i < memory.size(); ++i) {
      const bool inside = i >= guard_bytes && i < guard_bytes + message_bytes;
      const uint8_t wanted = inside ? byte_of(source, number, i - guard_bytes) : guard;
      ASSERT_EQ(memory[i], wanted) << "byte " << i - guard_bytes << " of message " << number << " from " << source;
    }
  }
  uint64_t bytes;
  std::vector<uint8_t> memory;
};

// A message in pieces that lie in any order, with guards around them.
struct Scattered {
  Scattered(Random& random, uint64_t bytes) {
    std::vector<uint64_t> lengths;
    for (uint64_t left = bytes; left > 0 || lengths.empty();) {
      lengths.push_back(random.below(4) == 0 ? random.below(4) : random.below(bytes + 1));
      lengths.back() = std::min(lengths.back(), left);
      left -= lengths.back();
    }
    memory.assign(bytes + guard_bytes * (lengths.size() + 1), guard);
    std::vector<size_t> order(lengths.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    list.resize(lengths.size());
    uint8_t* at = memory.data() + guard_bytes;
    for (const size_t i : order) {
      list[i] = {at, lengths[i]};
      at += lengths[i] + guard_bytes;
    }
  }
  void fill(uint32_t source, uint64_t number, uint64_t message_bytes) {
    uint64_t i = 0;
    for (const nic::IovecElement& piece : list) {
      for (uint64_t at = 0; at < piece.length && i < message_bytes; ++at, ++i)
        piece.base[at] = byte_of(source, number, i);
    }
  }
  std::vector<uint8_t> memory;
  std::vector<nic::IovecElement> list;
};

// The options under test: the side that matches messages, and the side that moves long ones.
struct Variant {
  Mode mode = Mode::tag;
  bool by_put = false;
};

inline RailBed::Options small_bed(Variant variant, uint32_t rails, uint64_t seed) {
  RailBed::Options options;
  options.rails = rails;
  options.seed = seed;
  options.rails_options.mode = variant.mode;
  options.rails_options.by_put = variant.by_put;
  options.rails_options.eager_bytes = 512;
  options.rails_options.stripe_bytes = 4096;
  options.rails_options.fragment_bytes = 2048;
  options.rails_options.window = 8;
  return options;
}

// Completes a request of a rank.
inline Result<Completion> complete(RailBed& bed, uint32_t rank, RequestId request) {
  std::optional<Result<Completion>> result;
  const bool ended = bed.run_until([&] {
    auto tested = bed.rank(rank).test(request);
    if (!tested) {
      result = tested.error();
    } else if (*tested) {
      result = **tested;
    }
    return result.has_value();
  });
  if (!ended) return fail(Code::stalled, "nothing goes on: ", bed.trouble());
  return *result;
}

class AllVariants : public ::testing::TestWithParam<Variant> {};

}  // namespace spinloom::rails
