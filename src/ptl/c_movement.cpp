// Memory descriptors, and the data that leaves from them.
#include "ptl/call.hpp"
#include "ptl/convert.hpp"

namespace spinloom::ptl {
namespace {

// Options that the NIC has nothing for.
constexpr unsigned int unknown_here = PTL_IOVEC;

// What every operation on a descriptor says of itself.
struct Operation {
  ptl_handle_md_t md;
  ptl_size_t local_offset;
  ptl_size_t length;
  ptl_ack_req_t ack_req;
  ptl_process_t target;
  ptl_pt_index_t portal;
  ptl_match_bits_t match_bits;
  ptl_size_t remote_offset;
  void* user_ptr;
  ptl_hdr_data_t hdr_data;
};

nic::AckRequest ack_of(ptl_ack_req_t request) {
  switch (request) {
    case PTL_ACK_REQ: return nic::AckRequest::ack;
    case PTL_CT_ACK_REQ: return nic::AckRequest::ct_ack;
    case PTL_OC_ACK_REQ: return nic::AckRequest::oc_ack;
    default: return nic::AckRequest::none;
  }
}

// Fills in `put`, or says what is wrong with the arguments.
int put_of(Process& process, const Operation& given, nic::Put& put) {
  const Descriptor* md = process.descriptor(given.md);
  if (md == nullptr || given.ack_req > PTL_OC_ACK_REQ) return PTL_ARG_INVALID;
  const NetworkInterface& interface = *process.owner_of(given.md, Kind::descriptor);
  const unsigned int options = md->given.options;
  const bool inside = given.local_offset <= md->given.length && given.length <= md->given.length - given.local_offset;
  if (!inside || given.length > interface.limits.max_msg_size) return PTL_ARG_INVALID;
  if ((options & PTL_MD_VOLATILE) != 0 && given.length > interface.limits.max_volatile_size) return PTL_ARG_INVALID;
  const bool counted = given.ack_req == PTL_CT_ACK_REQ || given.ack_req == PTL_OC_ACK_REQ;
  if (given.ack_req == PTL_ACK_REQ && !md->queue.exists()) return PTL_ARG_INVALID;
  if (counted && !md->counter.exists()) return PTL_ARG_INVALID;
  if (given.ack_req != PTL_NO_ACK_REQ && (options & PTL_MD_UNRELIABLE) != 0) return PTL_ARG_INVALID;
  const auto target = target_of(process, interface, given.target);
  if (!target) return PTL_ARG_INVALID;
  put.local = given.length == 0 ? nullptr : static_cast<const uint8_t*>(md->given.start) + given.local_offset;
  put.length = given.length;
  put.target = *target;
  put.portal = portal_of(interface, given.portal);
  put.match_bits = given.match_bits;
  put.remote_offset = given.remote_offset;
  put.hdr_data = given.hdr_data;
  put.ack_request = ack_of(given.ack_req);
  put.queue = md->queue;
  put.counter = md->counter;
  put.ct_send = (options & PTL_MD_EVENT_CT_SEND) != 0 && md->counter.exists();
  put.ct_ack = (options & PTL_MD_EVENT_CT_ACK) != 0;
  put.ct_bytes = (options & PTL_MD_EVENT_CT_BYTES) != 0;
  put.event_send_disable = (options & (PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE)) != 0;
  put.event_success_disable = (options & PTL_MD_EVENT_SUCCESS_DISABLE) != 0;
  put.user_ptr = reinterpret_cast<uint64_t>(given.user_ptr);
  return PTL_OK;
}

// The trigger of an operation, or why there cannot be one.
int trigger_of(Process& process, ptl_handle_md_t md, ptl_handle_ct_t handle, ptl_size_t threshold,
               nic::Trigger& trigger) {
  Counter* counter = process.counter(handle);
  if (counter == nullptr || decode(md).interface != decode(handle).interface) return PTL_ARG_INVALID;
  const NetworkInterface& interface = *process.owner_of(handle, Kind::counter);
  auto& waiting = counter->waiting;
  const nic::CounterValue value = process.portals().ct_get(counter->id);
  while (!waiting.empty() && waiting.top() <= value.success + value.failure) waiting.pop();
  if (waiting.size() >= static_cast<size_t>(interface.limits.max_triggered_ops)) return PTL_NO_SPACE;
  waiting.push(threshold);
  trigger = {counter->id, threshold, 0};
  return PTL_OK;
}

// An operation that the NIC cannot do yet: its descriptor is checked, nothing else.
int not_yet(const char* name, ptl_handle_md_t md) {
  return priced(
      name, [&](Process& process) -> int { return process.descriptor(md) == nullptr ? PTL_ARG_INVALID : PTL_FAIL; });
}

}  // namespace
}  // namespace spinloom::ptl

using spinloom::ptl::not_yet;
using spinloom::ptl::priced;
using spinloom::ptl::Process;

