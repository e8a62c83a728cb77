// Perform - the loop over an engine's actions, and the parts of performing them that all drivers share.
//
// Contract: perform_each() gives each action, by its type, to the driver's `perform`, a callable that takes every
//   kind of DriverAction; a callable that misses a kind does not compile. Three kinds leave the driver no choice and
//   do not reach it: StoreLocal and WriteNicMemory are performed here; LocalAtomic is performed here and reaches the
//   driver as the Resume that answers its handler.
//   perform() of one transfer moves its bytes and returns its DMA. The driver decides when, and reports the DMA to the
//   engine.
// Invariants: (1) actions are performed in their order; (2) the commonest kinds of small messages are tested first:
//   Send, DmaWrite, PostCounter, PostEvent.
// Threads: the engine's owner. Time: none.
#pragma once

#include <concepts>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "nic/portals/action.hpp"
#include "portals/interface/host_atomic.hpp"
#include "portals/interface/host_fetch.hpp"

namespace spinloom::portals {

// Combines several callables into one, for std::visit.
template <class... Parts>
struct Overloaded : Parts... {
  using Parts::operator()...;
};

// Copies the bytes of a packet, or of a handler, into host memory. The bytes lie in memory of this process.
inline nic::DmaId perform(const nic::DmaWrite& write) {
  if (write.source.length > 0) std::memcpy(write.host, write.source.bytes, write.source.length);
  return write.dma;
}
inline nic::DmaId perform(const nic::StorePacket& store) {
  std::memcpy(store.local, store.source.bytes, store.source.length);
  return store.dma;
}
// The kinds that are performed by moving bytes: DmaWrite, DmaRead, DmaAtomic, ApplyAtomic, StorePacket.
template <class Kind>
concept Transfer = requires(const Kind& transfer) {
  { portals::perform(transfer) } -> std::same_as<nic::DmaId>;
};

inline void perform(const nic::StoreLocal& store) { std::memcpy(store.local, store.words.data(), sizeof store.words); }
inline void perform(const nic::WriteNicMemory& write, std::span<uint8_t> nic_memory) {
  SPL_ASSERT(write.offset <= nic_memory.size() && write.bytes.size() <= nic_memory.size() - write.offset,
             "NIC memory write at ", write.offset);
  if (!write.bytes.empty()) std::memcpy(nic_memory.data() + write.offset, write.bytes.data(), write.bytes.size());
}

template <class Kind>
concept DriverAction = !std::same_as<Kind, nic::StoreLocal> && !std::same_as<Kind, nic::WriteNicMemory> &&
                       !std::same_as<Kind, nic::LocalAtomic>;

template <class Perform, class Variant>
inline constexpr bool takes_each = false;
template <class Perform, class... Kinds>
inline constexpr bool takes_each<Perform, std::variant<Kinds...>> =
    (std::disjunction_v<std::bool_constant<!DriverAction<Kinds>>, std::is_invocable<Perform&, Kinds&>> && ...);
// A callable that takes every action left to the driver.
template <class Perform>
concept PerformsActions = takes_each<Perform, nic::Action>;

template <class Perform>
  requires PerformsActions<Perform>
void perform_each(nic::Actions& actions, std::span<uint8_t> nic_memory, Perform&& perform) {
  const auto visitor = Overloaded{
      [](const nic::StoreLocal& store) { portals::perform(store); },
      [&](const nic::WriteNicMemory& write) { portals::perform(write, nic_memory); },
      [&](const nic::LocalAtomic& atomic) {
        nic::Resume answer{atomic.her, portals::perform(atomic)};
        perform(answer);
      },
      [&]<DriverAction Kind>(Kind& action) { perform(action); },
  };
  for (nic::Action& action : actions.list) {
    if (auto* send = std::get_if<nic::Send>(&action)) {
      perform(*send);
    } else if (auto* write = std::get_if<nic::DmaWrite>(&action)) {
      perform(*write);
    } else if (auto* counter = std::get_if<nic::PostCounter>(&action)) {
      perform(*counter);
    } else if (auto* event = std::get_if<nic::PostEvent>(&action)) {
      perform(*event);
    } else {
      std::visit(visitor, action);
    }
  }
}

}  // namespace spinloom::portals
