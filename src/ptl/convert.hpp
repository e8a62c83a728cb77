// Convert - between Portals 4's words and the NIC's: events, failures, processes, portal table entries.
//
// Contract: pure functions of an interface and a value.
// Threads: any. Time: none.
#pragma once

#include <optional>

#include "nic/event.hpp"
#include "ptl/process.hpp"

namespace spinloom::ptl {

[[nodiscard]] ptl_ni_fail_t fail_of(nic::Fail failure);
// As a program of this process reads it.
[[nodiscard]] ptl_event_t event_of(Process& process, const nic::Event& event);
// The NIC's index of an interface's portal table entry; an index that cannot exist becomes one that never does.
[[nodiscard]] nic::PortalIndex portal_of(const NetworkInterface& interface, ptl_pt_index_t index);
// The node of a target; any where there is none.
[[nodiscard]] nic::Rank target_of(Process& process, const NetworkInterface& interface, ptl_process_t target);
// The node that an entry takes messages of, or any; nothing where there is none.
[[nodiscard]] std::optional<nic::Rank> source_of(Process& process, const NetworkInterface& interface,
                                                 ptl_process_t match_id);
// The elements of a list that are not empty; nothing where one is wrong, or there are more than `most`.
[[nodiscard]] std::optional<std::vector<nic::IovecElement>> list_of(const void* start, ptl_size_t count, int most);
[[nodiscard]] ptl_process_t process_of(const NetworkInterface& interface, nic::Rank node);

}  // namespace spinloom::ptl
