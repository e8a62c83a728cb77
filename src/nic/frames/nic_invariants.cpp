// Checks of what the headers of this floor call invariants, for tests.
#include <initializer_list>

#include "nic/frames/nic_impl.hpp"
#include "nic/spin/slot_counts.hpp"

namespace spinloom::frames {
namespace {

// The phase in which a message's handlers of this kind run.
bool runs_in(HandlerKind kind, Phase phase) {
  switch (kind) {
    case HandlerKind::header: return phase == Phase::header;
    case HandlerKind::completion: return phase == Phase::completion;
    default: return phase == Phase::payload || phase == Phase::draining;
  }
}

}  // namespace

void Nic::check_invariants() const { impl_->check_invariants(); }

void Nic::Impl::check_invariants() const {
  executions.check_invariants(scheduler.hpus_busy());
  scheduler.check_invariants();
  egress.check_invariants();

  SlotCounts handlers_of_packets;
  SlotCounts handlers_of_messages;
  executions.for_each([&](const Execution& execution) {
    const Packet& packet = packets[execution.owner.slot];
    handlers_of_packets.add(execution.owner.slot);
    if (packet.message == no_slot) return;
    const Message& message = messages[packet.message];
    handlers_of_messages.add(packet.message);
    SPL_ASSERT(runs_in(execution.her.kind, message.phase), "message ", message.identifier, ": a handler of kind ",
               static_cast<int>(execution.her.kind), " in phase ", static_cast<int>(message.phase));
  });

  SlotCounts other_uses;  // uses of packets, beside those of handlers
  SlotCounts storing;
  messages.check_invariants();
  messages.for_each([&](uint32_t, const Message& message) {
    if (message.last_packet != no_slot) other_uses.add(message.last_packet);
    for (uint32_t packet = message.first_waiting; packet != no_slot; packet = packets[packet].next) {
      other_uses.add(packet);
    }
  });
  std::vector<PacketAllocator::Slot> taken;
  std::vector<const DmaQueue*> dma_queues;
  SlotCounts packets_of_contexts;
  SlotCounts mails_of_contexts;
  packets.check_invariants();
  packets.for_each([&](uint32_t index, const Packet& packet) {
    if (packet.slot) taken.push_back(*packet.slot);
    dma_queues.push_back(&packet.dmas);
    packets_of_contexts.add(packet.context.value);
    if (packet.sender.exists()) mails_of_contexts.add(packet.context.value);
    const bool is_storing = packet.slot && packet.bytes.bytes == nullptr;
    if (is_storing && packet.message != no_slot) storing.add(packet.message);
    const bool goes_to_memory = packet.ring.sequence > 0;
    const uint32_t uses = handlers_of_packets.of(index) + other_uses.of(index) + (is_storing || goes_to_memory ? 1 : 0);
    SPL_ASSERT(packet.uses == uses && uses > 0, "packet ", index, ": ", uses, " uses, and ", packet.uses,
               " are counted");
  });
  messages.for_each([&](uint32_t slot, const Message& message) {
    SPL_ASSERT(message_index.find(message.context, message.identifier) == slot, "message ", message.identifier,
               " is not found");
    SPL_ASSERT(message.storing == storing.of(slot) && message.running == handlers_of_messages.of(slot), "message ",
               message.identifier, ": ", storing.of(slot), " packets come and ", handlers_of_messages.of(slot),
               " handlers work, and ", message.storing, " and ", message.running, " are counted");
    const bool one_runs = message.phase == Phase::header || message.phase == Phase::completion;
    SPL_ASSERT(!one_runs || message.running == 1, "message ", message.identifier, " in phase ",
               static_cast<int>(message.phase), " has ", message.running, " handlers");
    SPL_ASSERT(message.phase != Phase::draining || message.running > 0, "message ", message.identifier,
               " waits for nothing and has not ended");
  });
  contexts.for_each([&](ContextId id, const InstalledContext& context) {
    SPL_ASSERT(context.packets == packets_of_contexts.of(id.value) && context.mails == mails_of_contexts.of(id.value),
               "context ", id, ": ", packets_of_contexts.of(id.value), " packets and ", mails_of_contexts.of(id.value),
               " mails, and ", context.packets, " and ", context.mails, " are counted");
  });
  packet_memory.check_invariants(taken);
  dmas.check_invariants(dma_queues);

  const auto sum = [this](std::initializer_list<Count> kinds) {
    uint64_t total = 0;
    for (const Count kind : kinds) total += counts[static_cast<uint8_t>(kind)];
    return total;
  };
  const uint64_t received = sum({Count::received});
  const uint64_t sorted = sum({Count::bypassed, Count::matched, Count::runts, Count::oversize, Count::inactive});
  SPL_ASSERT(received == sorted, received, " frames have come, and ", sorted, " are counted under a fate");
  const uint64_t ended = sum({Count::dropped_full, Count::spilled, Count::frames_done, Count::handler_dropped,
                              Count::handler_to_host, Count::to_memory, Count::memory_full});
  SPL_ASSERT(ended <= matched && matched - ended <= taken.size(), matched, " frames have matched, ", taken.size(),
             " slots are in use, and ", ended, " frames are counted under a fate");
}

}  // namespace spinloom::frames
