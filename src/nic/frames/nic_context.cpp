// Contexts and rule sets: what the host configures, as a whole or not at all.
#include "nic/frames/nic_impl.hpp"

namespace spinloom::frames {

Status Nic::configure(std::vector<RuleSet> rule_sets) { return impl_->matcher.configure(std::move(rule_sets)); }

Status Nic::install(ContextId id, const ContextOptions& options) {
  const Context& handlers = options.handlers;
  const uint64_t memory = impl_->limits.nic_memory_bytes;
  for (const MemoryWindow& window : {handlers.constants, handlers.state}) {
    if (window.offset > memory || window.length > memory - window.offset) {
      return fail(Code::invalid, "context ", id, ": ", window.length, " B at ", window.offset,
                  " lie outside NIC memory of ", memory, " B (Limits::nic_memory_bytes)");
    }
  }
  const bool has_handlers = handlers.header_entry || handlers.payload_entry || handlers.completion_entry;
  if (options.frames_to_memory && has_handlers) {
    return fail(Code::invalid, "context ", id, " has handlers, so its frames cannot go to host memory without them");
  }
  if (options.frames_to_memory && handlers.handler_host_length < ring_entry_bytes) {
    return fail(Code::invalid, "context ", id, ": host memory of ", handlers.handler_host_length,
                " B holds no frame; a ring entry has ", ring_entry_bytes, " B");
  }
  const uint64_t frame_bytes_max = ring_entry_bytes - sizeof(RingHeader);
  if (options.frames_to_memory && impl_->limits.frame_bytes_max > frame_bytes_max) {
    return fail(Code::invalid, "context ", id, ": frames have up to ", impl_->limits.frame_bytes_max,
                " B (Limits::frame_bytes_max), and a ring entry has room for ", frame_bytes_max, " B");
  }
  if (!options.frames_to_memory && !has_handlers) {
    return fail(Code::invalid, "context ", id, " has no handler and no host memory for its frames");
  }
  SPL_ASSIGN(InstalledContext * installed, impl_->contexts.create(id));
  installed->options = options;
  impl_->scheduler.add(id, handlers.hpus, 0);
  return {};
}

Status Nic::initialise(ContextId id, Actions& out) {
  SPL_ASSIGN(InstalledContext * installed, impl_->contexts.get(id));
  if (!installed->options.handlers.initialise_entry) {
    return fail(Code::invalid, "context ", id, " has no initialisation handler");
  }
  if (installed->active || installed->initialising) {
    return fail(Code::invalid, "context ", id, installed->active ? " is active already" : " is being initialised");
  }
  installed->initialising = true;
  const auto [index, packet] = impl_->packets.make();
  packet.context = id;
  packet.by_host = true;
  packet.uses = 1;
  ++installed->packets;
  impl_->ready(HandlerKind::initialise, index);
  impl_->dispatch(out);
  return {};
}

Status Nic::activate(ContextId id, bool active) {
  SPL_ASSIGN(InstalledContext * installed, impl_->contexts.get(id));
  if (active && installed->initialising) {
    return fail(Code::invalid, "context ", id, " is being initialised: activate it when its handler has ended");
  }
  installed->active = active;
  return {};
}

Status Nic::remove(ContextId id) {
  SPL_ASSIGN(InstalledContext * installed, impl_->contexts.get(id));
  if (installed->active) return fail(Code::invalid, "context ", id, " is active: deactivate it first");
  if (installed->packets > 0) {
    return fail(Code::invalid, "context ", id, " has ", installed->packets, " frames under way: try again");
  }
  SPL_TRY(end_messages(id));
  impl_->scheduler.remove(id);
  impl_->contexts.remove(id);
  return {};
}

Status Nic::invoke(ContextId id, uint32_t message, Actions& out) {
  SPL_ASSIGN(InstalledContext * installed, impl_->contexts.get(id));
  if (!installed->options.handlers.payload_entry) {
    return fail(Code::invalid, "context ", id, " has no payload handler to run");
  }
  if (installed->initialising) return fail(Code::invalid, "context ", id, " is being initialised");
  const auto [index, packet] = impl_->packets.make();
  packet.context = id;
  packet.identifier = message;
  packet.by_host = true;
  packet.uses = 1;
  ++installed->packets;
  impl_->tally(Count::host_runs);
  impl_->ready(HandlerKind::payload, index);
  impl_->dispatch(out);
  return {};
}

Status Nic::end_messages(ContextId id) {
  SPL_TRY(impl_->contexts.get(id));
  std::vector<uint32_t> idle;
  impl_->messages.for_each([&](uint32_t slot, const Message& message) {
    if (message.context == id && message.is_idle()) idle.push_back(slot);
  });
  for (const uint32_t slot : idle) {
    impl_->tally(Count::messages_abandoned);
    impl_->forget_message(slot);
  }
  return {};
}

void Nic::on_host_read(ContextId id, uint32_t entries) {
  InstalledContext* const installed = impl_->contexts.find(id);
  if (installed == nullptr) return;
  const uint64_t unread = installed->ring.written - installed->ring.read;
  installed->ring.read += std::min<uint64_t>(entries, unread);
}

const Context* Nic::context(ContextId id) const {
  const InstalledContext* const installed = impl_->contexts.find(id);
  return installed == nullptr ? nullptr : &installed->options.handlers;
}
bool Nic::is_active(ContextId id) const {
  const InstalledContext* const installed = impl_->contexts.find(id);
  return installed != nullptr && installed->active;
}
const TelemetryCounts* Nic::telemetry(ContextId id) const {
  const InstalledContext* const installed = impl_->contexts.find(id);
  return installed == nullptr ? nullptr : &installed->telemetry;
}
const Counts& Nic::counts() const { return impl_->counts; }
const PacketAllocator& Nic::packet_memory() const { return impl_->packet_memory; }
const Limits& Nic::limits() const { return impl_->limits; }

State Nic::state() const {
  return {impl_->packet_memory.used_slots(), impl_->messages.size(), impl_->executions.size(),
          impl_->scheduler.hpus_busy(),      impl_->dmas.size(),     static_cast<uint32_t>(impl_->egress.waiting())};
}

std::string Nic::describe_waiting() const {
  const State now = state();
  return text(now.packets, " packet slots in use, ", now.messages, " messages open, ", now.hers, " handlers, ",
              now.hpus_busy, " of ", impl_->limits.hpus, " HPUs busy, ", now.dmas_open, " DMAs, ", now.egress_waiting,
              " frames waiting for the wire");
}

}  // namespace spinloom::frames
