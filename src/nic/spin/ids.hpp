// Ids - the names under which a NIC, its host and its driver speak of what handlers work with.
//
// Contract: an Id<Tag> is an index that cannot be confused with another kind's. The host picks the ids of contexts, the
//   engine those of HERs and DMAs.
// Invariants: an id with Reuse::next_generation has a generation beside its index. So a name of an object that is gone
//   never means the next object with that index.
// Threads: plain values. Time: none.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

namespace spinloom::spin {

enum class Reuse : uint8_t { same_id, next_generation };

template <class Tag, Reuse reuse = Reuse::same_id>
struct Id {
  static constexpr uint32_t none_value = UINT32_MAX;
  uint32_t value = none_value;

  [[nodiscard]] constexpr bool exists() const { return value != none_value; }
  constexpr auto operator<=>(const Id&) const = default;
};

template <class Tag>
struct Id<Tag, Reuse::next_generation> {
  static constexpr uint32_t none_value = UINT32_MAX;
  uint32_t value = none_value;
  uint32_t generation = 0;

  [[nodiscard]] constexpr bool exists() const { return value != none_value; }
  constexpr auto operator<=>(const Id&) const = default;
};

// Returns the next id with the same index; without generations that is the same id.
template <class Tag, Reuse reuse>
[[nodiscard]] constexpr Id<Tag, reuse> next_of(Id<Tag, reuse> id) {
  if constexpr (reuse == Reuse::next_generation) ++id.generation;
  return id;
}

template <class Tag, Reuse reuse>
std::ostream& operator<<(std::ostream& out, Id<Tag, reuse> id) {
  return id.exists() ? out << id.value : out << "none";
}

using ContextId = Id<struct ContextTag>;
using HerId = Id<struct HerTag>;
using DmaId = Id<struct DmaTag>;
using HpuId = Id<struct HpuTag>;
using VhpuId = Id<struct VhpuTag>;
using OutboundSlotId = Id<struct OutboundSlotTag>;  // a slot of the outbound buffer

// The logical address of a process.
struct Rank {
  static constexpr uint32_t any_value = UINT32_MAX;
  uint32_t value = 0;

  static constexpr Rank any() { return {any_value}; }
  constexpr auto operator<=>(const Rank&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, Rank rank) {
  return rank == Rank::any() ? out << "any" : out << rank.value;
}

}  // namespace spinloom::spin
