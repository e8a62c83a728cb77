// Matching list entries and list entries; a list entry is a matching list entry that every message matches.
#include "portals/calls/call.hpp"
#include "portals/calls/entries.hpp"

namespace spinloom::calls {
namespace {

nic::EntryOptions options_of(unsigned int bits) {
  const auto has = [bits](unsigned int bit) { return (bits & bit) != 0; };
  nic::EntryOptions options;
  options.op_put = has(PTL_ME_OP_PUT);
  options.op_get = has(PTL_ME_OP_GET);
  options.manage_local = has(PTL_ME_MANAGE_LOCAL);
  options.use_once = has(PTL_ME_USE_ONCE);
  options.no_truncate = has(PTL_ME_NO_TRUNCATE);
  options.ack_disable = has(PTL_ME_ACK_DISABLE);
  options.event_link_disable = has(PTL_ME_EVENT_LINK_DISABLE);
  options.event_flowctrl_disable = has(PTL_ME_EVENT_FLOWCTRL_DISABLE);
  options.count_unexpected = has(PTL_ME_LOCAL_INC_UH_RLENGTH);
  options.event_comm_disable = has(PTL_ME_EVENT_COMM_DISABLE);
  options.event_unlink_disable = has(PTL_ME_EVENT_UNLINK_DISABLE);
  options.event_success_disable = has(PTL_ME_EVENT_SUCCESS_DISABLE);
  options.event_over_disable = has(PTL_ME_EVENT_OVER_DISABLE);
  options.unexpected_hdr_disable = has(PTL_ME_UNEXPECTED_HDR_DISABLE);
  options.ct_overflow = has(PTL_ME_EVENT_CT_OVERFLOW);
  options.ct_comm = has(PTL_ME_EVENT_CT_COMM);
  options.ct_bytes = has(PTL_ME_EVENT_CT_BYTES);
  return options;
}

// Takes an entry's memory from its description; false if the description is wrong.
bool take_memory(const ptl_me_t& me, int iovecs_max, nic::Entry& entry, Entry& record) {
  if ((me.options & PTL_IOVEC) == 0) {
    entry.start = static_cast<uint8_t*>(me.start);
    entry.length = me.length;
    return me.start != nullptr || me.length == 0 || me.length == PTL_SIZE_MAX;  // PTL_SIZE_MAX: all memory
  }
  auto list = list_of(me.start, me.length, iovecs_max);
  if (!list) return false;
  record.list = std::move(*list);
  for (const nic::IovecElement& element : record.list) entry.length += element.length;
  entry.iovec = record.list;
  return true;
}

// The matching list entry that acts as this list entry.
ptl_me_t matching_all(const ptl_le_t& le, bool is_logical) {
  ptl_me_t me{};
  me.start = le.start;
  me.length = le.length;
  me.ct_handle = le.ct_handle;
  me.uid = le.uid;
  me.options = le.options;
  if (is_logical) {
    me.match_id.rank = PTL_RANK_ANY;
  } else {
    me.match_id.phys.nid = PTL_NID_ANY;
    me.match_id.phys.pid = PTL_PID_ANY;
  }
  me.ignore_bits = ~ptl_match_bits_t{0};
  return me;
}

int search(Process& process, const AppendRequest& pattern, ptl_search_op_t operation) {
  if (pattern.code != PTL_OK) return pattern.code;
  if (operation > PTL_SEARCH_DELETE) return PTL_ARG_INVALID;
  const auto found = process.portals().me_search(pattern.portal, pattern.entry, operation == PTL_SEARCH_DELETE);
  return found ? static_cast<int>(PTL_OK) : code_of(found.error());
}

int unlink(const char* name, ptl_handle_me_t handle) {
  return nic_call(name, [&](Process& process) -> int {
    const Entry* entry = process.entry(handle);
    if (entry == nullptr) return PTL_ARG_INVALID;
    const auto unlinked = process.portals().me_unlink(entry->id);
    if (!unlinked) return PTL_ARG_INVALID;
    if (*unlinked == portals::Unlinked::in_use) return PTL_IN_USE;
    process.forget_entry(handle);
    return PTL_OK;
  });
}

}  // namespace

AppendRequest append_of(Process& process, ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me,
                        ptl_list_t list, void* user_ptr, unsigned int options_mask) {
  AppendRequest request;
  request.interface = process.interface_of(ni_handle);
  request.code = PTL_ARG_INVALID;
  if (request.interface == nullptr || me == nullptr || list > PTL_OVERFLOW_LIST) return request;
  NetworkInterface& interface = *request.interface;
  const bool is_allocated = pt_index < portals_each && interface.portals[pt_index];
  if (!is_allocated || (me->options & ~options_mask) != 0) return request;
  constexpr unsigned int counting = PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW;
  const Counter* counter = interface.counters.find(me->ct_handle);
  if (counter == nullptr && !names_nothing(me->ct_handle, PTL_CT_NONE, (me->options & counting) != 0)) return request;
  if (!take_memory(*me, interface.limits.max_iovecs, request.entry, request.record)) return request;
  request.code = PTL_OK;
  request.portal = portal_of(interface, pt_index);
  request.list = list == PTL_OVERFLOW_LIST ? nic::ListKind::overflow : nic::ListKind::priority;
  request.record.portal = pt_index;
  request.entry.options = options_of(me->options);
  request.entry.user = me->uid;
  request.entry.match_rank = source_of(process, interface, me->match_id);
  request.entry.sparse = may_have_holes(interface, request.entry.length, (me->options & PTL_ME_IS_ACCESSIBLE) != 0);
  request.entry.match_bits = me->match_bits;
  request.entry.ignore_bits = me->ignore_bits;
  request.entry.min_free = request.entry.options.manage_local ? me->min_free : 0;
  if (counter != nullptr) request.entry.counter = counter->id;
  request.entry.user_ptr = reinterpret_cast<uint64_t>(user_ptr);
  return request;
}

int append(Process& process, AppendRequest&& request, ptl_handle_me_t* handle,
           const std::optional<nic::Trigger>& trigger) {
  if (request.code != PTL_OK) return request.code;
  if (handle == nullptr) return PTL_ARG_INVALID;
  const auto id = process.portals().me_append(request.portal, request.entry, request.list, trigger);
  if (!id) return code_of(id.error());
  request.record.id = *id;
  *handle = process.remember_entry(*request.interface, std::move(request.record));
  return *handle == PTL_INVALID_HANDLE ? PTL_NO_SPACE : PTL_OK;
}

}  // namespace spinloom::calls

