#include "ptl/release.hpp"

#include <tuple>

#include "ptl/convert.hpp"

namespace spinloom::ptl {

void release(Process& process, uint32_t number) {
  auto& interface = process.interface_at(number);
  if (!interface) return;
  process.host().drain();
  portals::Interface& nic = process.portals();
  interface->entries.for_each([&](ptl_handle_any_t, const Entry& entry) {
    std::ignore = nic.me_unlink(entry.id);
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
}

}  // namespace spinloom::ptl
