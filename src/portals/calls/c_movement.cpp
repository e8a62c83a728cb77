// Memory descriptors, and puts from them.
#include "portals/calls/call.hpp"
#include "portals/calls/movement.hpp"

namespace spinloom::calls {
namespace {

int put(const char* name, const SendArguments& arguments, const std::optional<TriggerArguments>& trigger_arguments) {
  return nic_call(name, [&](Process& process) -> int {
    CheckedSend send;
    int code = check_send(process, arguments, send);
    if (code != PTL_OK) return code;
    nic::QuickPut quick;
    if (!trigger_arguments && quick_of(send, arguments, quick) && process.portals().port().put_quickly(quick))
      return PTL_OK;
    nic::Put put;
    std::optional<nic::Trigger> trigger;
    code = put_of(process, send, arguments, put, trigger_arguments.has_value());
    if (code == PTL_OK) code = trigger_of(process, arguments.md, trigger_arguments, trigger);
    return code == PTL_OK ? return_code(process.portals().put(put, trigger)) : code;
  });
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::nic_call;
using spinloom::calls::Process;

extern "C" {

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md, ptl_handle_md_t* md_handle) {
  return nic_call("PtlMDBind", [&](Process& process) -> int {
    using namespace spinloom::calls;
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || md == nullptr || md_handle == nullptr) return PTL_ARG_INVALID;
    if ((md->options & ~PTL_MD_OPTIONS_MASK) != 0) return PTL_ARG_INVALID;
    const Queue* queue = interface->queues.find(md->eq_handle);
    const Counter* counter = interface->counters.find(md->ct_handle);
    constexpr unsigned int counting = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_ACK;
    const bool counts = (md->options & counting) != 0;
    if (queue == nullptr && !names_nothing(md->eq_handle, PTL_EQ_NONE, false)) return PTL_ARG_INVALID;
    if (counter == nullptr && !names_nothing(md->ct_handle, PTL_CT_NONE, counts)) return PTL_ARG_INVALID;
    if (interface->descriptors.size() >= static_cast<uint32_t>(interface->limits.max_mds)) return PTL_NO_SPACE;
    Descriptor descriptor;
    descriptor.description = *md;
    descriptor.length = md->length;
    std::vector<spinloom::nic::IovecElement> list;
    if ((md->options & PTL_IOVEC) != 0) {
      auto elements = list_of(md->start, md->length, interface->limits.max_iovecs);
      if (!elements) return PTL_ARG_INVALID;
      list = std::move(*elements);
      descriptor.length = 0;
      for (const auto& element : list) descriptor.length += element.length;
    }
    descriptor.shared = spinloom::nic::Descriptor::make(std::move(list));
    const bool silent = (md->options & (PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE)) != 0;
    descriptor.is_sparse = may_have_holes(*interface, descriptor.length, false);
    descriptor.is_plain = (md->options & PTL_IOVEC) == 0 && (queue == nullptr || silent);
    if (queue != nullptr) descriptor.queue = queue->id;
    if (counter != nullptr) descriptor.counter = counter->id;
    *md_handle = interface->descriptors.add(descriptor);
    return *md_handle == PTL_INVALID_HANDLE ? PTL_NO_SPACE : PTL_OK;
  });
}

int PtlMDRelease(ptl_handle_md_t md_handle) {
  return nic_call("PtlMDRelease", [&](Process& process) -> int {
    const auto* md = process.descriptor(md_handle);
    if (md == nullptr || md->shared->in_use()) return PTL_ARG_INVALID;
    process.owner_of(md_handle, spinloom::calls::Kind::descriptor)->descriptors.remove(md_handle);
    return PTL_OK;
  });
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           void* user_ptr, ptl_hdr_data_t hdr_data) {
  return spinloom::calls::put(
      "PtlPut",
      {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
      {});
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) {
  return spinloom::calls::put(
      "PtlTriggeredPut",
      {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
      spinloom::calls::TriggerArguments{trig_ct_handle, threshold});
}

// Nothing to do: when the event of an atomic is readable, its result is in the host's memory.
int PtlAtomicSync() {
  return spinloom::calls::enter("PtlAtomicSync", [](Process&) { return PTL_OK; });
}

}  // extern "C"
