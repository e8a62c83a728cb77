// The strategies over MPITypes' segment: one for each virtual HPU, or checkpoints (SC'19 datatypes paper, 3.2.4).
#include <algorithm>

#include "memory/layout/reciprocal.hpp"
#include "portals/strategies/pieces.hpp"
#include "portals/strategies/plan_parts.hpp"
#include "spinloom/ddt.h"
#include "spinloom/segment.h"

namespace spinloom::strategies {
namespace {

// Both strategies use RW-CP's interval. With an interval of its own, RO-CP would trade memory for catch-up work in a
// way that the paper's comparison does not have.
Result<Interval> interval_of(const Message& message, const NicFacts& facts, const HandlerCost& cost,
                             uint32_t checkpoint_bytes, uint64_t masters_offset) {
  IntervalInput input;
  input.payload_bytes = facts.payload_bytes;
  input.packets = static_cast<uint64_t>(div_ceil(message.bytes, facts.payload_bytes));
  input.hpus = facts.hpus;
  input.packet_time = facts.packet_time;
  // T_PH(gamma) with gamma = writes a packet: fixed + block * writes / packets.
  const PieceCount count = count_pieces(message.blob, message.bytes, facts.payload_bytes);
  const auto packets = static_cast<int64_t>(input.packets);
  input.handler_time = cost.fixed + Time{div_ceil(cost.block.ps * count.writes, packets)};
  input.epsilon_numerator = facts.epsilon_numerator;
  input.epsilon_denominator = facts.epsilon_denominator;
  input.checkpoint_bytes = 2 * uint64_t{checkpoint_bytes};  // the copy that handlers progress, and its master
  // Both arrays are padded to the alignment; this reserves the padding.
  const uint64_t overhead = masters_offset + 2 * alignment_bytes;
  if (facts.state_bytes <= overhead) {
    return fail(Code::exhausted, "checkpoints need ", overhead, " B of NIC memory for the layout alone, the NIC has ",
                facts.state_bytes, "; enlarge memory.state_bytes");
  }
  input.memory_bytes = facts.state_bytes - overhead;
  input.packet_buffer_bytes = facts.packet_buffer_bytes;
  if (facts.interval_packets == 0) return checkpoint_interval(input);
  Interval fixed;
  fixed.packets = std::min(facts.interval_packets, input.packets);
  fixed.checkpoints = (input.packets + fixed.packets - 1) / fixed.packets;
  if (fixed.checkpoints * input.checkpoint_bytes > input.memory_bytes) {
    return fail(Code::exhausted, fixed.checkpoints, " checkpoints of ", input.checkpoint_bytes,
                " B do not fit into the ", input.memory_bytes, " B of NIC memory; ask for a larger interval");
  }
  return fixed;
}

}  // namespace

Result<Plan> plan_hpu_local(const Message& message, const NicFacts& facts) {
  const layout::Blob& blob = message.blob;
  if (!blob.is_narrow()) return too_large(message, Strategy::hpu_local);
  spl_ddt_local local{};
  local.segment_bytes = spl_segment_bytes(blob.data());
  local.blob_offset = static_cast<uint32_t>(aligned(sizeof local));

  Plan plan;
  plan.image = "hpu_local";
  plan.constants.resize(local.blob_offset + blob.bytes().size());
  std::memcpy(plan.constants.data(), &local, sizeof local);
  std::memcpy(plan.constants.data() + local.blob_offset, blob.data(), blob.bytes().size());
  spl_segment_narrow segment;
  spl_segment_init_narrow(&segment, blob.data());
  plan.state.resize(uint64_t{facts.hpus} * local.segment_bytes);
  for (uint32_t vhpu = 0; vhpu < facts.hpus; ++vhpu) {
    std::memcpy(plan.state.data() + uint64_t{vhpu} * local.segment_bytes, &segment, local.segment_bytes);
  }
  spin::BlockedRoundRobin policy;
  policy.packets_in_row = 1;
  policy.vhpus = facts.hpus;
  plan.blocked_round_robin = policy;
  return plan;
}

Result<Plan> plan_checkpoints(Strategy strategy, const Message& message, const NicFacts& facts,
                              const HandlerCost& cost) {
  const layout::Blob& blob = message.blob;
  if (!blob.is_narrow()) return too_large(message, strategy);
  const uint32_t checkpoint_bytes = spl_segment_bytes(blob.data());
  const uint64_t blob_offset = aligned(sizeof(spl_ddt_checkpoints));
  const uint64_t masters_offset = aligned(blob_offset + blob.bytes().size());
  SPL_ASSIGN(const Interval interval, interval_of(message, facts, cost, checkpoint_bytes, masters_offset));
  const uint64_t interval_bytes = interval.packets * facts.payload_bytes;
  if (interval_bytes >= uint64_t{1} << 31) return too_large(message, strategy);
  const layout::Reciprocal reciprocal = layout::Reciprocal::of(interval_bytes, 32);
  spl_ddt_checkpoints checkpoints{};
  checkpoints.interval_bytes = static_cast<uint32_t>(interval_bytes);
  checkpoints.reciprocal = static_cast<uint32_t>(reciprocal.multiplier);
  checkpoints.shift = reciprocal.shift;
  checkpoints.checkpoint_bytes = checkpoint_bytes;
  checkpoints.blob_offset = static_cast<uint32_t>(blob_offset);
  checkpoints.masters_offset = static_cast<uint32_t>(masters_offset);

  Plan plan;
  plan.interval = interval;
  plan.checkpoint_bytes = checkpoint_bytes;
  plan.constants.resize(masters_offset + interval.checkpoints * checkpoint_bytes);
  std::memcpy(plan.constants.data(), &checkpoints, sizeof checkpoints);
  std::memcpy(plan.constants.data() + blob_offset, blob.data(), blob.bytes().size());
  // Walks once over the type: advances a segment from checkpoint to checkpoint.
  spl_segment_narrow segment;
  spl_segment_init_narrow(&segment, blob.data());
  uint8_t* const masters = plan.constants.data() + masters_offset;
  for (uint64_t index = 0; index < interval.checkpoints; ++index) {
    if (index > 0) {
      plan.prepared_blocks += spl_segment_catch_up_narrow(&segment, blob.data(), static_cast<uint32_t>(interval_bytes));
    }
    std::memcpy(masters + index * checkpoint_bytes, &segment, checkpoint_bytes);
  }
  if (strategy == Strategy::ro_cp) {
    plan.image = "ro_cp";
    return plan;
  }
  plan.image = "rw_cp";
  plan.state.assign(masters, masters + interval.checkpoints * checkpoint_bytes);
  spin::BlockedRoundRobin policy;
  policy.packets_in_row = static_cast<uint32_t>(interval.packets);
  policy.vhpus = static_cast<uint32_t>(interval.checkpoints);
  plan.blocked_round_robin = policy;
  return plan;
}

}  // namespace spinloom::strategies
