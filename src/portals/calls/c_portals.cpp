// Portal table entries.
#include "portals/calls/call.hpp"
#include "portals/calls/convert.hpp"

namespace spinloom::calls {
namespace {

// Returns the next free index after the one given out last; portals_each if none is free.
ptl_pt_index_t next_free(const NetworkInterface& interface) {
  for (ptl_pt_index_t step = 0; step < portals_each; ++step) {
    const ptl_pt_index_t index = (interface.next_portal + step) % portals_each;
    if (!interface.portals[index]) return index;
  }
  return portals_each;
}

template <class Work>
int with_portal(const char* name, ptl_handle_ni_t ni_handle, ptl_pt_index_t index, Work work) {
  return nic_call(name, [&](Process& process) -> int {
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || index >= portals_each || !interface->portals[index]) return PTL_ARG_INVALID;
    return work(process, *interface, portal_of(*interface, index));
  });
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::NetworkInterface;
using spinloom::calls::Process;
using spinloom::calls::Queue;
using spinloom::calls::return_code;
using spinloom::calls::with_portal;

extern "C" {

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle, ptl_pt_index_t pt_index_req,
               ptl_pt_index_t* pt_index) {
  return spinloom::calls::nic_call("PtlPTAlloc", [&](Process& process) -> int {
    using namespace spinloom::calls;
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || pt_index == nullptr || (options & ~PTL_PT_ALLOC_OPTIONS_MASK) != 0) {
      return PTL_ARG_INVALID;
    }
    const Queue* queue = interface->queues.find(eq_handle);
    if (queue == nullptr && eq_handle != PTL_EQ_NONE) return PTL_ARG_INVALID;
    if (queue == nullptr && (options & PTL_PT_FLOWCTRL) != 0) return PTL_PT_EQ_NEEDED;
    ptl_pt_index_t index = pt_index_req;
    if (index == PTL_PT_ANY) {
      index = next_free(*interface);
      if (index == portals_each) return PTL_PT_FULL;
    } else if (index >= portals_each) {
      return PTL_ARG_INVALID;
    } else if (interface->portals[index]) {
      return PTL_PT_IN_USE;
    }
    spinloom::portals::PortalOptions portal_options;
    portal_options.flow_control = (options & PTL_PT_FLOWCTRL) != 0;
    portal_options.index = portal_of(*interface, index);
    const auto allocated =
        process.portals().pt_alloc(queue == nullptr ? spinloom::nic::QueueId{} : queue->id, portal_options);
    if (!allocated) return code_of(allocated.error());
    if ((options & PTL_PT_ALLOC_DISABLED) != 0) {
      if (const auto disabled = process.portals().pt_disable(*allocated); !disabled) return code_of(disabled.error());
    }
    interface->portals[index] = true;
    interface->next_portal = index + 1;
    *pt_index = index;
    return PTL_OK;
  });
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  return with_portal("PtlPTFree", ni_handle, pt_index,
                     [&](Process& process, NetworkInterface& interface, auto portal) -> int {
                       if (!process.portals().pt_free(portal)) return PTL_PT_IN_USE;
                       interface.portals[pt_index] = false;
                       return PTL_OK;
                     });
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  return with_portal("PtlPTDisable", ni_handle, pt_index, [](Process& process, NetworkInterface&, auto portal) -> int {
    const auto disabled = process.portals().pt_disable(portal);
    return disabled ? static_cast<int>(PTL_OK) : spinloom::calls::code_of(disabled.error());
  });
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  return with_portal("PtlPTEnable", ni_handle, pt_index, [](Process& process, NetworkInterface&, auto portal) -> int {
    return return_code(process.portals().pt_enable(portal));
  });
}

}  // extern "C"
