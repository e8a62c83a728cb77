#include "offload/plan.hpp"

#include <algorithm>
#include <cstring>

#include "layout/reciprocal.hpp"
#include "spinloom/ddt.h"
#include "spinloom/segment.h"

namespace spinloom::offload {
namespace {

constexpr uint64_t alignment_bytes = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes; }

std::vector<uint8_t> bytes_of(const layout::Blob& blob) {
  const auto span = blob.bytes();
  std::vector<uint8_t> out(span.size());
  std::memcpy(out.data(), span.data(), span.size());
  return out;
}

Error too_large(const Message& message, Strategy strategy) {
  return fail(Code::unsupported, name_of(strategy), " handlers count in 32 bits; this message has ", message.bytes,
              " B over ", message.reach.last - message.reach.first, " B of memory");
}

Status check_memory(const Plan& plan, const NicFacts& facts, Strategy strategy) {
  // Each of the two windows is aligned on its own.
  const uint64_t needed = aligned(plan.constants.size()) + aligned(plan.state.size());
  if (needed <= facts.state_bytes) return {};
  return fail(Code::exhausted, name_of(strategy), " needs ", needed, " B of NIC memory, the NIC has ",
              facts.state_bytes, "; enlarge memory.state_bytes");
}

// The whole message as one leaf: a vector where the normal form is one, else the list of its blocks.
Result<layout::Blob> flatten(const Message& message) {
  SPL_ASSIGN(const layout::Type whole, layout::contiguous(message.count, message.type));
  SPL_ASSIGN(layout::Blob blob, layout::Blob::build(whole));
  if (blob.root_kind() <= SPL_LEAF_LAST) return blob;
  std::vector<int64_t> offsets;
  std::vector<int64_t> lengths;
  layout::oracle::for_each_block(message.type, message.count, [&](const layout::oracle::Block& block) {
    offsets.push_back(block.offset);
    lengths.push_back(block.bytes);
  });
  SPL_ASSIGN(const layout::Type byte, layout::primitive("byte"));
  SPL_ASSIGN(const layout::Type listed, layout::hindexed(std::move(offsets), std::move(lengths), byte));
  return layout::Blob::build(listed);
}

Result<Plan> plan_specialised(const Message& message) {
  SPL_ASSIGN(const layout::Blob blob, flatten(message));
  if (!blob.narrow()) return too_large(message, Strategy::specialised);
  if (blob.root_kind() > SPL_LEAF_LAST) {
    return fail(Code::unsupported, "specialised handlers take one level of blocks; this list of ", message.blocks,
                " blocks normalises to more");
  }
  Plan plan;
  if (blob.root_kind() != SPL_LEAF_VECTOR) {
    plan.image = "indexed";
    plan.constants = bytes_of(blob);
    plan.prepared_blocks = static_cast<uint64_t>(message.blocks);
    return plan;
  }
  const auto* root = spl_node_at_narrow(blob.data(), sizeof(spl_layout_header));
  spl_ddt_vector vector{};
  vector.block_bytes = root->block;
  vector.reciprocal = root->reciprocal;
  vector.shift = root->shift;
  vector.stride_bytes = root->stride;
  vector.origin = static_cast<int32_t>(blob.header().origin);
  plan.image = "vector";
  plan.constants.resize(sizeof vector);
  std::memcpy(plan.constants.data(), &vector, sizeof vector);
  return plan;
}

Result<Plan> plan_rw_cp(const Message& message, const NicFacts& facts, const HandlerCost& cost) {
  const layout::Blob& blob = message.blob;
  if (!blob.narrow_reaches(message.blob_count)) return too_large(message, Strategy::rw_cp);
  const uint32_t checkpoint_bytes = spl_segment_bytes(blob.data());
  const uint64_t blob_offset = aligned(sizeof(spl_ddt_checkpoints));
  const uint64_t masters_offset = aligned(blob_offset + blob.bytes().size());

  IntervalInput input;
  input.payload_bytes = facts.payload_bytes;
  input.packets = static_cast<uint64_t>(div_ceil(message.bytes, facts.payload_bytes));
  input.hpus = facts.hpus;
  input.packet_time = facts.packet_time;
  // T_PH(gamma) with gamma = blocks a packet, cuts counted: fixed + block * (blocks + cuts) / packets.
  const auto regions = layout::oracle::regions_per_packet(message.type, message.count, facts.payload_bytes);
  input.handler_time = cost.fixed + Time{div_ceil(cost.block.ps * regions.regions, regions.packets)};
  input.epsilon_numerator = facts.epsilon_numerator;
  input.epsilon_denominator = facts.epsilon_denominator;
  input.checkpoint_bytes = 2 * uint64_t{checkpoint_bytes};  // the copy that handlers progress and its master
  // Both arrays are padded to the alignment; keep that much aside.
  const uint64_t overhead = masters_offset + 2 * alignment_bytes;
  if (facts.state_bytes <= overhead) {
    return fail(Code::exhausted, "rw-cp needs ", overhead, " B of NIC memory for its layout alone, the NIC has ",
                facts.state_bytes, "; enlarge memory.state_bytes");
  }
  input.memory_bytes = facts.state_bytes - overhead;
  input.packet_buffer_bytes = facts.packet_buffer_bytes;
  SPL_ASSIGN(const Interval interval, checkpoint_interval(input));

  const uint64_t interval_bytes = interval.packets * facts.payload_bytes;
  if (interval_bytes >= uint64_t{1} << 31) return too_large(message, Strategy::rw_cp);
  const layout::Reciprocal reciprocal = layout::Reciprocal::of(interval_bytes, 32);
  spl_ddt_checkpoints checkpoints{};
  checkpoints.interval_bytes = static_cast<uint32_t>(interval_bytes);
  checkpoints.reciprocal = static_cast<uint32_t>(reciprocal.multiplier);
  checkpoints.shift = reciprocal.shift;
  checkpoints.checkpoint_bytes = checkpoint_bytes;
  checkpoints.blob_offset = static_cast<uint32_t>(blob_offset);
  checkpoints.masters_offset = static_cast<uint32_t>(masters_offset);

  Plan plan;
  plan.image = "rw_cp";
  plan.interval = interval;
  plan.checkpoint_bytes = checkpoint_bytes;
  plan.state.resize(interval.checkpoints * checkpoint_bytes);
  plan.constants.resize(masters_offset + plan.state.size());
  std::memcpy(plan.constants.data(), &checkpoints, sizeof checkpoints);
  std::memcpy(plan.constants.data() + blob_offset, blob.data(), blob.bytes().size());
  // One walk over the type: a segment advanced from checkpoint to checkpoint.
  spl_segment_narrow segment;
  spl_segment_init_narrow(&segment, blob.data());
  for (uint64_t index = 0; index < interval.checkpoints; ++index) {
    if (index > 0) {
      plan.prepared_blocks += spl_segment_catch_up_narrow(&segment, blob.data(), static_cast<uint32_t>(interval_bytes));
    }
    std::memcpy(plan.state.data() + index * checkpoint_bytes, &segment, checkpoint_bytes);
  }
  std::memcpy(plan.constants.data() + masters_offset, plan.state.data(), plan.state.size());
  nic::BlockedRoundRobin policy;
  policy.packets_in_row = static_cast<uint32_t>(interval.packets);
  policy.vhpus = static_cast<uint32_t>(interval.checkpoints);
  plan.blocked_round_robin = policy;
  return plan;
}

Result<Plan> plan_seek(const Message& message) {
  if (message.blob.narrow() && !message.blob.narrow_reaches(message.blob_count)) {
    return too_large(message, Strategy::seek);  // make_message asks for a blob that reaches; a bug otherwise
  }
  Plan plan;
  plan.image = "seek";
  plan.constants = bytes_of(message.blob);
  return plan;
}

}  // namespace

