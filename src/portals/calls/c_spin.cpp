// sPIN: memory on the NIC, and entries with handlers.
#include <cstring>

#include "base/log.hpp"
#include "portals/calls/call.hpp"
#include "portals/calls/contexts.hpp"
#include "portals/calls/entries.hpp"
#include "portals4_spin.h"

namespace spinloom::calls {
namespace {

// Finds a handler's number in the image, if the program names a handler. An Error if the image does not have it.
Status find_handler(const HandlerImage& image, const char* image_name, ptl_handler_t name,
                    std::optional<uint32_t>& entry) {
  if (name == nullptr) return {};
  entry = image.entry(name);
  if (entry) return {};
  return fail(Code::invalid, "handler image '", image_name, "' has no handler '", name, "'");
}

Status find_handlers(Process& process, const ptl_spin_t& given, nic::Context& context) {
  SPL_ASSIGN(const HandlerImage found, process.host().image(given.image));
  context.image = found.index;
  SPL_TRY(find_handler(found, given.image, given.header_handler, context.header_entry));
  SPL_TRY(find_handler(found, given.image, given.payload_handler, context.payload_entry));
  return find_handler(found, given.image, given.completion_handler, context.completion_entry);
}

// Writes bytes of the host to allocated NIC memory.
Status write_memory(Process& process, uint64_t offset, const void* bytes, ptl_size_t length) {
  if (length == 0) return {};
  return process.portals().memory_write(offset, {static_cast<const uint8_t*>(bytes), length});
}

// Fills in the context from the arguments; false if the arguments are wrong.
bool describe(const ptl_spin_t& given, const NetworkInterface& interface, nic::Context& context) {
  if (given.hpu_memory != PTL_HPU_MEM_NONE) {
    const HpuMemory* memory = interface.memories.find(given.hpu_memory);
    if (memory == nullptr) return false;
    context.state = {memory->offset, memory->length};
  }
  const bool initial = given.hpu_initial_state != nullptr;
  if (initial && given.hpu_initial_state_length > context.state.length) return false;
  if (given.constants == nullptr && given.constants_length > 0) return false;
  if (given.user_header_length > UINT32_MAX) return false;
  context.user_header_bytes = static_cast<uint32_t>(given.user_header_length);
  if (given.budget_cycles > 0) context.budget_cycles = given.budget_cycles;
  context.handler_host_start = reinterpret_cast<uint64_t>(given.handler_host_mem_start);
  context.handler_host_length = given.handler_host_mem_length;
  if ((given.options & ~PTL_SPIN_OPTIONS_MASK) != 0) return false;
  context.active = (given.options & PTL_SPIN_INACTIVE) == 0;
  if (given.packets_in_row > 0) context.blocked_round_robin = {given.packets_in_row, given.virtual_hpus};
  if (given.core_mask == nullptr) return true;
  nic::HpuMask& mask = context.hpus.emplace();
  for (unsigned int word = 0; word < given.core_mask_words; ++word) {
    if (word < mask.words.size()) mask.words[word] = given.core_mask[word];
  }
  return true;
}

// Makes all objects that a context needs, in order. After an Error the caller gives back those in `made`.
Status make_context(Process& process, const ptl_spin_t& given, nic::Context context, Spin& made) {
  portals::Interface& nic = process.portals();
  if (given.constants_length > 0) {
    SPL_ASSIGN(made.constants, nic.memory_alloc(given.constants_length));
    context.constants = {*made.constants, given.constants_length};
    SPL_TRY(write_memory(process, *made.constants, given.constants, given.constants_length));
  }
  if (given.hpu_initial_state != nullptr) {
    SPL_TRY(write_memory(process, context.state.offset, given.hpu_initial_state, given.hpu_initial_state_length));
  }
  SPL_ASSIGN(made.context, nic.context_create(context));
  return {};
}

}  // namespace

int make_spin(Process& process, const ptl_spin_t& given, const NetworkInterface& interface, Spin& made) {
  nic::Context context;
  if (given.image == nullptr) return PTL_ARG_INVALID;
  if (const Status found = find_handlers(process, given, context); !found) {
    log::emit(log::Level::warning, "ptl", found.error().message);
    return code_of(found.error());
  }
  if (!describe(given, interface, context)) return PTL_ARG_INVALID;
  const auto created = make_context(process, given, context, made);
  if (created) return PTL_OK;
  process.release(made);
  return code_of(created.error());
}

}  // namespace spinloom::calls

using spinloom::calls::priced;
using spinloom::calls::Process;

extern "C" {

int PtlHPUAllocMem(ptl_size_t length, ptl_handle_ni_t ni_handle, ptl_hpu_md_h* hpu_mem) {
  return priced("PtlHPUAllocMem", [&](Process& process) -> int {
    auto* interface = process.interface_of(ni_handle);
    if (interface == nullptr || hpu_mem == nullptr || length == 0) return PTL_ARG_INVALID;
    const auto offset = process.portals().memory_alloc(length);
    if (!offset) return spinloom::calls::code_of(offset.error());
    *hpu_mem = interface->memories.add({*offset, length});
    return PTL_OK;
  });
}

int PtlHPUFreeMem(ptl_hpu_md_h* hpu_mem) {
  return priced("PtlHPUFreeMem", [&](Process& process) -> int {
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
  return priced("PtlSpinMEAppend", [&](Process& process) -> int {
    using namespace spinloom::calls;
    const NetworkInterface* interface = process.interface_of(ni_handle);
    if (interface == nullptr || !interface->matching() || handlers == nullptr) return PTL_ARG_INVALID;
    Append made =
        append_of(process, ni_handle, pt_index, me, ptl_list, user_ptr, PTL_ME_APPEND_OPTIONS_MASK | PTL_IOVEC);
    if (made.code != PTL_OK) return made.code;
    Spin& spin = made.record.spin;
    int code = make_spin(process, *handlers, *interface, spin);
    if (code != PTL_OK) return code;
    made.entry.context = spin.context;
    made.entry.options.host_activated = (handlers->options & PTL_SPIN_HOST_ACTIVATED) != 0;
    const Spin undo = spin;
    code = append(process, std::move(made), me_handle);
    if (code != PTL_OK) process.release(undo);
    return code;
  });
}

int PtlSpinActivate(ptl_handle_me_t me_handle) {
  return priced("PtlSpinActivate", [&](Process& process) -> int {
    const auto* entry = process.entry(me_handle);
    if (entry == nullptr || !entry->spin.context.exists()) return PTL_ARG_INVALID;
    return spinloom::calls::answer(process.portals().context_activate(entry->spin.context));
  });
}

int PtlSpinInvoke(ptl_handle_me_t me_handle, const void* bytes, ptl_size_t length, ptl_hdr_data_t hdr_data) {
  return priced("PtlSpinInvoke", [&](Process& process) -> int {
    const auto* entry = process.entry(me_handle);
    if (entry == nullptr || (bytes == nullptr && length > 0)) return PTL_ARG_INVALID;
    return spinloom::calls::answer(
        process.portals().invoke(entry->id, {static_cast<const uint8_t*>(bytes), length}, hdr_data));
  });
}

int PtlSpinTelemetry(ptl_handle_ni_t ni_handle, ptl_handle_me_t me_handle, ptl_spin_count_t which, ptl_size_t* count) {
  return priced("PtlSpinTelemetry", [&](Process& process) -> int {
    if (process.interface_of(ni_handle) == nullptr || count == nullptr) return PTL_ARG_INVALID;
    spinloom::nic::ContextId context;
    if (me_handle != PTL_INVALID_HANDLE) {
      const auto* entry = process.entry(me_handle);
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
