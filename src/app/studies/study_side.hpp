// Side - one rank of a study: a queue that stays empty unless something fails, a portal table entry, a counter of
// bytes.
//
// Contract: make() allocates queue, portal table entry and counter. entry() counts what lands, and makes events only
//   for failures. handlers() and context() install handlers. The other functions are steps of the host programs.
// Threads: one owner. Time: that of the node.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "app/studies/setup.hpp"
#include "portals/interface/interface.hpp"

namespace spinloom::app {

inline constexpr int study_rounds = 2;  // the last one is measured

struct Side {
  simulated::Node* node = nullptr;
  std::unique_ptr<portals::Interface> interface;
  nic::QueueId queue;
  nic::PortalIndex portal;
  nic::CounterId counter;

  static Result<Side> make(simulated::Node& node) {
    Side side;
    side.node = &node;
    side.interface = std::make_unique<portals::Interface>(node);
    constexpr uint32_t queue_slots = 64;
    SPL_ASSIGN(side.queue, side.interface->eq_alloc(queue_slots));
    SPL_ASSIGN(side.portal, side.interface->pt_alloc(side.queue));
    SPL_ASSIGN(side.counter, side.interface->ct_alloc());
    return side;
  }

  // Returns an entry that counts what lands; events report only failures.
  [[nodiscard]] nic::Entry entry(std::vector<uint8_t>& memory, uint64_t match_bits) const {
    nic::Entry entry;
    entry.start = memory.data();
    entry.length = memory.size();
    entry.match_bits = match_bits;
    entry.counter = counter;
    entry.options.ct_comm = true;
    entry.options.ct_bytes = true;
    entry.options.event_success_disable = true;
    return entry;
  }

  [[nodiscard]] portals::PutArguments put(const std::vector<uint8_t>& bytes, const Side& target,
                                          uint64_t match_bits) const {
    portals::PutArguments arguments;
    arguments.local = bytes.data();
    arguments.length = bytes.size();
    arguments.target = target.node->rank();
    arguments.portal = target.portal;
    arguments.match_bits = match_bits;
    arguments.event_send_disable = true;
    return arguments;
  }

  Status wait_for(uint64_t bytes) const {
    const Result<nic::CounterValue> counted = interface->ct_wait(counter, bytes);
    if (!counted) return explain(counted.error(), *node);
    if (counted->failure == 0) return {};
    return fail(Code::fault, "a message failed at rank ", node->rank(), "; the handler ", node->handler_trouble());
  }

  // Returns a context with the handlers of this image and constants in NIC memory; the caller completes and creates it.
  Result<nic::Context> handlers(const LoadedImages& loaded, std::string_view name,
                                const std::vector<uint32_t>& constants) const {
    for (const strategies::HandlerImage& handler : loaded.handlers) {
      if (handler.name != name) continue;
      nic::Context context;
      context.image = handler.index;
      context.header_entry = handler.header_entry;
      context.payload_entry = handler.payload_entry;
      context.completion_entry = handler.completion_entry;
      const std::span<const uint32_t> words(constants);
      context.constants.length = words.size_bytes();
      SPL_ASSIGN(context.constants.offset, interface->memory_alloc(context.constants.length));
      const auto* first = reinterpret_cast<const uint8_t*>(words.data());
      SPL_TRY(interface->memory_write(context.constants.offset, {first, words.size_bytes()}));
      return context;
    }
    return fail(Code::environment, "there is no handler image ", name);
  }

  // Creates a context of this image, with `state_bytes` of state that is not written.
  Result<nic::ContextId> context(const LoadedImages& loaded, std::string_view name,
                                 const std::vector<uint32_t>& constants, uint64_t state_bytes) const {
    SPL_ASSIGN(nic::Context context, handlers(loaded, name, constants));
    context.state.length = state_bytes;
    SPL_ASSIGN(context.state.offset, interface->memory_alloc(state_bytes));
    return interface->context_create(context);
  }

  // Allocates NIC memory and fills it with zeros.
  Result<nic::MemoryWindow> zeroed(uint64_t bytes) const {
    nic::MemoryWindow window{0, bytes};
    SPL_ASSIGN(window.offset, interface->memory_alloc(bytes));
    SPL_TRY(interface->memory_write(window.offset, std::vector<uint8_t>(bytes)));
    return window;
  }

  // Does the work of a host that sees the count and posts a call.
  Status react() const {
    portals::HostWork work;
    work.kind = portals::HostWork::Kind::react;
    return interface->host_work(work);
  }
};

}  // namespace spinloom::app
