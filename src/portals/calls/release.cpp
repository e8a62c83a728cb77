#include "portals/calls/release.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "portals/calls/convert.hpp"

namespace spinloom::calls {
namespace {

constexpr Time patience{1'000'000'000'000};  // 1 s: how long messages under way may take to end
constexpr Time pause{1'000'000'000};         // 1 ms

// Disables the portal table entries of an interface. False: a peer may still write by one of them, and those that were
// enabled are so again. Messages that came meanwhile have been refused.
bool disable_portals(portals::Interface& nic, const NetworkInterface& interface) {
  std::vector<nic::PortalIndex> disabled;
  for (ptl_pt_index_t index = 0; index < portals_each; ++index) {
    if (!interface.portals[index]) continue;
    const auto was_enabled = nic.pt_disable(portal_of(interface, index));
    if (was_enabled.ok() && *was_enabled) disabled.push_back(portal_of(interface, index));
    if (was_enabled || was_enabled.error().code != Code::exhausted) continue;
    for (const nic::PortalIndex one : disabled) std::ignore = nic.pt_enable(one);
    return false;
  }
  return true;
}

}  // namespace

bool release(Process& process, uint32_t number) {
  auto& interface = process.interface_at(number);
  Host& host = process.host();
  while (interface && interface->is_releasing) host.wait(host.port().now() + pause);
  if (!interface) return true;
  interface->is_releasing = true;
  portals::Interface& nic = process.portals();
  if (!host.drain() || !disable_portals(nic, *interface)) {
    interface->is_releasing = false;
    return false;
  }
  for (; interface->open_bundles > 0; --interface->open_bundles) std::ignore = nic.bundle_end();
  // No message comes in any more. Those that wait are removed: nothing more lands in the program's memory.
  nic::Entry all;
  all.match_rank = nic::Rank::any();
  all.ignore_bits = ~uint64_t{0};
  for (ptl_pt_index_t index = 0; index < portals_each; ++index) {
    if (interface->portals[index]) std::ignore = nic.me_search(portal_of(*interface, index), all, true);
  }
  const Time deadline = process.host().port().now() + patience;
  interface->entries.for_each([&](ptl_handle_any_t, const Entry& entry) {
    for (;;) {
      const auto unlinked = nic.me_unlink(entry.id);
      if (!unlinked || *unlinked == portals::Unlinked::done || process.host().port().now() >= deadline) break;
      process.host().wait(std::min(deadline, process.host().port().now() + pause));
    }
    process.release(entry.spin);
  });
  interface->contexts.for_each([&](ptl_handle_any_t, const Spin& spin) { process.release(spin); });
  interface->memories.for_each(
      [&](ptl_handle_any_t, const HpuMemory& memory) { std::ignore = nic.memory_free(memory.offset); });
  for (ptl_pt_index_t index = 0; index < portals_each; ++index) {
    if (interface->portals[index]) std::ignore = nic.pt_free(portal_of(*interface, index));
  }
  interface->counters.for_each(
      [&](ptl_handle_any_t, const Counter& counter) { std::ignore = nic.ct_free(counter.id); });
  interface->queues.for_each([&](ptl_handle_any_t, const Queue& queue) { std::ignore = nic.eq_free(queue.id); });
  interface.reset();
  return true;
}

}  // namespace spinloom::calls
