// Messages: PsPIN's message queues. The header handler runs alone, then payload handlers in parallel, then, when the
// last frame has been here, the completion handler alone, with that frame.
#include <utility>

#include "nic/frames/nic_impl.hpp"

namespace spinloom::frames {

void Nic::Impl::push_waiting(Message& message, uint32_t packet) {
  (message.first_waiting == no_slot ? message.first_waiting : packets[message.last_waiting].next) = packet;
  message.last_waiting = packet;
}

uint32_t Nic::Impl::pop_waiting(Message& message) {
  return std::exchange(message.first_waiting, packets[message.first_waiting].next);
}

uint32_t Nic::Impl::begin_message(ContextId context, uint32_t identifier) {
  const auto [slot, message] = messages.make();
  message.context = context;
  message.identifier = identifier;
  message_index.add(context, identifier, slot);
  return slot;
}

// Takes the queue of the message that has been without a frame for longest, if that is long enough.
bool Nic::Impl::free_oldest_queue() {
  uint32_t oldest = no_slot;
  messages.for_each([&](uint32_t slot, const Message& message) {
    if (!message.is_idle() || message.last_packet != no_slot || matched - message.newest_frame < limits.idle_frames)
      return;
    // No two messages have the same newest frame.
    if (oldest == no_slot || message.newest_frame < messages[oldest].newest_frame) oldest = slot;
  });
  if (oldest == no_slot) return false;
  tally(Count::messages_abandoned);
  forget_message(oldest);
  return true;
}

void Nic::Impl::forget_message(uint32_t slot) {
  Message& message = messages[slot];
  SPL_ASSERT(message.is_idle() && message.last_packet == no_slot, "message ", message.identifier, " is under way");
  message_index.remove(message.context, message.identifier);
  messages.give_back(slot);
}

void Nic::Impl::advance(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  const Context& handlers = contexts.find(message.context)->options.handlers;
  if (message.phase == Phase::begins && message.first_waiting != no_slot) {
    tally(Count::messages);
    tally(message.context, Telemetry::messages);
    Packet& first = packets[message.first_waiting];
    first.first = true;
    message.verdict = Verdict::process;
    message.phase = handlers.header_entry ? Phase::header : Phase::payload;
    if (handlers.header_entry) {
      ++first.uses;
      ++message.running;
      return ready(HandlerKind::header, message.first_waiting);
    }
  }
  while (message.phase == Phase::payload && message.first_waiting != no_slot) {
    const uint32_t index = pop_waiting(message);
    if (packets[index].last) {  // later frames of this identifier begin the next message
      message.phase = Phase::draining;
      message.last_packet = index;
      ++packets[index].uses;
    }
    give_packet(slot, index, out);
  }
  if (message.phase == Phase::draining && message.running == 0) {
    message.phase = Phase::completion;
    if (handlers.completion_entry) {
      ++packets[message.last_packet].uses;
      ++message.running;
      return ready(HandlerKind::completion, message.last_packet);
    }
    end_message(slot, out);
  }
}

// Gives a frame to the payload handler, or to whom the header handler's verdict says.
void Nic::Impl::give_packet(uint32_t slot, uint32_t index, Actions& out) {
  Message& message = messages[slot];
  const Packet& packet = packets[index];
  const bool handled = contexts.find(message.context)->options.handlers.payload_entry.has_value();
  if (message.verdict == Verdict::process && handled) {
    ++message.running;
    return ready(HandlerKind::payload, index);
  }
  if (message.verdict == Verdict::to_host) {
    tally(Count::handler_to_host);
    out.add<ToHost>(packet.bytes, true);
  } else if (message.verdict == Verdict::drop) {
    tally(Count::handler_dropped);
  } else {
    tally(Count::frames_done);
  }
  end_use(index);
}

// The completion handler has ended, or there is none. Frames that came meanwhile begin the next message.
void Nic::Impl::end_message(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  tally(Count::messages_done);
  end_use(message.last_packet);
  message.last_packet = no_slot;
  if (message.storing == 0 && message.first_waiting == no_slot) return forget_message(slot);
  message.phase = Phase::begins;
  advance(slot, out);
}

}  // namespace spinloom::frames
