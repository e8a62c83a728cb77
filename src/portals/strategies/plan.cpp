#include "portals/strategies/plan.hpp"

#include <algorithm>
#include <cstring>

#include "portals/strategies/plan_parts.hpp"
#include "spinloom/ddt.h"

namespace spinloom::strategies {
namespace {

Status check_memory(const Plan& plan, const NicFacts& facts, Strategy strategy) {
  // Each of the two windows is aligned.
  const uint64_t needed = aligned(plan.constants.size()) + aligned(plan.state.size());
  if (needed <= facts.state_bytes) return {};
  return fail(Code::exhausted, name_of(strategy), " needs ", needed, " B of NIC memory, the NIC has ",
              facts.state_bytes, "; enlarge memory.state_bytes");
}

// The whole message as one leaf: a vector if the normal form is one, otherwise the list of its blocks.
Result<layout::Blob> flatten(const Message& message) {
  if (message.blob.root_kind() <= SPL_LEAF_LAST) return message.blob;
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

// True if a struct of vectors and lists is to be walked member by member instead of as one list of blocks. The list is
// up to a quarter faster (WRF_y), because it needs no step from member to member. But the list repeats what members
// share, and writes vectors out as entries. Beyond this size the two are within 4 % of each other (LAMMPS, WRF_x), and
// the list only costs memory.
bool walks_members(const layout::Blob& blob, const layout::Blob& list) {
  constexpr uint64_t list_bytes_free = 4096;
  constexpr uint64_t list_bytes_factor = 2;
  if (!blob.is_narrow() || blob.root_kind() != SPL_NODE_MEMBERS) return false;
  const auto* root = spl_node_at_narrow(blob.data(), sizeof(spl_layout_header));
  const auto* members = reinterpret_cast<const spl_member_narrow*>(root + 1);
  for (uint32_t i = 0; i < root->count; ++i) {
    if (spl_node_at_narrow(blob.data(), members[i].child)->kind > SPL_LEAF_LAST) return false;
  }
  return list.bytes().size() > std::max(list_bytes_free, list_bytes_factor * blob.bytes().size());
}

Result<Plan> plan_specialised(const Message& message) {
  SPL_ASSIGN(const layout::Blob blob, flatten(message));
  if (walks_members(message.blob, blob)) {
    Plan plan;
    plan.image = "members";
    plan.constants = bytes_of(message.blob);
    return plan;
  }
  if (!blob.is_narrow()) return too_large(message, Strategy::specialised);
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

Result<Plan> plan_seek(const Message& message) {
  Plan plan;
  plan.image = "seek";
  plan.constants = bytes_of(message.blob);
  return plan;
}

}  // namespace

Result<Message> make_message(const layout::Type& type, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_TRY(layout::oracle::check_count(type, count));
  SPL_ASSIGN(const layout::Type elements, layout::contiguous(count, type));
  SPL_ASSIGN(layout::Blob blob, layout::Blob::build(elements));
  const int64_t blocks = layout::oracle::summarise(type, count).blocks;
  if (blocks > limits::message_blocks_max) {
    return fail(Code::overflow, "the message has ", blocks, " blocks, at most ", limits::message_blocks_max,
                " are handled (message_blocks_max)");
  }
  Message message{type, count, std::move(blob), type.size() * count, layout::oracle::reach(type, count), blocks};
  return message;
}

Result<Plan> plan(Strategy strategy, const Message& message, const NicFacts& facts, const HandlerCost& cost) {
  if (message.bytes == 0) {
    return fail(Code::unsupported, "a message of zero bytes has nothing to unpack");
  }
  Result<Plan> result = fail(Code::invalid, "");
  switch (strategy) {
    case Strategy::host_mpitypes:
    case Strategy::host_best:
    case Strategy::host_warm:
    case Strategy::rdma_direct:
    case Strategy::iovec: return fail(Code::invalid, name_of(strategy), " runs no handlers");
    case Strategy::specialised: result = plan_specialised(message); break;
    case Strategy::hpu_local: result = plan_hpu_local(message, facts); break;
    case Strategy::ro_cp:
    case Strategy::rw_cp: result = plan_checkpoints(strategy, message, facts, cost); break;
    case Strategy::seek: result = plan_seek(message); break;
  }
  if (!result) return result.error();
  SPL_TRY(check_memory(*result, facts, strategy));
  return result;
}

}  // namespace spinloom::strategies
