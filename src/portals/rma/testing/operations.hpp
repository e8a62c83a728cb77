// Test operations - what tests of contexts share: small limits, operations on words.
//
// Contract: the words of an operation must stay where they are until it has ended.
// Threads: any. Time: none.
#pragma once

#include <span>
#include <vector>

#include "base/random.hpp"
#include "portals/rma/context.hpp"

namespace spinloom::rma::test {

inline constexpr uint32_t sum = static_cast<uint32_t>(spin::AtomicOperation::sum);

inline Options small_options(Random& random) {
  Options options;
  options.atomic_bytes = 16 << random.below(4);
  options.fetch_bytes = 8 << random.below(4);
  options.message_bytes = static_cast<uint32_t>(64 * random.between(1, 4));
  options.messages = static_cast<uint32_t>(random.between(1, 4));
  options.notices = 4;
  options.emulated = random.chance(1, 3);
  options.emulate_above_limit = random.chance(1, 2);
  return options;
}

inline Operation on_words(Operation::Kind kind, const Key& key, uint64_t at, std::span<uint64_t> words) {
  Operation operation;
  operation.kind = kind;
  operation.key = key;
  operation.offset = at * sizeof(uint64_t);
  operation.bytes = words.size_bytes();
  operation.from = kind == Operation::Kind::get ? nullptr : reinterpret_cast<const uint8_t*>(words.data());
  operation.to = kind == Operation::Kind::get ? reinterpret_cast<uint8_t*>(words.data()) : nullptr;
  operation.op = sum;
  operation.type = spin::Datatype::uint64;
  return operation;
}

inline std::vector<spin::IovecElement> as_pieces(std::vector<uint64_t>& words) {
  return {{reinterpret_cast<uint8_t*>(words.data()), words.size() * sizeof(uint64_t)}};
}

}  // namespace spinloom::rma::test
