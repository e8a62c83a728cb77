// sPIN: memory on the NIC, and entries with handlers.
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "portals/calls/call.hpp"
#include "portals/calls/contexts.hpp"
#include "portals/calls/convert.hpp"
#include "portals/calls/entries.hpp"
#include "portals4_spin.h"

namespace spinloom::calls {
namespace {

// Finds a handler's number in the image, if the program names a handler. Returns an Error if the image does not have
// it.
Status find_handler(const HandlerImage& image, const char* image_name, ptl_handler_t name,
                    std::optional<uint32_t>& entry) {
  if (name == nullptr) return {};
  entry = image.entry(name);
  if (entry) return {};
  return fail(Code::invalid, "handler image '", image_name, "' has no handler '", name, "'");
}

Status find_handlers(Process& process, const ptl_spin_t& arguments, nic::Context& context) {
  SPL_ASSIGN(const HandlerImage image, process.host().image(arguments.image));
  context.image = image.index;
  SPL_TRY(find_handler(image, arguments.image, arguments.header_handler, context.header_entry));
  SPL_TRY(find_handler(image, arguments.image, arguments.payload_handler, context.payload_entry));
  return find_handler(image, arguments.image, arguments.completion_handler, context.completion_entry);
}

// Writes bytes of the host to allocated NIC memory.
Status write_memory(Process& process, uint64_t offset, const void* bytes, ptl_size_t length) {
  if (length == 0) return {};
  return process.portals().memory_write(offset, {static_cast<const uint8_t*>(bytes), length});
}

// Fills in the context from the arguments; false if the arguments are wrong.
bool fill_context(const ptl_spin_t& arguments, const NetworkInterface& interface, nic::Context& context) {
  if (arguments.hpu_memory != PTL_HPU_MEM_NONE) {
    const HpuMemory* memory = interface.memories.find(arguments.hpu_memory);
    if (memory == nullptr) return false;
    context.state = {memory->offset, memory->length};
  }
  const bool has_initial_state = arguments.hpu_initial_state != nullptr;
  if (has_initial_state && arguments.hpu_initial_state_length > context.state.length) return false;
  if (arguments.constants == nullptr && arguments.constants_length > 0) return false;
  if (arguments.user_header_length > UINT32_MAX) return false;
  context.user_header_bytes = static_cast<uint32_t>(arguments.user_header_length);
  if (arguments.budget_cycles > 0) context.budget_cycles = arguments.budget_cycles;
  if ((arguments.options & ~PTL_SPIN_OPTIONS_MASK) != 0) return false;
  if ((arguments.options & PTL_SPIN_HANDLER_IOVEC) != 0) {
    auto list =
        list_of(arguments.handler_host_mem_start, arguments.handler_host_mem_length, interface.limits.max_iovecs);
    if (!list) return false;
    context.handler_host_iovec = std::move(*list);
  } else {
    context.handler_host_start = reinterpret_cast<uint64_t>(arguments.handler_host_mem_start);
    context.handler_host_length = arguments.handler_host_mem_length;
  }
  context.active = (arguments.options & PTL_SPIN_INACTIVE) == 0;
  if (arguments.packets_in_row > 0) context.blocked_round_robin = {arguments.packets_in_row, arguments.virtual_hpus};
  if (arguments.core_mask == nullptr) return true;
  nic::HpuMask& mask = context.hpus.emplace();
  for (unsigned int word = 0; word < arguments.core_mask_words; ++word) {
    if (word < mask.words.size()) mask.words[word] = arguments.core_mask[word];
  }
  return true;
}

// Makes all objects that a context needs, in order. After an Error the caller gives back those in `spin`.
Status make_context(Process& process, const ptl_spin_t& arguments, nic::Context context, Spin& spin) {
  portals::Interface& nic = process.portals();
  if (arguments.constants_length > 0) {
    SPL_ASSIGN(spin.constants, nic.memory_alloc(arguments.constants_length));
    context.constants = {*spin.constants, arguments.constants_length};
    SPL_TRY(write_memory(process, *spin.constants, arguments.constants, arguments.constants_length));
  }
  if (arguments.hpu_initial_state != nullptr) {
    SPL_TRY(
        write_memory(process, context.state.offset, arguments.hpu_initial_state, arguments.hpu_initial_state_length));
  }
  SPL_ASSIGN(spin.context, nic.context_create(context));
  return {};
}

}  // namespace

int make_spin(Process& process, const ptl_spin_t& arguments, const NetworkInterface& interface, Spin& spin) {
  nic::Context context;
  if (arguments.image == nullptr) return PTL_ARG_INVALID;
  if (const Status has_handlers = find_handlers(process, arguments, context); !has_handlers) {
    log::emit(log::Level::warning, "ptl", has_handlers.error().message);
    return code_of(has_handlers.error());
  }
  if (!fill_context(arguments, interface, context)) return PTL_ARG_INVALID;
  const auto created = make_context(process, arguments, context, spin);
  if (created) return PTL_OK;
  process.release(spin);
  return code_of(created.error());
}

}  // namespace spinloom::calls

