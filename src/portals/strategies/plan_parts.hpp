// PlanParts - parts of a plan that several strategies share; only the files of plan() include this.
//
// Threads: pure. Time: none.
#pragma once

#include <cstring>
#include <vector>

#include "portals/strategies/plan.hpp"

namespace spinloom::strategies {

inline constexpr uint64_t alignment_bytes = 64;  // each part of NIC memory begins at a multiple

[[nodiscard]] inline uint64_t aligned(uint64_t bytes) {
  return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

[[nodiscard]] inline std::vector<uint8_t> bytes_of(const layout::Blob& blob) {
  const auto source = blob.bytes();
  std::vector<uint8_t> bytes(source.size());
  std::memcpy(bytes.data(), source.data(), source.size());
  return bytes;
}

[[nodiscard]] inline Error too_large(const Message& message, Strategy strategy) {
  return fail(Code::unsupported, name_of(strategy), " handlers count in 32 bits; this message has ", message.bytes,
              " B over ", message.reach.last - message.reach.first, " B of memory");
}

// Strategies over MPITypes' segment (plan_segments.cpp).
[[nodiscard]] Result<Plan> plan_hpu_local(const Message& message, const NicFacts& facts);
[[nodiscard]] Result<Plan> plan_checkpoints(Strategy strategy, const Message& message, const NicFacts& facts,
                                            const HandlerCost& cost);

}  // namespace spinloom::strategies