Result<Message> make_message(const layout::Type& type, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_TRY(layout::oracle::check_count(type, count));
  layout::Type walked = type;
  int64_t walked_count = count;
  if (count > 1 && type.extent() < 0) {
    SPL_ASSIGN(walked, layout::contiguous(count, type));
    walked_count = 1;
  }
  layout::BlobOptions options;
  options.count = std::max<int64_t>(walked_count, 1);
  SPL_ASSIGN(layout::Blob blob, layout::Blob::build(walked, options));
  Message message{type,
                  count,
                  std::move(blob),
                  walked_count,
                  type.size() * count,
                  layout::oracle::reach(type, count),
                  layout::oracle::summarise(type, count).blocks};
  return message;
}

Result<Plan> plan(Strategy strategy, const Message& message, const NicFacts& facts, const HandlerCost& cost) {
  if (message.bytes == 0) {
    return fail(Code::unsupported, "a message of zero bytes has nothing to unpack");
  }
  Result<Plan> made = fail(Code::invalid, "");
  switch (strategy) {
    case Strategy::host_mpitypes: return fail(Code::invalid, "host-mpitypes puts nothing on the NIC");
    case Strategy::specialised: made = plan_specialised(message); break;
    case Strategy::rw_cp: made = plan_rw_cp(message, facts, cost); break;
    case Strategy::seek: made = plan_seek(message); break;
  }
  if (!made) return made.error();
  SPL_TRY(check_memory(*made, facts, strategy));
  return made;
}

}  // namespace spinloom::offload
