// Convert - translates between the types of Portals 4 and those of the NIC: events, failures, processes, portal table
// entries.
//
// Contract: the functions depend on their arguments only.
// Threads: any. Time: none.
#pragma once

#include <optional>

#include "nic/event.hpp"
#include "ptl/process.hpp"

namespace spinloom::ptl {

[[nodiscard]] ptl_ni_fail_t fail_of(nic::Fail failure);
// The event as a program of this process reads it.
[[nodiscard]] ptl_event_t event_of(Process& process, const nic::Event& event);
// The NIC's index for a portal table entry of an interface. An index that no interface can have becomes one that the
// NIC lacks, too.
[[nodiscard]] nic::PortalIndex portal_of(const NetworkInterface& interface, ptl_pt_index_t index);
// The node of a target process; `any` if no such process exists.
[[nodiscard]] nic::Rank target_of(Process& process, const NetworkInterface& interface, ptl_process_t target);
// The node whose messages an entry takes, or `any`; nothing if no such process exists.
[[nodiscard]] std::optional<nic::Rank> source_of(Process& process, const NetworkInterface& interface,
                                                 ptl_process_t match_id);
// The elements of a list, without empty ones; nothing if an element is wrong or there are more than `most`.
[[nodiscard]] std::optional<std::vector<nic::IovecElement>> list_of(const void* start, ptl_size_t count, int most);
[[nodiscard]] ptl_process_t process_of(const NetworkInterface& interface, nic::Rank node);

}  // namespace spinloom::ptl
