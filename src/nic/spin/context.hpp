// Context - a sPIN execution context: handlers, their NIC memory and their scheduling policy.
//
// Contract: a context is an object of its own; entries refer to it by id. The engine treats handler entry points as
//   opaque numbers, which drivers resolve. Sources: SC'17 sPIN paper, appendix B; scheduling policies and virtual
//   HPUs: SC'19 datatypes paper, section 3.2.1.
// Invariants: (1) memory windows lie in memory the context's owner allocated; (2) blocked round-robin has
//   at least one packet in a row and one virtual HPU; (3) a context in use cannot be freed.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/limits.hpp"
#include "nic/spin/ids.hpp"
#include "nic/spin/iovec.hpp"

namespace spinloom::spin {

// Initialise: runs once, on the host's demand, before the context is active (FPsPIN, deliverable D4.7, section 4.4.6).
// Mail: runs for another handler's request (section 4.4.5).
enum class HandlerKind : uint8_t { header, payload, completion, initialise, mail };
inline constexpr size_t handler_kinds = 5;

// A range of NIC memory, as offsets from its start.
struct MemoryWindow {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Blocked round-robin: `packets_in_row` consecutive packets of a message run one after the other on one virtual HPU.
// The virtual HPU of a packet is (packet index / packets_in_row) mod vhpus. Virtual HPUs are scheduled onto free
// physical HPUs and yield when they have no packet.
struct BlockedRoundRobin {
  uint32_t packets_in_row = 1;
  uint32_t vhpus = 1;
};

// A set of HPUs.
struct HpuMask {
  std::array<uint64_t, limits::hpu_count_max / 64> words{};

  // The mask of `count` HPUs from `first` on.
  static constexpr HpuMask range(uint32_t first, uint32_t count) {
    HpuMask mask;
    for (uint32_t hpu = first; hpu < first + count; ++hpu) mask.add(hpu);
    return mask;
  }
  constexpr void add(uint32_t hpu) { words[hpu / 64] |= uint64_t{1} << (hpu % 64); }
  [[nodiscard]] constexpr bool holds(uint32_t hpu) const { return (words[hpu / 64] >> (hpu % 64) & 1) != 0; }
};
static_assert(limits::hpu_count_max % 64 == 0, "a set of HPUs is whole words");

struct Context {
  uint32_t image = 0;  // the number of the handler image, as the driver's runner gave it
  std::optional<uint32_t> header_entry;
  std::optional<uint32_t> payload_entry;
  std::optional<uint32_t> completion_entry;
  std::optional<uint32_t> initialise_entry;
  std::optional<uint32_t> mail_entry;
  MemoryWindow constants;  // read-only for handlers
  MemoryWindow state;      // writable, shared by all HPUs
  std::optional<BlockedRoundRobin> blocked_round_robin;  // none: any idle HPU
  // The first bytes of a message, which the header handler parses; payload handlers do not get them.
  uint32_t user_header_bytes = 0;
  uint64_t budget_cycles = limits::handler_budget_cycles;
  uint64_t handler_host_start = 0;  // handler host memory
  uint64_t handler_host_length = 0;
  std::vector<IovecElement> handler_host_iovec;  // handler host memory is this list, in its order, unless it is empty
  std::optional<HpuMask> hpus;  // HPUs that may run its handlers; none: any HPU
  bool active = true;  // an inactive one's entries match nothing until ContextActivate

  [[nodiscard]] const std::optional<uint32_t>& entry_of(HandlerKind kind) const {
    switch (kind) {
      case HandlerKind::header: return header_entry;
      case HandlerKind::payload: return payload_entry;
      case HandlerKind::completion: return completion_entry;
      case HandlerKind::initialise: return initialise_entry;
      case HandlerKind::mail: break;
    }
    return mail_entry;
  }
};

// The virtual HPU of the packet at this offset of its message; none under the default policy.
[[nodiscard]] inline VhpuId vhpu_of(const Context& context, uint64_t offset, uint64_t packet_bytes) {
  if (!context.blocked_round_robin) return {};
  const BlockedRoundRobin& policy = *context.blocked_round_robin;
  return VhpuId{static_cast<uint32_t>(offset / packet_bytes / policy.packets_in_row % policy.vhpus)};
}

}  // namespace spinloom::spin
