// Contexts: their handlers, their memory, the start.
#include <algorithm>
#include <cstring>

#include "ethernet/device/card.hpp"

namespace spinloom::ethernet {

// Allocates a window of NIC memory with this content, the rest of which is zero; an empty one for 0 bytes.
Result<spin::MemoryWindow> Card::allocate_window(ContextId id, uint64_t bytes, const std::vector<uint8_t>& content,
                                                 Installed& installed) {
  if (content.size() > bytes) {
    return fail(Code::invalid, "context ", id, ": ", content.size(), " B do not fit into its ", bytes, " B");
  }
  if (bytes == 0) return spin::MemoryWindow{};
  constexpr uint64_t line = 64;
  SPL_ASSIGN(const uint64_t offset, windows_.allocate(bytes, line));
  installed.windows.push_back(offset);
  uint8_t* const place = nic_memory_.bytes().data() + offset;
  std::memset(place, 0, bytes);
  if (!content.empty()) std::memcpy(place, content.data(), content.size());
  return spin::MemoryWindow{offset, bytes};
}

void Card::free_windows(const Installed& installed) {
  for (const uint64_t block : installed.windows) {
    const Status freed = windows_.free(block);
    SPL_ASSERT(freed.ok(), freed.error().message);
  }
}

Result<frames::ContextOptions> Card::make_context(ContextId id, const ContextSetup& setup, Installed& installed) {
  frames::ContextOptions options;
  spin::Context& context = options.handlers;
  options.frames_to_memory = setup.image.empty();
  if (!setup.image.empty()) {
    SPL_ASSIGN(context.image, library_->load(setup.image));
    const auto entry = [&](const char* symbol) -> std::optional<uint32_t> {
      const auto found = library_->entry(context.image, symbol);
      return found ? std::optional<uint32_t>(*found) : std::nullopt;
    };
    context.header_entry = entry("header_handler");
    context.payload_entry = entry("payload_handler");
    context.completion_entry = entry("completion_handler");
    context.initialise_entry = entry("initialise_handler");
    context.mail_entry = entry("mail_handler");
  }
  SPL_ASSIGN(context.constants, allocate_window(id, setup.constants.size(), setup.constants, installed));
  const uint64_t state_bytes = std::max<uint64_t>(setup.state_bytes, setup.state.size());
  SPL_ASSIGN(context.state, allocate_window(id, state_bytes, setup.state, installed));
  context.budget_cycles = setup.budget_cycles;
  context.hpus = setup.hpus;
  if (setup.host_bytes > 0) {
    SPL_ASSIGN(installed.host, host::SharedMemory::create(setup.host_bytes));
  }
  context.handler_host_start = reinterpret_cast<uint64_t>(installed.host.bytes().data());
  context.handler_host_length = setup.host_bytes;
  return options;
}

Status Card::install(ContextId id, const ContextSetup& setup) {
  if (id.value >= installed_.size()) {
    return fail(Code::invalid, "there is no context ", id, ": this NIC has ", installed_.size(),
                " rule sets (MatcherLimits::rule_sets), and as many contexts");
  }
  if (nic_->context(id) != nullptr) return fail(Code::invalid, "context ", id, " is installed: remove it first");
  Installed installed;
  const auto options = make_context(id, setup, installed);
  Status status = options ? nic_->install(id, *options) : Status(options.error());
  if (!status) {
    free_windows(installed);
    return status;
  }
  installed_[id.value] = std::move(installed);
  return {};
}

Status Card::initialise(ContextId id) {
  if (running_.exists()) {
    return fail(Code::invalid, "context ", id, " cannot be initialised while a handler runs: try again");
  }
  SPL_TRY(nic_->initialise(id, actions_));
  initialised_[id.value].reset();
  perform();
  run_handlers();
  (void)flush_wire();
  SPL_ASSERT(initialised_[id.value].has_value(), "the initialisation handler of context ", id, " has not ended");
  if (!*initialised_[id.value]) {
    return fail(Code::fault, "context ", id, ": its initialise_handler has failed; it does not become active");
  }
  return {};
}

Status Card::remove(ContextId id) {
  SPL_TRY(nic_->remove(id));
  free_windows(installed_[id.value]);
  installed_[id.value] = {};
  initialised_[id.value].reset();
  return {};
}

Status Card::invoke(ContextId id, uint32_t message) {
  SPL_TRY(nic_->invoke(id, message, actions_));
  perform();
  if (running_.exists()) return {};
  run_handlers();
  (void)flush_wire();
  return port_error_ ? Status(*port_error_) : Status{};
}

std::span<uint8_t> Card::state(ContextId id) {
  const spin::Context* const context = nic_->context(id);
  if (context == nullptr) return {};
  return {nic_memory_.bytes().data() + context->state.offset, context->state.length};
}
std::span<uint8_t> Card::constants(ContextId id) {
  const spin::Context* const context = nic_->context(id);
  if (context == nullptr) return {};
  return {nic_memory_.bytes().data() + context->constants.offset, context->constants.length};
}
std::span<uint8_t> Card::host_memory(ContextId id) {
  if (id.value >= installed_.size()) return {};
  return installed_[id.value].host.bytes();
}

}  // namespace spinloom::ethernet