extern "C" {

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t* md, ptl_handle_md_t* md_handle) {
  return priced("PtlMDBind", [&](Process& process) -> int {
    using namespace spinloom::ptl;
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || md == nullptr || md_handle == nullptr) return PTL_ARG_INVALID;
    if ((md->options & ~PTL_MD_OPTIONS_MASK) != 0) return PTL_ARG_INVALID;
    const Queue* queue = interface->queues.find(md->eq_handle);
    const Counter* counter = interface->counters.find(md->ct_handle);
    if (queue == nullptr && md->eq_handle != PTL_EQ_NONE) return PTL_ARG_INVALID;
    if (counter == nullptr && md->ct_handle != PTL_CT_NONE) return PTL_ARG_INVALID;
    if ((md->options & unknown_here) != 0) return PTL_FAIL;
    if (interface->descriptors.size() >= static_cast<uint32_t>(interface->limits.max_mds)) return PTL_NO_SPACE;
    Descriptor made;
    made.given = *md;
    if (queue != nullptr) made.queue = queue->id;
    if (counter != nullptr) made.counter = counter->id;
    *md_handle = interface->descriptors.add(made);
    return *md_handle == PTL_INVALID_HANDLE ? PTL_NO_SPACE : PTL_OK;
  });
}

int PtlMDRelease(ptl_handle_md_t md_handle) {
  return priced("PtlMDRelease", [&](Process& process) -> int {
    if (process.descriptor(md_handle) == nullptr) return PTL_ARG_INVALID;
    process.owner_of(md_handle, spinloom::ptl::Kind::descriptor)->descriptors.remove(md_handle);
    return PTL_OK;
  });
}

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
           ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
           void* user_ptr, ptl_hdr_data_t hdr_data) {
  return priced("PtlPut", [&](Process& process) -> int {
    spinloom::nic::Put put;
    const int code = spinloom::ptl::put_of(
        process,
        {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
        put);
    return code == PTL_OK ? spinloom::ptl::answer(process.portals().put(put)) : code;
  });
}

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                    ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle,
                    ptl_size_t threshold) {
  return priced("PtlTriggeredPut", [&](Process& process) -> int {
    spinloom::nic::Put put;
    spinloom::nic::Trigger trigger;
    int code = spinloom::ptl::put_of(
        process,
        {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
        put);
    if (code == PTL_OK) code = spinloom::ptl::trigger_of(process, md_handle, trig_ct_handle, threshold, trigger);
    return code == PTL_OK ? spinloom::ptl::answer(process.portals().put(put, trigger)) : code;
  });
}

// Every operation of this NIC on host memory is in it when its event is.
int PtlAtomicSync() {
  return spinloom::ptl::enter("PtlAtomicSync", [](Process&) { return PTL_OK; });
}

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t, ptl_size_t, ptl_process_t, ptl_pt_index_t, ptl_match_bits_t,
           ptl_size_t, void*) {
  return not_yet("PtlGet", md_handle);
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t, ptl_size_t, ptl_ack_req_t, ptl_process_t, ptl_pt_index_t,
              ptl_match_bits_t, ptl_size_t, void*, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t) {
  return not_yet("PtlAtomic", md_handle);
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t, ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_process_t,
                   ptl_pt_index_t, ptl_match_bits_t, ptl_size_t, void*, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t) {
  return not_yet("PtlFetchAtomic", get_md_handle);
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t, ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_process_t,
            ptl_pt_index_t, ptl_match_bits_t, ptl_size_t, void*, ptl_hdr_data_t, const void*, ptl_op_t,
            ptl_datatype_t) {
  return not_yet("PtlSwap", get_md_handle);
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t, ptl_size_t, ptl_process_t, ptl_pt_index_t, ptl_match_bits_t,
                    ptl_size_t, void*, ptl_handle_ct_t, ptl_size_t) {
  return not_yet("PtlTriggeredGet", md_handle);
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t, ptl_size_t, ptl_ack_req_t, ptl_process_t, ptl_pt_index_t,
                       ptl_match_bits_t, ptl_size_t, void*, ptl_hdr_data_t, ptl_op_t, ptl_datatype_t, ptl_handle_ct_t,
                       ptl_size_t) {
  return not_yet("PtlTriggeredAtomic", md_handle);
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t, ptl_handle_md_t, ptl_size_t, ptl_size_t,
                            ptl_process_t, ptl_pt_index_t, ptl_match_bits_t, ptl_size_t, void*, ptl_hdr_data_t,
                            ptl_op_t, ptl_datatype_t, ptl_handle_ct_t, ptl_size_t) {
  return not_yet("PtlTriggeredFetchAtomic", get_md_handle);
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t, ptl_handle_md_t, ptl_size_t, ptl_size_t, ptl_process_t,
                     ptl_pt_index_t, ptl_match_bits_t, ptl_size_t, void*, ptl_hdr_data_t, const void*, ptl_op_t,
                     ptl_datatype_t, ptl_handle_ct_t, ptl_size_t) {
  return not_yet("PtlTriggeredSwap", get_md_handle);
}

}  // extern "C"
