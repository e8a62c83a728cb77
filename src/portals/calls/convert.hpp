// Convert - translates between the types of Portals 4 and those of the NIC: events, failures, processes, portal table
// entries.
//
// Contract: the functions depend on their arguments only.
// Threads: any. Time: none.
#pragma once

#include <optional>

#include "nic/portals/event.hpp"
#include "portals/calls/process.hpp"

namespace spinloom::calls {

[[nodiscard]] ptl_ni_fail_t fail_of(nic::Fail failure);
// The event as a program of this process reads it.
[[nodiscard]] ptl_event_t event_of(Process& process, const nic::Event& event);
// The NIC's index for a portal table entry of an interface. An index that no interface can have becomes one that the
// NIC lacks, too.
[[nodiscard]] nic::PortalIndex portal_of(const NetworkInterface& interface, ptl_pt_index_t index);
// True if the job has a process with this node id and process id.
[[nodiscard]] bool exists(Process& process, ptl_process_t physical);
// The node of a target process, found by its rank or by its node and process id; `any` if there is no such process.
[[nodiscard]] nic::Rank target_of(Process& process, const NetworkInterface& interface, ptl_process_t target);
// The node whose messages an entry takes, or `any`; a node that never sends if no such process exists.
[[nodiscard]] nic::Rank source_of(Process& process, const NetworkInterface& interface, ptl_process_t match_id);
// True if a handle names no object: it is the constant that says so, or a program left 0 there and does not use the
// object.
[[nodiscard]] constexpr bool names_nothing(ptl_handle_any_t handle, ptl_handle_any_t none, bool is_used) {
  return handle == none || (handle == 0 && !is_used);
}
// True if each access to a range must ask what memory is there. That is so if the program said that it may bind memory
// that is not there, or if the range is longer than any memory. `is_promised`: the program says that all of the range
// is there; that counts only if the range is not longer than any memory.
[[nodiscard]] constexpr bool may_have_holes(const NetworkInterface& interface, ptl_size_t length, bool is_promised) {
  constexpr ptl_size_t longest = ptl_size_t{1} << 42;
  return length > longest || (interface.may_miss_memory && !is_promised);
}
// The elements of a list, without empty ones; nothing if the list or an element is null, if the lengths overflow, or if
// there are more than `count_max` elements.
[[nodiscard]] std::optional<std::vector<nic::IovecElement>> list_of(const void* start, ptl_size_t count, int count_max);
[[nodiscard]] ptl_process_t process_of(const NetworkInterface& interface, nic::Rank node);

}  // namespace spinloom::calls
