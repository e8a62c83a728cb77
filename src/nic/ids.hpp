// Ids - the names under which the host and the NIC speak of NIC objects.
//
// Contract: an Id<Tag> is an index that cannot be mistaken for another kind's; the host's floor
//   (portals) picks the ids of entries, queues and counters, the engine those of HERs and DMAs.
// Threads: plain values. Time: none.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

namespace spinloom::nic {

template <class Tag>
struct Id {
  static constexpr uint32_t none_value = UINT32_MAX;
  uint32_t value = none_value;

  [[nodiscard]] constexpr bool exists() const { return value != none_value; }
  constexpr auto operator<=>(const Id&) const = default;
};

template <class Tag>
std::ostream& operator<<(std::ostream& out, Id<Tag> id) {
  return id.exists() ? out << id.value : out << "none";
}

using PortalIndex = Id<struct PortalTag>;
using EntryId = Id<struct EntryTag>;
using QueueId = Id<struct QueueTag>;
using CounterId = Id<struct CounterTag>;
using ContextId = Id<struct ContextTag>;
using HerId = Id<struct HerTag>;
using DmaId = Id<struct DmaTag>;
using HpuId = Id<struct HpuTag>;
using VhpuId = Id<struct VhpuTag>;
using StreamId = Id<struct StreamTag>;              // a streaming put
using OutboundSlotId = Id<struct OutboundSlotTag>;  // of the outbound buffer

// Entries of users: this one stands for all.
inline constexpr uint32_t any_user = UINT32_MAX;

// Logical addressing: a process is its rank.
struct Rank {
  static constexpr uint32_t any_value = UINT32_MAX;
  uint32_t value = 0;

  static constexpr Rank any() { return {any_value}; }
  constexpr auto operator<=>(const Rank&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, Rank rank) {
  return rank == Rank::any() ? out << "any" : out << rank.value;
}

}  // namespace spinloom::nic
