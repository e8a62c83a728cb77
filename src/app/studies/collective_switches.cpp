// The rules, contexts and entries that the manager of the network installs at its switches for one group.
#include <algorithm>
#include <bit>

#include "app/studies/collective_run.hpp"

namespace spinloom::app {
namespace {

// These are the limits and sizes of handlers/reduce.c.
constexpr uint32_t senders_max = 64;
constexpr uint64_t slot_bytes = 336;
constexpr uint32_t packet_bytes_max = 64 * 256;

// Returns an entry of a switch. It has no host memory: handlers take all bytes, and only failures are events.
nic::Entry entry_of(uint64_t match_bits, nic::ContextId context) {
  nic::Entry entry;
  entry.match_bits = match_bits;
  entry.options.event_success_disable = true;
  entry.context = context;
  return entry;
}

}  // namespace

uint32_t CollectiveRun::shift() const { return static_cast<uint32_t>(std::bit_width(config_.bytes - 1)); }

// Returns the ranks at the ports of a switch that lead down the tree. In a multicast the root is left out.
std::vector<uint32_t> CollectiveRun::ranks_below(const TreeSwitch& here) const {
  std::vector<uint32_t> ranks;
  for (const uint32_t child : here.children) {
    ranks.push_back(world_.network().rank_of_switch(tree_.switches[child].number).value);
  }
  for (const uint32_t host : here.hosts) {
    if (is_reduction() || host != members_[0].rank) ranks.push_back(host);
  }
  return ranks;
}

Status CollectiveRun::install_switch_handlers() {
  if (is_reduction() && (!std::has_single_bit(config_.payload_bytes) || config_.payload_bytes > packet_bytes_max)) {
    return fail(Code::unsupported, "switches add up packets of a power of two of bytes, at most ", packet_bytes_max,
                ", not of ", config_.payload_bytes, " B");
  }
  number_at_switch_.resize(members_.size());
  for (const TreeSwitch& here : tree_.switches) {
    for (uint32_t i = 0; i < here.hosts.size(); ++i) {
      number_at_switch_[member_of_rank_[here.hosts[i]]] = static_cast<uint32_t>(here.children.size()) + i;
    }
  }
  for (const TreeSwitch& here : tree_.switches) SPL_TRY(install_switch_handlers(here));
  return {};
}

Status CollectiveRun::install_switch_handlers(const TreeSwitch& here) {
  SPL_ASSIGN(simulated::Node* const node, world_.equip(here.number));
  switches_.push_back(node);
  SPL_ASSIGN(Side new_side, Side::make(*node));
  const Side& side = switch_sides_.emplace_back(std::move(new_side));
  SPL_ASSERT(side.portal == members_[0].side.portal, "portal table entry ", side.portal);
  if (is_reduction()) SPL_TRY(install_sum_entry(here, side));
  if (tells_all_members()) SPL_TRY(install_result_entry(here, side));
  if (here.hosts.empty()) return {};
  return world_.network().install(here.number, {side.portal.value, is_reduction() ? up_bits : down_bits});
}

Status CollectiveRun::install_sum_entry(const TreeSwitch& here, const Side& side) {
  if (here.ports() > senders_max) {
    return fail(Code::unsupported, "switch ", here.number, " would add up ", here.ports(),
                " messages, and it adds at most ", senders_max, "; take a smaller radix");
  }
  if (shift() + std::bit_width(here.ports() - 1) > 32) {
    return fail(Code::unsupported, "switch ", here.number, " would add up ", here.ports(), " messages of ",
                config_.bytes, " B, and their offsets need more than 32 bits; send smaller messages");
  }
  const bool is_top = !here.parent.has_value();
  std::vector<uint32_t> targets;
  uint64_t base = 0;
  if (!is_top) {
    targets = {world_.network().rank_of_switch(tree_.switches[*here.parent].number).value};
    base = uint64_t{here.port_at_parent} << shift();
  } else if (tells_all_members()) {
    targets = ranks_below(here);
  } else {
    targets = {members_[0].rank};
  }
  std::vector<uint32_t> constants = {here.ports(),
                                     shift(),
                                     static_cast<uint32_t>(config_.bytes),
                                     static_cast<uint32_t>(std::bit_width(config_.payload_bytes - 1)),
                                     static_cast<uint32_t>(is_top ? down_bits : up_bits),
                                     static_cast<uint32_t>(base),
                                     static_cast<uint32_t>(base >> 32),
                                     static_cast<uint32_t>(targets.size())};
  constants.insert(constants.end(), targets.begin(), targets.end());
  SPL_ASSIGN(nic::Context reducing, side.handlers(loaded_, "reduce", constants));
  const uint64_t slots = (config_.bytes + config_.payload_bytes - 1) / config_.payload_bytes;
  const uint64_t state_bytes = slots * slot_bytes + config_.bytes;
  const Result<nic::MemoryWindow> window = side.zeroed(state_bytes);
  if (!window) {
    return fail(window.error().code, "switch ", here.number, " needs ", state_bytes,
                " B of its memory to add up messages of ", config_.bytes, " B: ", window.error().message,
                "; send smaller messages");
  }
  reducing.state = *window;
  SPL_ASSIGN(const nic::ContextId context, side.interface->context_create(reducing));
  SPL_ASSIGN(std::ignore, side.interface->me_append(side.portal, entry_of(up_bits, context)));
  return {};
}

Status CollectiveRun::install_result_entry(const TreeSwitch& here, const Side& side) {
  if (is_reduction() && !here.parent.has_value()) return {};  // the top makes the results
  const std::vector<uint32_t> targets = ranks_below(here);
  std::vector<uint32_t> constants = {static_cast<uint32_t>(down_bits), static_cast<uint32_t>(targets.size())};
  constants.insert(constants.end(), targets.begin(), targets.end());
  constexpr uint64_t state_bytes = 64;
  SPL_ASSIGN(const nic::ContextId context, side.context(loaded_, "multicast", constants, state_bytes));
  SPL_ASSIGN(std::ignore, side.interface->me_append(side.portal, entry_of(down_bits, context)));
  return {};
}

}  // namespace spinloom::app
