// Frames: from the wire through matching to packet memory, from the host and from handlers to the wire.
#include "nic/frames/nic.hpp"

#include "base/limits.hpp"
#include "nic/frames/nic_impl.hpp"

namespace spinloom::frames {
namespace {

constexpr uint32_t ethernet_header_bytes = 14;

}  // namespace

Nic::Impl::Impl(const Limits& limits_, PacketAllocator allocator)
    : limits(limits_),
      matcher(limits_.matcher),
      packet_memory(std::move(allocator)),
      egress(limits_.arbitration, limits_.egress_depth, limits_.host_frames),
      contexts("context", limits_.matcher.rule_sets, "MatcherLimits::rule_sets"),
      scheduler(limits_.hpus, limits_.fairness) {}

Result<std::unique_ptr<Nic>> Nic::create(const Limits& limits) {
  if (limits.hpus == 0 || limits.hpus > limits::hpu_count_max) {
    return fail(Code::invalid, "a NIC with ", limits.hpus, " HPUs; it can have 1 to ", limits::hpu_count_max);
  }
  if (limits.message_queues == 0 || limits.egress_depth == 0 || limits.matcher.rule_sets == 0) {
    return fail(Code::invalid, "a NIC needs a message queue, a frame under way to the wire and a rule set at least");
  }
  SPL_ASSIGN(PacketAllocator allocator, PacketAllocator::create(limits.slots));
  return std::unique_ptr<Nic>(new Nic(std::make_unique<Impl>(limits, std::move(allocator))));
}

Nic::Nic(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Nic::~Nic() = default;

void Nic::on_frame(const PayloadRef& bytes, Actions& out) { impl_->receive_frame(bytes, out); }

void Nic::on_stored(PacketId packet, uint8_t* place, Actions& out) {
  impl_->frame_stored(packet.value, place, out);
  impl_->dispatch(out);
}

bool Nic::on_host_frame(const PayloadRef& bytes, uint64_t token, Actions& out) {
  if (!impl_->egress.add_host({{}, token, bytes})) {
    impl_->tally(Count::host_refused);
    return false;
  }
  impl_->transmit(out);
  return true;
}

void Nic::on_transmitted(const EgressFrame& frame, Actions& out) {
  impl_->tally(frame.dma.exists() ? Count::sent_by_handlers : Count::sent_by_host);
  impl_->egress_done(frame, out);
}

void Nic::on_not_sent(const EgressFrame& frame, Actions& out) { impl_->egress_done(frame, out); }

void Nic::Impl::egress_done(const EgressFrame& frame, Actions& out) {
  egress.finish();
  if (frame.dma.exists()) dma_done(frame.dma, out);
  transmit(out);
  dispatch(out);
}

void Nic::Impl::transmit(Actions& out) {
  while (const auto frame = egress.next()) out.add<Transmit>(*frame);
}

void Nic::Impl::bypass(const PayloadRef& bytes, Count reason, Actions& out) {
  tally(reason);
  out.add<ToHost>(bytes, false);
}

void Nic::Impl::receive_frame(const PayloadRef& bytes, Actions& out) {
  tally(Count::received);
  if (bytes.length < ethernet_header_bytes) return tally(Count::runts);
  const std::span<const uint8_t> span{bytes.bytes, bytes.length};
  const auto match = matcher.match(span);
  if (!match) return bypass(bytes, Count::bypassed, out);
  const ContextId context{match->rule_set};
  InstalledContext* const installed = contexts.find(context);
  if (installed == nullptr || !installed->active) return bypass(bytes, Count::inactive, out);
  const auto slot_class = bytes.length > limits.frame_bytes_max
                              ? std::nullopt
                              : packet_memory.class_of(static_cast<uint32_t>(bytes.length));
  if (!slot_class) return tally(Count::oversize);
  tally(Count::matched);
  ++matched;
  installed->tally(Telemetry::packets);
  installed->tally(Telemetry::bytes, bytes.length);
  const bool has_messages = installed->has_messages();
  std::optional<uint32_t> message;
  if (has_messages) {
    message = find_message(context, match->message);
    if (!message) return bypass(bytes, Count::spilled, out);
  }
  const auto slot = packet_memory.take(*slot_class);
  if (!slot) {
    tally(Count::dropped_full);
    return;
  }
  if (has_messages && *message == no_slot) message = begin_message(context, match->message);
  const auto [index, packet] = packets.make();
  packet.slot = slot;
  packet.bytes.length = bytes.length;
  packet.context = context;
  packet.identifier = match->message;
  packet.last = match->last;
  packet.uses = 1;
  ++installed->packets;
  if (message) {
    packet.message = *message;
    ++messages[*message].storing;
    messages[*message].newest_frame = matched;
  }
  out.add<StoreFrame>(PacketId{index}, slot->address, bytes);
}

// The open message's slot; no_slot: it may begin; nothing: there is no queue for it.
std::optional<uint32_t> Nic::Impl::find_message(ContextId context, uint32_t identifier) {
  const uint32_t found = message_index.find(context, identifier);
  if (found != no_slot) return found;
  if (messages.size() < limits.message_queues || free_oldest_queue()) return no_slot;
  return std::nullopt;
}

void Nic::Impl::frame_stored(uint32_t index, uint8_t* place, Actions& out) {
  Packet& packet = packets[index];
  SPL_ASSERT(packet.bytes.bytes == nullptr, "packet ", index, " is stored twice");
  packet.bytes.space = PayloadRef::Space::local;
  packet.bytes.bytes = place;
  if (packet.message != no_slot) {
    Message& message = messages[packet.message];
    SPL_ASSERT(message.storing > 0, "packet ", index);
    --message.storing;
    push_waiting(message, index);
    advance(packet.message, out);
  } else if (contexts.find(packet.context)->options.frames_to_memory) {
    to_memory(index, out);
  } else {
    ready(HandlerKind::payload, index);
  }
}

// Writes the frame to its place in the ring of host memory, then its header.
void Nic::Impl::to_memory(uint32_t index, Actions& out) {
  Packet& packet = packets[index];
  InstalledContext& installed = *contexts.find(packet.context);
  const uint64_t entries = installed.options.handlers.handler_host_length / ring_entry_bytes;
  if (installed.ring.written - installed.ring.read >= entries) {
    tally(Count::memory_full);
    return end_use(index);
  }
  auto* const entry = reinterpret_cast<uint8_t*>(installed.options.handlers.handler_host_start) +
                      installed.ring.written % entries * ring_entry_bytes;
  ++installed.ring.written;
  packet.ring = {static_cast<uint32_t>(installed.ring.written), static_cast<uint32_t>(packet.bytes.length),
                 packet.identifier, packet.context.value};
  PayloadRef header;
  header.space = PayloadRef::Space::local;
  header.bytes = reinterpret_cast<const uint8_t*>(&packet.ring);
  header.length = sizeof packet.ring;
  const auto write = [&](uint8_t* host, const PayloadRef& source) {
    DmaWrite& dma = out.add<DmaWrite>();
    dma.dma = dmas.issue(packet.dmas, {0, index});
    dma.host = host;
    dma.source = source;
  };
  write(entry + sizeof packet.ring, packet.bytes);
  write(entry, header);  // PCIe keeps the order of writes
}

}  // namespace spinloom::frames
