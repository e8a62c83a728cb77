// Calls that fetch data or change it at the target: get, atomics, swaps.
#include "portals/calls/call.hpp"
#include "portals/calls/movement.hpp"

namespace spinloom::calls {
namespace {

struct GetArguments {
  ptl_handle_md_t md;
  ptl_size_t local_offset;
  ptl_size_t length;
  ptl_process_t target;
  ptl_pt_index_t portal;
  ptl_match_bits_t match_bits;
  ptl_size_t remote_offset;
  void* user_ptr;
};

// A program's arguments of an atomic: the operation, and the place of the old values.
struct AtomicArguments {
  ptl_op_t operation;
  ptl_datatype_t datatype;
  const void* operand = nullptr;
  std::optional<ptl_handle_md_t> get_md = {};
  ptl_size_t get_offset = 0;
};

enum class AtomicFamily : uint8_t { plain, swaps };

int get(const char* name, const GetArguments& arguments, const std::optional<TriggerArguments>& trigger_arguments) {
  return nic_call(name, [&](Process& process) -> int {
    nic::Get get;
    int code = reply_of(process, arguments.md, arguments.local_offset, arguments.length, arguments.user_ptr, get.reply);
    if (code != PTL_OK) return code;
    const NetworkInterface& interface = *process.owner_of(arguments.md, Kind::descriptor);
    const spinloom::nic::Rank target = target_of(process, interface, arguments.target);
    if (target == spinloom::nic::Rank::any()) return PTL_ARG_INVALID;
    get.length = arguments.length;
    get.target = target;
    get.portal = portal_of(interface, arguments.portal);
    get.match_bits = arguments.match_bits;
    get.remote_offset = arguments.remote_offset;
    std::optional<nic::Trigger> trigger;
    code = trigger_of(process, arguments.md, trigger_arguments, trigger);
    return code == PTL_OK ? return_code(process.portals().get(get, trigger)) : code;
  });
}

// True if the NIC has the operation and the datatype, and the operation belongs to this call's family.
bool fits(const AtomicArguments& arguments, AtomicFamily family) {
  if (arguments.operation >= PTL_OP_LAST || arguments.datatype >= PTL_DATATYPE_LAST) return false;
  const bool swaps = nic::is_swap(static_cast<nic::AtomicOperation>(arguments.operation));
  return swaps == (family == AtomicFamily::swaps);
}

int atomic(const char* name, const SendArguments& source, const AtomicArguments& arguments, AtomicFamily family,
           const std::optional<TriggerArguments>& trigger_arguments) {
  return nic_call(name, [&](Process& process) -> int {
    nic::Atomic atomic;
    CheckedSend send;
    int code = check_send(process, source, send);
    if (code == PTL_OK) code = put_of(process, send, source, atomic.put, trigger_arguments.has_value());
    if (code != PTL_OK) return code;
    if (!fits(arguments, family)) return PTL_ARG_INVALID;
    atomic.operation = static_cast<nic::AtomicOperation>(arguments.operation);
    atomic.datatype = static_cast<nic::Datatype>(arguments.datatype);
    const NetworkInterface& interface = *send.interface;
    const ptl_size_t limit =
        arguments.get_md ? interface.limits.max_fetch_atomic_size : interface.limits.max_atomic_size;
    if (source.length > limit) return PTL_ARG_INVALID;
    if (nic::has_operand(atomic.operation)) {
      if (arguments.operand == nullptr) return PTL_ARG_INVALID;
      atomic.operand = nic::operand_of(atomic.datatype, arguments.operand);
    }
    if (arguments.get_md) {
      if (decode(*arguments.get_md).interface != decode(source.md).interface) return PTL_ARG_INVALID;
      code = reply_of(process, *arguments.get_md, arguments.get_offset, source.length, source.user_ptr,
                      atomic.fetch.emplace());
      if (code != PTL_OK) return code;
    }
    std::optional<nic::Trigger> trigger;
    code = trigger_of(process, source.md, trigger_arguments, trigger);
    return code == PTL_OK ? return_code(process.portals().atomic(atomic, trigger)) : code;
  });
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::AtomicFamily;

extern "C" {

int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
           ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr) {
  return spinloom::calls::get(
      "PtlGet", {md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr}, {});
}

int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_process_t target_id,
                    ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr,
                    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  return spinloom::calls::get(
      "PtlTriggeredGet", {md_handle, local_offset, length, target_id, pt_index, match_bits, remote_offset, user_ptr},
      spinloom::calls::TriggerArguments{trig_ct_handle, threshold});
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
  return spinloom::calls::atomic(
      "PtlAtomic",
      {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
      {operation, datatype}, AtomicFamily::plain, {});
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  return spinloom::calls::atomic(
      "PtlTriggeredAtomic",
      {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
      {operation, datatype}, AtomicFamily::plain, spinloom::calls::TriggerArguments{trig_ct_handle, threshold});
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype) {
  return spinloom::calls::atomic("PtlFetchAtomic",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, nullptr, get_md_handle, local_get_offset}, AtomicFamily::plain,
                                 {});
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                            void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  return spinloom::calls::atomic("PtlTriggeredFetchAtomic",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, nullptr, get_md_handle, local_get_offset}, AtomicFamily::plain,
                                 spinloom::calls::TriggerArguments{trig_ct_handle, threshold});
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
            const void* operand, ptl_op_t operation, ptl_datatype_t datatype) {
  return spinloom::calls::atomic("PtlSwap",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, operand, get_md_handle, local_get_offset}, AtomicFamily::swaps,
                                 {});
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                     const void* operand, ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold) {
  return spinloom::calls::atomic("PtlTriggeredSwap",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, operand, get_md_handle, local_get_offset}, AtomicFamily::swaps,
                                 spinloom::calls::TriggerArguments{trig_ct_handle, threshold});
}

}  // extern "C"
