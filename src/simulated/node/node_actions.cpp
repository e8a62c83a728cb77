// Performs the engine's actions on timed resources.
#include <algorithm>
#include <utility>

#include "portals/interface/perform.hpp"
#include "simulated/node/node.hpp"
#include "simulated/node/node_codes.hpp"

namespace spinloom::simulated {

void Node::perform(nic::Actions& actions) {
  portals::perform_each(actions, nic_memory_, [this](auto& action) { perform(action); });
}

void Node::perform(nic::DebugLine& line) {
  if (log_ != nullptr) log_->record_debug({events_.now(), line.hpu.value, line.kind, std::move(line.text), line.value});
}

void Node::perform(const nic::RunHandler& run) {
  const nic::Context* context = nic_.context(run.her.context);
  SPL_ASSERT(context != nullptr, "HER ", run.her.id, " has no context");
  // An outgoing packet is empty, so no bytes move to its HPU.
  const int64_t carried = run.her.writes_packet ? 0 : static_cast<int64_t>(run.her.payload.length);
  const Time there = fabric_.packet_to_hpu(events_.now(), run.her.hpu.value, carried);
  hpus_->run(run.her, *context, nic_memory_, there + start_duration(run.her));
}

// Copies a packet once all of it is here, then carries it to the scheduler.
void Node::perform(const nic::BufferPacket& buffer) {
  const Time here = std::max(events_.now(), parsed_last_byte_);
  Time copied = here;
  if (buffer.bytes > 0) copied = fabric_.packet_in(here, static_cast<int64_t>(buffer.bytes)).end;
  const Time dispatch = Rate::cycle_of(profile_.scheduler.clock).time_of_cycles(profile_.scheduler.dispatch_cycles);
  if (trace_ != nullptr) {
    trace_->span({Track::packet_buffer, 0, buffer.her.value, here, copied});
    trace_->span({Track::scheduler, 0, buffer.her.value, copied, copied + dispatch});
  }
  events_.at(copied + dispatch, *this, her_ready, buffer.her.value);
}

void Node::perform(const nic::Continue&) { events_.at(events_.now(), *this, continues, 0); }

// The scheduler's time between the choice of an HPU and the handler's first instruction. A completion handler has no
// packet that was carried to the scheduler, so its task is dispatched now. A handler of another virtual HPU than the
// last on this HPU also pays for the switch.
Time Node::start_duration(const nic::Her& her) {
  int64_t cycles = profile_.scheduler.start_cycles;
  if (her.kind == nic::HandlerKind::completion) cycles += profile_.scheduler.dispatch_cycles;
  VirtualHpuAt& here = vhpus_[her.hpu.value];
  const VirtualHpuAt next{her.context, her.vhpu};
  if (here.context.exists() && !(here == next)) cycles += profile_.scheduler.vhpu_switch_cycles;
  here = next;
  return Rate::cycle_of(profile_.scheduler.clock).time_of_cycles(cycles);
}

void Node::perform(const nic::DmaWrite& write) {
  const uint32_t slot = dmas_.take();
  dmas_[slot] = write;
  ++statistics_.dma_writes;
  statistics_.dma_bytes += write.source.length;
  statistics_.dma_queue_peak = std::max<uint64_t>(statistics_.dma_queue_peak, dmas_.size());
  if (dma_queue_ != nullptr) dma_queue_->sample(events_.now(), dmas_.size());
  if (write.source.length == 0) {  // moves nothing, only keeps its place behind earlier DMAs
    events_.at(std::max(events_.now(), last_dma_end_), *this, dma_ends, slot);
    return;
  }
  const Time here = std::max(events_.now(), parsed_last_byte_);
  writes_under_way_.on_request(here);
  if (write.scatter == nic::Scatter::none) return serve_dma(slot, here);
  queue_scattered(slot, here);
}

void Node::serve_dma(uint32_t slot, Time here) {
  const auto length = static_cast<int64_t>(dmas_[slot].source.length);
  const Service read = fabric_.to_host(here, hpus_->hpu_of(dmas_[slot].her), length);
  const Time after = after_atomics(dmas_[slot].host, dmas_[slot].source.length);
  const Service link = pcie_.write(std::max(read.end, after), length);
  last_dma_end_ = link.end;
  if (dmas_[slot].blocking) events_.at(read.end, *this, dma_source_read, slot);
  if (trace_ != nullptr) {
    trace_->span({Track::dma, 0, dmas_[slot].source.length, events_.now(), link.end});
    trace_->span({Track::pcie, 0, dmas_[slot].source.length, link.start, link.end});
  }
  events_.at(last_dma_end_, *this, dma_ends, slot);
}

void Node::source_read(uint32_t slot) {
  nic::Actions actions;
  nic_.on_dma_read(dmas_[slot].dma, actions);
  perform(actions);
}

// Reads host memory for a handler or an atomic: a request crosses PCIe; the bytes come back, and go to the handler.
void Node::fetch(const HostFetch& request, int64_t bytes) {
  const uint32_t slot = fetches_.take();
  fetches_[slot] = request;
  ++statistics_.dma_reads;
  statistics_.dma_read_bytes += static_cast<uint64_t>(bytes);
  statistics_.dma_reads_peak = std::max<uint64_t>(statistics_.dma_reads_peak, fetches_.size());
  const Time asked = pcie_.write(std::max(events_.now(), parsed_last_byte_), 0).end + pcie_.latency();
  Time here = pcie_.command(asked, bytes).end + pcie_.latency();
  if (std::holds_alternative<nic::ApplyAtomic>(request)) {
    atomics_.push_back({slot, here});
  } else {
    here = fabric_.from_host(here, bytes);
  }
  if (trace_ != nullptr) trace_->span({Track::dma, 0, static_cast<uint64_t>(bytes), events_.now(), here});
  events_.at(here, *this, fetch_ends, slot);
}

// An atomic changes memory when its elements have come to the NIC. Other accesses to these bytes wait until then, and
// keep PCIe: so bytes of one initiator at one address keep their order.
Time Node::after_atomics(const uint8_t* host, uint64_t length) const {
  const auto meets = [&](const uint8_t* other, uint64_t bytes) {
    return other < host + length && host < other + bytes;
  };
  Time after{};
  for (const AtomicUnderWay& atomic : atomics_) {
    const auto& apply = std::get<nic::ApplyAtomic>(fetches_[atomic.slot]);
    const bool meets_piece = std::any_of(apply.pieces.begin(), apply.pieces.end(), [&](const nic::IovecElement& piece) {
      return meets(piece.base, piece.length);
    });
    if (meets_piece || (apply.pieces.empty() && meets(apply.host, apply.source.length))) after = atomic.changes;
  }
  return after;
}

void Node::end_fetch(uint32_t slot) {
  const HostFetch request = fetches_[slot];
  fetches_.give_back(slot);
  const nic::DmaId dma = std::visit([](const auto& fetch) { return portals::perform(fetch); }, request);
  if (const auto* apply = std::get_if<nic::ApplyAtomic>(&request)) {
    SPL_ASSERT(!atomics_.empty() && atomics_.front().slot == slot, "fetch ", slot, " overtakes an atomic");
    atomics_.pop_front();
    // The operation is done when the elements are here; a write takes them back.
    const Time back = pcie_.write(events_.now(), static_cast<int64_t>(apply->source.length)).end;
    statistics_.data_landed = back + pcie_.latency();
    events_.at(back, *this, atomic_ends, dma.value);
    return;
  }
  end_dma(dma);
}

// Copies a packet's bytes to a handler's memory, through a channel of NIC memory.
void Node::perform(const nic::StorePacket& request) {
  const uint32_t slot = stores_.take();
  stores_[slot] = request;
  const Time here = std::max(events_.now(), parsed_last_byte_);
  events_.at(fabric_.packet_in(here, static_cast<int64_t>(request.source.length)).end, *this, store_ends, slot);
}

void Node::end_store(uint32_t slot) {
  const nic::StorePacket request = stores_[slot];
  stores_.give_back(slot);
  end_dma(portals::perform(request));
}

void Node::end_dma(nic::DmaId dma) {
  packet_of_dma_.erase(dma.value);
  nic::Actions actions;
  nic_.on_dma_done(dma, actions);
  perform(actions);
  if (!inbound_.empty()) parse_next();  // a slot may have become free
}

void Node::end_dma_write(uint32_t slot) {
  const nic::DmaWrite write = dmas_[slot];
  dmas_.give_back(slot);
  if (dma_queue_ != nullptr) dma_queue_->sample(events_.now(), dmas_.size());
  packet_of_dma_.erase(portals::perform(write).value);
  if (write.source.length > 0) {
    statistics_.data_landed = events_.now() + pcie_.latency();
    writes_under_way_.on_landing(statistics_.data_landed, events_.now());
  }
  nic::Actions actions;
  std::swap(actions, scratch_);
  actions.clear();
  nic_.on_dma_done(write.dma, actions);
  perform(actions);
  std::swap(actions, scratch_);
  if (!inbound_.empty()) parse_next();  // a slot may have become free
}

void Node::deliver(HostDelivery delivery, Time at) {
  const uint32_t slot = deliveries_.take();
  deliveries_[slot] = std::move(delivery);
  events_.at(at, *this, host_reads, slot);
}

void Node::perform(const nic::PostEvent& event) {
  HostDelivery delivery;
  delivery.kind = HostDelivery::Kind::event;
  delivery.event = event;
  const Service link = pcie_.write(events_.now(), profile_.pcie.event_bytes);
  const Time readable = link.end + pcie_.latency();
  if (trace_ != nullptr) trace_->span({Track::event, 0, 0, link.start, readable});
  deliver(std::move(delivery), readable);
}

// A header's actions wait until it is parsed, and other actions may count meanwhile. So the value that the counter has
// now is posted: the last post has the newest value.
void Node::perform(const nic::PostCounter& counter) {
  HostDelivery delivery;
  delivery.kind = HostDelivery::Kind::counter;
  delivery.counter = {counter.counter, nic_.counter(counter.counter).value_or(counter.value)};
  constexpr int64_t counter_bytes = 16;
  deliver(std::move(delivery), pcie_.write(events_.now(), counter_bytes).end + pcie_.latency());
}

void Node::perform(nic::Answer& answer) {
  HostDelivery delivery;
  delivery.kind = HostDelivery::Kind::answer;
  delivery.answer = std::move(answer);
  deliver(std::move(delivery), pcie_.write(events_.now(), profile_.pcie.event_bytes).end + pcie_.latency());
}

}  // namespace spinloom::simulated
