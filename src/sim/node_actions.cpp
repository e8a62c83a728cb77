// The engine's actions on timed resources.
#include <algorithm>
#include <cstring>
#include <utility>

#include "portals/host_atomic.hpp"
#include "portals/host_fetch.hpp"
#include "sim/node.hpp"
#include "sim/node_codes.hpp"

namespace spinloom::sim {

void Node::perform(nic::Actions& actions) {
  for (nic::Action& action : actions.list) perform_one(action);
}

void Node::perform_one(nic::Action& action) {
  const Time now = events_.now();
  if (auto* write = std::get_if<nic::DmaWrite>(&action)) {
    dma_write(*write);
  } else if (auto* read = std::get_if<nic::DmaRead>(&action)) {
    fetch(*read, static_cast<int64_t>(read->length));
  } else if (auto* atomic = std::get_if<nic::DmaAtomic>(&action)) {
    fetch(*atomic, atomic->width);
  } else if (auto* apply = std::get_if<nic::ApplyAtomic>(&action)) {
    fetch(*apply, static_cast<int64_t>(apply->source.length));
  } else if (auto* stored = std::get_if<nic::StorePacket>(&action)) {
    store(*stored);
  } else if (auto* local = std::get_if<nic::LocalAtomic>(&action)) {
    hpus_->resume(local->her, portals::perform(*local));
  } else if (auto* store = std::get_if<nic::StoreLocal>(&action)) {
    std::memcpy(store->local, store->words.data(), sizeof store->words);
  } else if (auto* debug = std::get_if<nic::DebugLine>(&action)) {
    if (log_ != nullptr) log_->debug({now, debug->hpu.value, debug->kind, std::move(debug->text), debug->value});
  } else if (auto* resume = std::get_if<nic::Resume>(&action)) {
    hpus_->resume(resume->her, resume->value);
  } else if (auto* run = std::get_if<nic::RunHandler>(&action)) {
    const nic::Context* context = nic_.context(run->her.context);
    SPL_ASSERT(context != nullptr, "HER ", run->her.id, " has no context");
    // An outgoing packet is empty: nothing has to come to its HPU.
    const int64_t carried = run->her.outbound ? 0 : static_cast<int64_t>(run->her.payload.length);
    const Time there = fabric_.packet_to_hpu(now, run->her.hpu.value, carried);
    hpus_->run(run->her, *context, nic_memory_, there + start_duration(run->her));
  } else if (auto* buffer = std::get_if<nic::BufferPacket>(&action)) {
    // Copied once it is all here, then carried to the scheduler.
    const Time here = std::max(now, parsed_last_byte_);
    Time copied = here;
    if (buffer->bytes > 0) {
      copied = fabric_.packet_in(here, static_cast<int64_t>(buffer->bytes)).end;
    }
    const Time dispatch = Rate::cycle_of(profile_.scheduler.clock).time_of_cycles(profile_.scheduler.dispatch_cycles);
    if (trace_ != nullptr) {
      trace_->span({Track::packet_buffer, 0, buffer->her.value, here, copied});
      trace_->span({Track::scheduler, 0, buffer->her.value, copied, copied + dispatch});
    }
    events_.at(copied + dispatch, *this, her_ready, buffer->her.value);
  } else if (auto* packet = std::get_if<nic::Send>(&action)) {
    send(*packet);
  } else if (auto* memory = std::get_if<nic::WriteNicMemory>(&action)) {
    SPL_ASSERT(memory->offset + memory->bytes.size() <= nic_memory_.size(), "NIC memory write at ", memory->offset);
    if (!memory->bytes.empty())
      std::memcpy(nic_memory_.data() + memory->offset, memory->bytes.data(), memory->bytes.size());
  } else if (auto* event = std::get_if<nic::PostEvent>(&action)) {
    post(*event);
  } else if (auto* counter = std::get_if<nic::PostCounter>(&action)) {
    post(*counter);
  } else if (auto* answer = std::get_if<nic::Answer>(&action)) {
    HostDelivery delivery;
    delivery.kind = HostDelivery::Kind::answer;
    delivery.answer = *answer;
    deliver(std::move(delivery), pcie_.write(now, profile_.pcie.event_bytes).end + pcie_.latency());
  } else if (std::holds_alternative<nic::Continue>(action)) {
    events_.at(now, *this, continues, 0);
  } else {
    SPL_ASSERT(false, "an action that the simulated driver does not know: index ", action.index());
  }
}

// Scheduler's work between the choice of an HPU and the handler's first instruction. A completion handler has no packet
// that was carried to the scheduler before: its task is dispatched now. The first handler of another virtual
// HPU than the last one here pays for the switch.
Time Node::start_duration(const nic::Her& her) {
  int64_t cycles = profile_.scheduler.start_cycles;
  if (her.kind == nic::HandlerKind::completion) cycles += profile_.scheduler.dispatch_cycles;
  VirtualHpuAt& here = vhpus_[her.hpu.value];
  const VirtualHpuAt next{her.context, her.vhpu};
  if (here.context.exists() && !(here == next)) cycles += profile_.scheduler.vhpu_switch_cycles;
  here = next;
  return Rate::cycle_of(profile_.scheduler.clock).time_of_cycles(cycles);
}

void Node::dma_write(const nic::DmaWrite& write) {
  const uint32_t slot = dmas_.take();
  dmas_[slot] = write;
  ++statistics_.dma_writes;
  statistics_.dma_bytes += write.source.length;
  statistics_.dma_queue_peak = std::max<uint64_t>(statistics_.dma_queue_peak, dmas_.size());
  if (dma_queue_ != nullptr) dma_queue_->sample(events_.now(), dmas_.size());
  if (write.source.length == 0) {  // nothing to move: it only keeps its place behind the DMAs before it
    events_.at(std::max(events_.now(), last_dma_end_), *this, dma_ends, slot);
    return;
  }
  const Time here = std::max(events_.now(), parsed_last_byte_);
  if (write.scatter == nic::Scatter::none) return serve_dma(slot, here);
  queue_scattered(slot, here);
}

void Node::serve_dma(uint32_t slot, Time here) {
  const auto length = static_cast<int64_t>(dmas_[slot].source.length);
  const Service read = fabric_.read(here, hpus_->hpu_of(dmas_[slot].her), length);
  const Service link = pcie_.write(read.end, length);
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

// Host memory read for a handler or an atomic: a request crosses PCIe, the bytes come back.
void Node::fetch(const HostFetch& given, int64_t bytes) {
  const uint32_t slot = fetches_.take();
  fetches_[slot] = given;
  ++statistics_.dma_reads;
  statistics_.dma_read_bytes += static_cast<uint64_t>(bytes);
  statistics_.dma_reads_peak = std::max<uint64_t>(statistics_.dma_reads_peak, fetches_.size());
  const Time asked = pcie_.write(std::max(events_.now(), parsed_last_byte_), 0).end + pcie_.latency();
  const Time here = pcie_.command(asked, bytes).end + pcie_.latency();
  if (trace_ != nullptr) trace_->span({Track::dma, 0, static_cast<uint64_t>(bytes), events_.now(), here});
  events_.at(here, *this, fetch_ends, slot);
}

void Node::fetched(uint32_t slot) {
  const HostFetch given = fetches_[slot];
  fetches_.give_back(slot);
  if (const auto* apply = std::get_if<nic::ApplyAtomic>(&given)) {
    // Elements change when they are here; they go back by a write.
    const nic::DmaId dma = portals::perform(*apply);
    const Time back = pcie_.write(events_.now(), static_cast<int64_t>(apply->source.length)).end;
    statistics_.data_landed = back + pcie_.latency();
    events_.at(back, *this, atomic_ends, dma.value);
    return;
  }
  const auto* read = std::get_if<nic::DmaRead>(&given);
  done(read != nullptr ? portals::perform(*read) : portals::perform(std::get<nic::DmaAtomic>(given)));
}

// A packet's bytes for a handler's memory, by a channel of NIC memory.
void Node::store(const nic::StorePacket& given) {
  const uint32_t slot = stores_.take();
  stores_[slot] = given;
  const Time here = std::max(events_.now(), parsed_last_byte_);
  events_.at(fabric_.packet_in(here, static_cast<int64_t>(given.source.length)).end, *this, store_ends, slot);
}

void Node::stored(uint32_t slot) {
  const nic::StorePacket given = stores_[slot];
  stores_.give_back(slot);
  std::memcpy(given.local, given.source.bytes, given.source.length);
  done(given.dma);
}

void Node::done(nic::DmaId dma) {
  moving_.erase(dma.value);
  nic::Actions actions;
  nic_.on_dma_done(dma, actions);
  perform(actions);
  if (!inbound_.empty()) parse_next();  // a slot may have become free
}

void Node::dma_served(uint32_t slot) {
  const nic::DmaWrite write = dmas_[slot];
  dmas_.give_back(slot);
  if (dma_queue_ != nullptr) dma_queue_->sample(events_.now(), dmas_.size());
  if (write.source.length > 0) {
    std::memcpy(write.host, write.source.bytes, write.source.length);
    statistics_.data_landed = events_.now() + pcie_.latency();
  }
  moving_.erase(write.dma.value);
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

void Node::post(const nic::PostEvent& event) {
  HostDelivery delivery;
  delivery.kind = HostDelivery::Kind::event;
  delivery.event = event;
  const Service link = pcie_.write(events_.now(), profile_.pcie.event_bytes);
  const Time readable = link.end + pcie_.latency();
  if (trace_ != nullptr) trace_->span({Track::event, 0, 0, link.start, readable});
  deliver(std::move(delivery), readable);
}

void Node::post(const nic::PostCounter& counter) {
  HostDelivery delivery;
  delivery.kind = HostDelivery::Kind::counter;
  delivery.counter = counter;
  constexpr int64_t counter_bytes = 16;
  deliver(std::move(delivery), pcie_.write(events_.now(), counter_bytes).end + pcie_.latency());
}

}  // namespace spinloom::sim
