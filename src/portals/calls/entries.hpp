// Entries - checks a matching list entry as a program describes it, translates it for the NIC, and appends it.
//
// Contract: append_of() checks the arguments of an append, except the place for the handle and whether the interface
//   matches. append() hands the entry to the NIC and gives it a handle. Between the two the caller may add to the
//   entry.
// Invariants: (1) AppendRequest::code is PTL_OK or the error code for the program.
// Threads: the rank's. Time: append() waits for the NIC's answer.
#pragma once

#include "portals/calls/convert.hpp"

namespace spinloom::calls {

struct AppendRequest {
  int code = PTL_FAIL;
  NetworkInterface* interface = nullptr;
  nic::PortalIndex portal;
  nic::ListKind list = nic::ListKind::priority;
  nic::Entry entry;
  Entry record;
};

[[nodiscard]] AppendRequest append_of(Process& process, ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
                                      const ptl_me_t* me, ptl_list_t list, void* user_ptr, unsigned int options_mask);
// If there is a trigger, the NIC appends the entry when the trigger fires.
[[nodiscard]] int append(Process& process, AppendRequest&& request, ptl_handle_me_t* handle,
                         const std::optional<nic::Trigger>& trigger = {});

}  // namespace spinloom::calls