using spinloom::calls::nic_call;
using spinloom::calls::Process;

extern "C" {

int PtlHPUAllocMem(ptl_size_t length, ptl_handle_ni_t ni_handle, ptl_hpu_md_h* hpu_mem) {
  return nic_call("PtlHPUAllocMem", [&](Process& process) -> int {
    auto* interface = process.interface_of(ni_handle);
    if (interface == nullptr || hpu_mem == nullptr || length == 0) return PTL_ARG_INVALID;
    const auto offset = process.portals().memory_alloc(length);
    if (!offset) return spinloom::calls::code_of(offset.error());
    *hpu_mem = interface->memories.add({*offset, length});
    return PTL_OK;
  });
}

int PtlHPUFreeMem(ptl_hpu_md_h* hpu_mem) {
  return nic_call("PtlHPUFreeMem", [&](Process& process) -> int {
    using namespace spinloom::calls;
    NetworkInterface* owner = hpu_mem == nullptr ? nullptr : process.owner_of(*hpu_mem, Kind::memory);
    const HpuMemory* memory = owner == nullptr ? nullptr : owner->memories.find(*hpu_mem);
    if (memory == nullptr) return PTL_ARG_INVALID;
    if (!process.portals().memory_free(memory->offset)) return PTL_IN_USE;
    owner->memories.remove(*hpu_mem);
    *hpu_mem = PTL_HPU_MEM_NONE;
    return PTL_OK;
  });
}

int PtlSpinMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, const ptl_spin_t* handlers,
                    ptl_list_t ptl_list, void* user_ptr, ptl_handle_me_t* me_handle) {
  return nic_call("PtlSpinMEAppend", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->is_matching() || handlers == nullptr) return PTL_ARG_INVALID;
    AppendRequest request =
        append_of(process, ni_handle, pt_index, me, ptl_list, user_ptr, PTL_ME_APPEND_OPTIONS_MASK | PTL_IOVEC);
    if (request.code != PTL_OK) return request.code;
    Spin& spin = request.record.spin;
    int code = make_spin(process, *handlers, *interface, spin);
    if (code != PTL_OK) return code;
    request.entry.context = spin.context;
    request.entry.options.host_activated = (handlers->options & PTL_SPIN_HOST_ACTIVATED) != 0;
    const Spin to_release = spin;
    code = append(process, std::move(request), me_handle);
    if (code != PTL_OK) process.release(to_release);
    return code;
  });
}

int PtlSpinActivate(ptl_handle_me_t me_handle) {
  return nic_call("PtlSpinActivate", [&](Process& process) -> int {
    const auto* entry = process.entry(me_handle);
    if (entry == nullptr || !entry->spin.context.exists()) return PTL_ARG_INVALID;
    return spinloom::calls::return_code(process.portals().context_activate(entry->spin.context));
  });
}

int PtlSpinInvoke(ptl_handle_me_t me_handle, const void* bytes, ptl_size_t length, ptl_hdr_data_t hdr_data) {
  return nic_call("PtlSpinInvoke", [&](Process& process) -> int {
    const auto* entry = process.entry(me_handle);
    if (entry == nullptr || (bytes == nullptr && length > 0)) return PTL_ARG_INVALID;
    return spinloom::calls::return_code(
        process.portals().invoke(entry->id, {static_cast<const uint8_t*>(bytes), length}, hdr_data));
  });
}

int PtlSpinTelemetry(ptl_handle_ni_t ni_handle, ptl_handle_me_t me_handle, ptl_spin_count_t which, ptl_size_t* count) {
  return nic_call("PtlSpinTelemetry", [&](Process& process) -> int {
    const auto* interface = process.interface_of(ni_handle);
    if (interface == nullptr || count == nullptr) return PTL_ARG_INVALID;
    spinloom::nic::ContextId context;
    if (me_handle != PTL_INVALID_HANDLE) {
      const auto* entry = interface->entries.find(me_handle);
      if (entry == nullptr || !entry->spin.context.exists()) return PTL_ARG_INVALID;
      context = entry->spin.context;
    }
    const auto found = process.portals().telemetry(static_cast<spinloom::nic::Telemetry>(which), context);
    if (!found) return spinloom::calls::code_of(found.error());
    *count = *found;
    return PTL_OK;
  });
}

}  // extern "C"
