// The library and its network interfaces: start and end, limits, identity, the map of ranks.
#include <algorithm>
#include <optional>
#include <tuple>

#include "portals/calls/call.hpp"
#include "portals/calls/convert.hpp"
#include "portals/calls/release.hpp"
#include "portals/interface/data_order.hpp"

namespace spinloom::calls {
namespace {

struct LimitRange {
  ptl_size_t least, usual, most;
};

// The usual number of entries is high because MPI libraries ask for no limits and append an entry for each pending
// receive.
constexpr LimitRange range_entries{0, 1 << 16, place_count - 1};
constexpr LimitRange range_headers{0, 1 << 16, 1 << 16};  // a header takes no memory before its message comes
constexpr LimitRange range_objects{0, 1024, (1 << 16) / interface_count};
constexpr LimitRange range_counters{0, 1024, place_count - 1};
constexpr LimitRange range_message{0, ptl_size_t{1} << 32, ptl_size_t{1} << 32};
constexpr ptl_size_t usual_ordered = 64;
constexpr Time between_looks{1'000'000'000};  // 1 ms
constexpr LimitRange range_volatile{0, 512, range_message.most};

// Programs leave members uninitialised, so a negative wish counts as a very large one.
template <class T>
void clamp(T& value, const T* desired, const LimitRange& range) {
  const ptl_size_t wish = desired == nullptr ? range.usual : static_cast<ptl_size_t>(*desired);
  value = static_cast<T>(std::clamp(wish, range.least, range.most));
}

// Meets every wish as far as the NIC can; no wish is an error. Limits that programs use in place of one another
// agree: fetched data is not longer than an atomic, and write-after-read order does not hold for longer messages than
// write-after-write order. Volatile data is copied, so any length will do; long copies are made only where they are
// asked for.
ptl_ni_limits_t limits_of(const ptl_ni_limits_t* desired, ptl_size_t atomic_bytes) {
  ptl_ni_limits_t limits{};
  const auto set_limit = [&](auto member, const LimitRange& range) {
    clamp(limits.*member, desired == nullptr ? nullptr : &(desired->*member), range);
  };
  set_limit(&ptl_ni_limits_t::max_entries, range_entries);
  set_limit(&ptl_ni_limits_t::max_unexpected_headers, range_headers);
  set_limit(&ptl_ni_limits_t::max_mds, range_objects);
  set_limit(&ptl_ni_limits_t::max_cts, range_counters);
  set_limit(&ptl_ni_limits_t::max_eqs, range_objects);
  set_limit(&ptl_ni_limits_t::max_pt_index, LimitRange{portals_each - 1, portals_each - 1, portals_each - 1});
  set_limit(&ptl_ni_limits_t::max_iovecs, LimitRange{0, 1024, 1 << 24});
  set_limit(&ptl_ni_limits_t::max_list_size, range_entries);
  set_limit(&ptl_ni_limits_t::max_triggered_ops, LimitRange{0, 1024, 1 << 16});
  set_limit(&ptl_ni_limits_t::max_msg_size, range_message);
  set_limit(&ptl_ni_limits_t::max_atomic_size, LimitRange{8, atomic_bytes, atomic_bytes});
  set_limit(&ptl_ni_limits_t::max_fetch_atomic_size, LimitRange{8, limits.max_atomic_size, limits.max_atomic_size});
  set_limit(&ptl_ni_limits_t::max_volatile_size, range_volatile);
  set_limit(&ptl_ni_limits_t::max_waw_ordered_size,
            LimitRange{usual_ordered, usual_ordered, portals::ordered_bytes_max});
  set_limit(&ptl_ni_limits_t::max_war_ordered_size, LimitRange{8, usual_ordered, limits.max_waw_ordered_size});
  return limits;
}

constexpr const char* until_messages_taken = "until its peers have taken what it sent";

bool has_exactly_one(unsigned int options, unsigned int a, unsigned int b) {
  return (options & (a | b)) == a || (options & (a | b)) == b;
}

// Rank r is node r until the program says otherwise.
std::vector<ptl_process_t> launcher_map(uint32_t size) {
  std::vector<ptl_process_t> map(size);
  for (uint32_t rank = 0; rank < size; ++rank) {
    map[rank].phys.nid = rank;
    map[rank].phys.pid = process_id;
  }
  return map;
}

void set_map(NetworkInterface& interface, std::vector<ptl_process_t> map, uint32_t nodes) {
  interface.map = std::move(map);
  interface.rank_of.assign(nodes, PTL_RANK_ANY);
  for (size_t rank = 0; rank < interface.map.size(); ++rank) {
    interface.rank_of[interface.map[rank].phys.nid] = static_cast<uint32_t>(rank);
  }
}

// Marks the interface as closing: from now on none of its handles is valid. The caller then wakes the calls that wait
// for its objects.
void begin_closing(Process& process, uint32_t number) {
  if (const auto& interface = process.interface_at(number)) interface->is_closing = true;
}

// Begins the last PtlFini; false if this call is not the last.
bool begin_last_fini(Process& process) {
  const CallScope scope(process.host());
  if (process.init_count == 0 || --process.init_count > 0) return false;
  process.is_ending = true;
  for (uint32_t number = 0; number < interface_count; ++number) begin_closing(process, number);
  return true;
}

}  // namespace
}  // namespace spinloom::calls

using spinloom::calls::BlockedScope;
using spinloom::calls::enter;
using spinloom::calls::NetworkInterface;
using spinloom::calls::Process;

extern "C" {

int PtlInit() {
  Process* process = Process::current_or_create();
  if (process == nullptr) return PTL_FAIL;
  const spinloom::calls::CallScope scope(process->host());
  if (process->is_closed || process->is_ending) return PTL_FAIL;
  ++process->init_count;
  return PTL_OK;
}

void PtlFini() {
  Process* process = Process::current();
  if (process == nullptr) return;
  if (!spinloom::calls::begin_last_fini(*process)) return;
  process->wake_waiters();
  {
    const spinloom::calls::CallScope scope(process->host());
    for (uint32_t number = 0; number < spinloom::calls::interface_count; ++number) {
      std::ignore = spinloom::calls::release(*process, number);  // stays if a peer may still write to its memory
    }
  }
  const spinloom::calls::BlockedCall blocked{.call = "PtlFini", .purpose = spinloom::calls::until_messages_taken};
  std::optional<BlockedScope> blocked_scope;
  {
    const spinloom::calls::CallScope scope(process->host());
    blocked_scope.emplace(*process, blocked);
  }
  const bool is_closed = process->host().close();
  const spinloom::calls::CallScope scope(process->host());
  blocked_scope.reset();
  process->is_closed = is_closed;
  process->is_ending = false;
  process->forget_abort();
}

void PtlAbort() {
  // Not by enter(): abort() enters the library by itself, and must wake waiting calls after it has left.
  if (Process* process = Process::current()) process->abort();
}

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t, const ptl_ni_limits_t* desired,
              ptl_ni_limits_t* actual, ptl_handle_ni_t* ni_handle) {
  return enter("PtlNIInit", [&](Process& process) -> int {
    using namespace spinloom::calls;
    if (iface != PTL_IFACE_DEFAULT && iface != 0) return PTL_ARG_INVALID;
    if (ni_handle == nullptr || (options & ~PTL_NI_INIT_OPTIONS_MASK) != 0 ||
        !has_exactly_one(options, PTL_NI_MATCHING, PTL_NI_NO_MATCHING) ||
        !has_exactly_one(options, PTL_NI_LOGICAL, PTL_NI_PHYSICAL)) {
      return PTL_ARG_INVALID;
    }
    const uint32_t number = index_of(options);
    auto& interface = process.interface_at(number);
    while (interface && interface->is_closing && process.init_count > 0) {  // another thread is closing it
      process.host().wait(process.host().port().now() + between_looks);
    }
    if (process.init_count == 0) return PTL_NO_INIT;
    if (!interface) {
      interface = std::make_unique<NetworkInterface>(number, process.next_generation());
      interface->limits = limits_of(desired, process.host().atomic_bytes());
      interface->limits.features = process.host().features() | PTL_TARGET_BIND_INACCESSIBLE;
      interface->may_miss_memory = desired != nullptr && (desired->features & PTL_TARGET_BIND_INACCESSIBLE) != 0;
      const auto limit = [](int value) { return static_cast<uint32_t>(value); };
      process.portals().table_setup({number, process.host().user(), limit(interface->limits.max_entries),
                                     limit(interface->limits.max_list_size),
                                     limit(interface->limits.max_unexpected_headers)});
      interface->portals.resize(portals_each);
      if (interface->is_logical()) set_map(*interface, launcher_map(process.host().size()), process.host().size());
    }
    ++interface->users;
    if (actual != nullptr) *actual = interface->limits;
    *ni_handle = interface->handle;
    return PTL_OK;
  });
}

int PtlNIFini(ptl_handle_ni_t ni_handle) {
  bool is_last = false;
  const int code = enter("PtlNIFini", [&](Process& process) -> int {
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr) return PTL_ARG_INVALID;
    if (interface->users == 1) {
      const spinloom::calls::BlockedCall blocked{.call = "PtlNIFini", .purpose = spinloom::calls::until_messages_taken};
      const BlockedScope blocked_scope(process, blocked);
      if (!process.host().drain()) return PTL_IN_USE;
    }
    interface = process.interface_of(ni_handle);  // other calls may have run
    if (interface == nullptr) return PTL_ARG_INVALID;
    is_last = --interface->users == 0;
    if (is_last) spinloom::calls::begin_closing(process, interface->number);
    return PTL_OK;
  });
  if (!is_last) return code;
  Process& process = *Process::current();
  process.wake_waiters();
  const spinloom::calls::CallScope scope(process.host());
  const uint32_t number = spinloom::calls::decode(ni_handle).interface;
  if (spinloom::calls::release(process, number)) return code;
  NetworkInterface& kept_interface = *process.interface_at(number);
  kept_interface.users = 1;
  kept_interface.is_closing = false;
  return PTL_IN_USE;
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t* status) {
  return spinloom::calls::nic_call("PtlNIStatus", [&](Process& process) -> int {
    if (process.interface_of(ni_handle) == nullptr || status == nullptr) return PTL_ARG_INVALID;
    const auto which = static_cast<unsigned int>(status_register);
    if (which >= PTL_SR_LAST) return PTL_ARG_INVALID;
    const uint32_t table = process.interface_of(ni_handle)->number;
    const auto count = process.portals().refusals(table, static_cast<spinloom::nic::Refusal>(which));
    if (!count) return spinloom::calls::code_of(count.error());
    *status = static_cast<ptl_sr_value_t>(std::min<uint64_t>(*count, INT32_MAX));
    return PTL_OK;
  });
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) {
  return enter("PtlNIHandle", [&](Process& process) -> int {
    if (ni_handle == nullptr) return PTL_ARG_INVALID;
    const bool exists = process.interface_of(handle) != nullptr || process.queue(handle) != nullptr ||
                        process.counter(handle) != nullptr || process.descriptor(handle) != nullptr ||
                        process.entry(handle) != nullptr;
    if (!exists) return PTL_ARG_INVALID;
    *ni_handle = process.interface_at(spinloom::calls::decode(handle).interface)->handle;
    return PTL_OK;
  });
}

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) { return handle1 == handle2 ? 1 : 0; }

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) {
  return enter("PtlGetUid", [&](Process& process) -> int {
    if (process.interface_of(ni_handle) == nullptr || uid == nullptr) return PTL_ARG_INVALID;
    *uid = process.host().user();
    return PTL_OK;
  });
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  return enter("PtlGetId", [&](Process& process) -> int {
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || id == nullptr) return PTL_ARG_INVALID;
    *id = spinloom::calls::process_of(*interface, spinloom::nic::Rank{process.node()});
    return PTL_OK;
  });
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  return enter("PtlGetPhysId", [&](Process& process) -> int {
    if (process.interface_of(ni_handle) == nullptr || id == nullptr) return PTL_ARG_INVALID;
    id->phys.nid = process.node();
    id->phys.pid = spinloom::calls::process_id;
    return PTL_OK;
  });
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t* mapping) {
  return enter("PtlSetMap", [&](Process& process) -> int {
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->is_logical() || mapping == nullptr) return PTL_ARG_INVALID;
    if (interface->is_mapped) return PTL_IGNORED;
    const uint32_t nodes = process.host().size();
    bool is_included = false;
    for (ptl_size_t rank = 0; rank < map_size; ++rank) {
      if (!spinloom::calls::exists(process, mapping[rank])) return PTL_ARG_INVALID;
      is_included = is_included || mapping[rank].phys.nid == process.node();
    }
    if (!is_included) return PTL_ARG_INVALID;
    spinloom::calls::set_map(*interface, {mapping, mapping + map_size}, nodes);
    interface->is_mapped = true;
    return PTL_OK;
  });
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping, ptl_size_t* actual_map_size) {
  return enter("PtlGetMap", [&](Process& process) -> int {
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->is_logical() || (mapping == nullptr && map_size > 0))
      return PTL_ARG_INVALID;
    const auto& map = interface->map;
    std::copy_n(map.begin(), std::min<size_t>(map.size(), map_size), mapping);
    if (actual_map_size != nullptr) *actual_map_size = map.size();
    return PTL_OK;
  });
}

int PtlStartBundle(ptl_handle_ni_t ni_handle) {
  return enter("PtlStartBundle", [&](Process& process) -> int {
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr) return PTL_ARG_INVALID;
    ++interface->open_bundles;
    process.portals().bundle_begin();
    return PTL_OK;
  });
}

int PtlEndBundle(ptl_handle_ni_t ni_handle) {
  return enter("PtlEndBundle", [&](Process& process) -> int {
    NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || interface->open_bundles == 0) return PTL_ARG_INVALID;
    --interface->open_bundles;
    return spinloom::calls::return_code(process.portals().bundle_end());
  });
}

}  // extern "C"
