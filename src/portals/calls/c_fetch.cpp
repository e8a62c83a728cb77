// Calls that fetch data or change it at the target: get, atomics, swaps.
#include "portals/calls/call.hpp"
#include "portals/calls/movement.hpp"

namespace spinloom::calls {
namespace {

struct GetGiven {
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
struct AtomicGiven {
  ptl_op_t operation;
  ptl_datatype_t datatype;
  const void* operand = nullptr;
  std::optional<ptl_handle_md_t> get_md = {};
  ptl_size_t get_offset = 0;
};

enum class Family : uint8_t { plain, swaps };

int get(const char* name, const GetGiven& given, const std::optional<When>& when) {
  return priced(name, [&](Process& process) -> int {
    nic::Get get;
    int code = reply_of(process, given.md, given.local_offset, given.length, given.user_ptr, get.reply);
    if (code != PTL_OK) return code;
    const NetworkInterface& interface = *process.owner_of(given.md, Kind::descriptor);
    const spinloom::nic::Rank target = target_of(process, interface, given.target);
    if (target == spinloom::nic::Rank::any()) return PTL_ARG_INVALID;
    get.length = given.length;
    get.target = target;
    get.portal = portal_of(interface, given.portal);
    get.match_bits = given.match_bits;
    get.remote_offset = given.remote_offset;
    std::optional<nic::Trigger> trigger;
    code = trigger_of(process, given.md, when, trigger);
    return code == PTL_OK ? answer(process.portals().get(get, trigger)) : code;
  });
}

// True if the NIC has the operation and the datatype, and the operation belongs to this call's family.
bool fits(const AtomicGiven& given, Family family) {
  if (given.operation >= PTL_OP_LAST || given.datatype >= PTL_DATATYPE_LAST) return false;
  const bool swaps = nic::is_swap(static_cast<nic::AtomicOperation>(given.operation));
  return swaps == (family == Family::swaps);
}

int atomic(const char* name, const Operation& source, const AtomicGiven& given, Family family,
           const std::optional<When>& when) {
  return priced(name, [&](Process& process) -> int {
    nic::Atomic atomic;
    int code = put_of(process, source, atomic.put, when.has_value());
    if (code != PTL_OK) return code;
    if (!fits(given, family)) return PTL_ARG_INVALID;
    atomic.operation = static_cast<nic::AtomicOperation>(given.operation);
    atomic.datatype = static_cast<nic::Datatype>(given.datatype);
    const NetworkInterface& interface = *process.owner_of(source.md, Kind::descriptor);
    const ptl_size_t limit = given.get_md ? interface.limits.max_fetch_atomic_size : interface.limits.max_atomic_size;
    if (source.length > limit) return PTL_ARG_INVALID;
    if (nic::has_operand(atomic.operation)) {
      if (given.operand == nullptr) return PTL_ARG_INVALID;
      atomic.operand = nic::operand_of(atomic.datatype, given.operand);
    }
    if (given.get_md) {
      if (decode(*given.get_md).interface != decode(source.md).interface) return PTL_ARG_INVALID;
      code = reply_of(process, *given.get_md, given.get_offset, source.length, source.user_ptr, atomic.fetch.emplace());
      if (code != PTL_OK) return code;
    }
    std::optional<nic::Trigger> trigger;
    code = trigger_of(process, source.md, when, trigger);
    return code == PTL_OK ? answer(process.portals().atomic(atomic, trigger)) : code;
  });
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::Family;

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
      spinloom::calls::When{trig_ct_handle, threshold});
}

int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
              ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
              void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype) {
  return spinloom::calls::atomic(
      "PtlAtomic",
      {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
      {operation, datatype}, Family::plain, {});
}

int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack_req,
                       ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                       ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation,
                       ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  return spinloom::calls::atomic(
      "PtlTriggeredAtomic",
      {md_handle, local_offset, length, ack_req, target_id, pt_index, match_bits, remote_offset, user_ptr, hdr_data},
      {operation, datatype}, Family::plain, spinloom::calls::When{trig_ct_handle, threshold});
}

int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                   ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                   ptl_op_t operation, ptl_datatype_t datatype) {
  return spinloom::calls::atomic("PtlFetchAtomic",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, nullptr, get_md_handle, local_get_offset}, Family::plain, {});
}

int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id,
                            ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                            void* user_ptr, ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
                            ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  return spinloom::calls::atomic("PtlTriggeredFetchAtomic",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, nullptr, get_md_handle, local_get_offset}, Family::plain,
                                 spinloom::calls::When{trig_ct_handle, threshold});
}

int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
            ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
            const void* operand, ptl_op_t operation, ptl_datatype_t datatype) {
  return spinloom::calls::atomic("PtlSwap",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, operand, get_md_handle, local_get_offset}, Family::swaps, {});
}

int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset, ptl_handle_md_t put_md_handle,
                     ptl_size_t local_put_offset, ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
                     ptl_match_bits_t match_bits, ptl_size_t remote_offset, void* user_ptr, ptl_hdr_data_t hdr_data,
                     const void* operand, ptl_op_t operation, ptl_datatype_t datatype, ptl_handle_ct_t trig_ct_handle,
                     ptl_size_t threshold) {
  return spinloom::calls::atomic("PtlTriggeredSwap",
                                 {put_md_handle, local_put_offset, length, PTL_NO_ACK_REQ, target_id, pt_index,
                                  match_bits, remote_offset, user_ptr, hdr_data},
                                 {operation, datatype, operand, get_md_handle, local_get_offset}, Family::swaps,
                                 spinloom::calls::When{trig_ct_handle, threshold});
}

}  // extern "C"
