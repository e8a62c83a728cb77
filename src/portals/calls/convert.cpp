#include "portals/calls/convert.hpp"

#include "portals4_spin.h"

namespace spinloom::calls {
namespace {

ptl_event_kind_t kind_of(nic::EventKind kind) {
  switch (kind) {
    case nic::EventKind::put: return PTL_EVENT_PUT;
    case nic::EventKind::put_overflow: return PTL_EVENT_PUT_OVERFLOW;
    case nic::EventKind::auto_unlink: return PTL_EVENT_AUTO_UNLINK;
    case nic::EventKind::auto_free: return PTL_EVENT_AUTO_FREE;
    case nic::EventKind::link: return PTL_EVENT_LINK;
    case nic::EventKind::pt_disabled: return PTL_EVENT_PT_DISABLED;
    case nic::EventKind::send: return PTL_EVENT_SEND;
    case nic::EventKind::ack: return PTL_EVENT_ACK;
    case nic::EventKind::get: return PTL_EVENT_GET;
    case nic::EventKind::get_overflow: return PTL_EVENT_GET_OVERFLOW;
    case nic::EventKind::atomic: return PTL_EVENT_ATOMIC;
    case nic::EventKind::atomic_overflow: return PTL_EVENT_ATOMIC_OVERFLOW;
    case nic::EventKind::fetch_atomic: return PTL_EVENT_FETCH_ATOMIC;
    case nic::EventKind::fetch_atomic_overflow: return PTL_EVENT_FETCH_ATOMIC_OVERFLOW;
    case nic::EventKind::reply: return PTL_EVENT_REPLY;
    case nic::EventKind::search: return PTL_EVENT_SEARCH;
    default: return PTL_EVENT_DMA;
  }
}

}  // namespace

ptl_ni_fail_t fail_of(nic::Fail failure) {
  switch (failure) {
    case nic::Fail::ok: return PTL_NI_OK;
    case nic::Fail::dropped: return PTL_NI_DROPPED;
    case nic::Fail::no_match: return PTL_NI_NO_MATCH;
    case nic::Fail::pt_disabled: return PTL_NI_PT_DISABLED;
    case nic::Fail::perm_violation: return PTL_NI_PERM_VIOLATION;
    case nic::Fail::op_violation: return PTL_NI_OP_VIOLATION;
    case nic::Fail::segv: return PTL_NI_SEGV;
    case nic::Fail::undeliverable: return PTL_NI_UNDELIVERABLE;
    case nic::Fail::handler_fail: return PTL_NI_HANDLER_FAIL;
    case nic::Fail::handler_fault: return PTL_NI_HANDLER_FAULT;
    case nic::Fail::handler_budget: return PTL_NI_HANDLER_BUDGET;
    case nic::Fail::handler_code: return PTL_NI_HANDLER_CODE;
    default: return PTL_NI_UNDELIVERABLE;
  }
}

ptl_event_t event_of(Process& process, const nic::Event& event) {
  ptl_event_t result{};
  result.start = reinterpret_cast<void*>(event.start);
  result.user_ptr = reinterpret_cast<void*>(event.user_ptr);
  result.hdr_data = event.hdr_data;
  result.match_bits = event.match_bits;
  result.rlength = event.requested_bytes;
  result.mlength = event.manipulated_bytes;
  result.remote_offset = event.remote_offset;
  result.uid = event.user;
  result.type = kind_of(event.kind);
  result.ptl_list = event.in_overflow ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST;
  result.ni_fail_type = fail_of(event.fail);
  result.atomic_operation = static_cast<ptl_op_t>(event.atomic);
  result.atomic_type = static_cast<ptl_datatype_t>(event.datatype);
  if (!event.portal.exists()) return result;
  result.pt_index = event.portal.value % portals_each;
  const auto& interface = process.interface_at(event.portal.value / portals_each);
  if (interface) result.initiator = process_of(*interface, event.initiator);
  return result;
}

nic::PortalIndex portal_of(const NetworkInterface& interface, ptl_pt_index_t index) {
  if (index >= portals_each) return nic::PortalIndex{limits::portal_table_max + interface.number};
  return nic::PortalIndex{interface.number * portals_each + index};
}

bool exists(Process& process, ptl_process_t physical) {
  return physical.phys.nid < process.host().size() && physical.phys.pid == process_id;
}

nic::Rank target_of(Process& process, const NetworkInterface& interface, ptl_process_t target) {
  if (interface.is_logical()) {
    return target.rank < interface.map.size() ? nic::Rank{interface.map[target.rank].phys.nid} : nic::Rank::any();
  }
  return exists(process, target) ? nic::Rank{target.phys.nid} : nic::Rank::any();
}

nic::Rank source_of(Process& process, const NetworkInterface& interface, ptl_process_t match_id) {
  constexpr nic::Rank nobody{nic::Rank::any_value - 1};  // no job has so many nodes
  if (!interface.is_logical()) {
    if (match_id.phys.pid == PTL_PID_ANY) match_id.phys.pid = process_id;
    if (match_id.phys.pid != process_id) return nobody;
  }
  const bool takes_any = interface.is_logical() ? match_id.rank == PTL_RANK_ANY : match_id.phys.nid == PTL_NID_ANY;
  if (takes_any) return nic::Rank::any();
  const nic::Rank source = target_of(process, interface, match_id);
  return source == nic::Rank::any() ? nobody : source;
}

std::optional<std::vector<nic::IovecElement>> list_of(const void* start, ptl_size_t count, int count_max) {
  if (count > static_cast<ptl_size_t>(count_max) || (start == nullptr && count > 0)) return std::nullopt;
  const auto* elements = static_cast<const ptl_iovec_t*>(start);
  std::vector<nic::IovecElement> list;
  ptl_size_t sum = 0;
  for (ptl_size_t i = 0; i < count; ++i) {
    if (elements[i].iov_len == 0) continue;
    if (elements[i].iov_base == nullptr || elements[i].iov_len > PTL_SIZE_MAX - sum) return std::nullopt;
    sum += elements[i].iov_len;
    list.push_back({static_cast<uint8_t*>(elements[i].iov_base), elements[i].iov_len});
  }
  return list;
}

ptl_process_t process_of(const NetworkInterface& interface, nic::Rank node) {
  ptl_process_t result{};
  if (interface.is_logical()) {
    result.rank = node.value < interface.rank_of.size() ? interface.rank_of[node.value] : PTL_RANK_ANY;
  } else {
    result.phys.nid = node.value;
    result.phys.pid = process_id;
  }
  return result;
}

}  // namespace spinloom::calls
