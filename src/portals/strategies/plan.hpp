// Plan - the objects that a strategy puts on the NIC for one message: an image, constants, state and a schedule.
//
// Contract: plan() is pure: it takes a type, a count and facts about the NIC, and returns bytes and numbers; it
//   installs nothing. A message is (type, count), normalised once.
// Invariants: (1) constants and state together are the strategy's whole NIC memory; (2) the entry that uses
//   a plan begins at the first byte that the message touches.
// Threads: plain values. Time: T_pkt and handler times in ps, given by the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/oracle.hpp"
#include "memory/layout/type.hpp"
#include "nic/spin/context.hpp"
#include "portals/strategies/interval.hpp"
#include "portals/strategies/strategy.hpp"

namespace spinloom::strategies {

// (type, count) with all elements in one blob: neighbours join across elements, and offsets from the first touched
// byte are never negative.
struct Message {
  layout::Type type;     // the caller's type
  int64_t count = 1;     // the caller's count
  layout::Blob blob;     // the blob of contig(count, type)
  int64_t bytes = 0;     // packed
  layout::oracle::Reach reach;
  int64_t blocks = 0;    // contiguous, merged in typemap order
};

[[nodiscard]] Result<Message> make_message(const layout::Type& type, int64_t count);

struct NicFacts {
  uint32_t hpus = 0;
  uint32_t payload_bytes = 0;
  uint64_t state_bytes = 0;
  uint64_t packet_buffer_bytes = 0;
  Time packet_time;  // T_pkt: time of a full packet at line rate
  int64_t epsilon_numerator = 1;
  int64_t epsilon_denominator = 5;
  uint64_t interval_packets = 0;  // packets between checkpoints, for experiments that fix the number; 0: by the rule
  uint32_t iovec_entries = 32;  // scatter-list entries that the NIC holds at a time
};

// T_PH(gamma) = fixed + gamma * block. `fixed` is T_init + T_setup of the paper, `block` is T_block. A calibration
// for each profile and image gives both.
struct HandlerCost {
  Time fixed;
  Time block;
};

struct Plan {
  std::string_view image;  // name of the handler image
  std::vector<uint8_t> constants;
  std::vector<uint8_t> state;
  std::optional<spin::BlockedRoundRobin> blocked_round_robin;
  uint64_t prepared_blocks = 0;  // blocks that the host walks to prepare the plan (checkpoints, lists)
  std::optional<Interval> interval;
  uint64_t checkpoint_bytes = 0;  // bytes of one copy

  [[nodiscard]] uint64_t nic_memory_bytes() const { return constants.size() + state.size(); }
};

// Only ro-cp and rw-cp need `cost`. Code::invalid for a strategy without handlers, Code::unsupported if the strategy
// cannot take this message, Code::exhausted if it does not fit into NIC memory.
[[nodiscard]] Result<Plan> plan(Strategy strategy, const Message& message, const NicFacts& facts,
                                const HandlerCost& cost);

}  // namespace spinloom::strategies