using spinloom::calls::nic_call;
using spinloom::calls::Process;

extern "C" {

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, ptl_list_t ptl_list,
                void* user_ptr, ptl_handle_me_t* me_handle) {
  return nic_call("PtlMEAppend", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->is_matching()) return PTL_ARG_INVALID;
    return append(
        process,
        append_of(process, ni_handle, pt_index, me, ptl_list, user_ptr, PTL_ME_APPEND_OPTIONS_MASK | PTL_IOVEC),
        me_handle);
  });
}

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le, ptl_list_t ptl_list,
                void* user_ptr, ptl_handle_le_t* le_handle) {
  return nic_call("PtlLEAppend", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || interface->is_matching() || le == nullptr) return PTL_ARG_INVALID;
    const ptl_me_t me = matching_all(*le, interface->is_logical());
    return append(
        process,
        append_of(process, ni_handle, pt_index, &me, ptl_list, user_ptr, PTL_LE_APPEND_OPTIONS_MASK | PTL_IOVEC),
        le_handle);
  });
}

int PtlMEUnlink(ptl_handle_me_t me_handle) { return spinloom::calls::unlink("PtlMEUnlink", me_handle); }

int PtlLEUnlink(ptl_handle_le_t le_handle) { return spinloom::calls::unlink("PtlLEUnlink", le_handle); }

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, ptl_search_op_t ptl_search_op,
                void* user_ptr) {
  return nic_call("PtlMESearch", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->is_matching()) return PTL_ARG_INVALID;
    const AppendRequest pattern = append_of(process, ni_handle, pt_index, me, PTL_PRIORITY_LIST, user_ptr,
                                            PTL_ME_APPEND_OPTIONS_MASK | PTL_IOVEC);
    return search(process, pattern, ptl_search_op);
  });
}

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le, ptl_search_op_t ptl_search_op,
                void* user_ptr) {
  return nic_call("PtlLESearch", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || interface->is_matching() || le == nullptr) return PTL_ARG_INVALID;
    const ptl_me_t me = matching_all(*le, interface->is_logical());
    const AppendRequest pattern = append_of(process, ni_handle, pt_index, &me, PTL_PRIORITY_LIST, user_ptr,
                                            PTL_LE_APPEND_OPTIONS_MASK | PTL_IOVEC);
    return search(process, pattern, ptl_search_op);
  });
}

int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, ptl_list_t ptl_list,
                         void* user_ptr, ptl_handle_me_t* me_handle, ptl_handle_ct_t trig_ct_handle,
                         ptl_size_t threshold) {
  return nic_call("PtlTriggeredMEAppend", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->is_matching()) return PTL_ARG_INVALID;
    const Counter* counter = interface->counters.find(trig_ct_handle);
    if (counter == nullptr) return PTL_ARG_INVALID;
    return append(
        process,
        append_of(process, ni_handle, pt_index, me, ptl_list, user_ptr, PTL_ME_APPEND_OPTIONS_MASK | PTL_IOVEC),
        me_handle, spinloom::nic::Trigger{counter->id, threshold, 0});
  });
}

int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold) {
  return nic_call("PtlTriggeredMEUnlink", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const Entry* entry = process.entry(me_handle);
    const Counter* counter = process.counter(trig_ct_handle);
    if (entry == nullptr || counter == nullptr || decode(me_handle).interface != decode(trig_ct_handle).interface) {
      return PTL_ARG_INVALID;
    }
    return return_code(process.portals().me_unlink(entry->id, spinloom::nic::Trigger{counter->id, threshold, 0}));
  });
}

}  // extern "C"
