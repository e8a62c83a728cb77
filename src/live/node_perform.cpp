// Actions: what the engine asks for is done at once, and what follows from it is queued.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "live/node.hpp"
#include "portals/host_atomic.hpp"
#include "portals/host_fetch.hpp"

namespace spinloom::live {
namespace {

constexpr int todos_per_call = 4096;  // operations that fire each other for ever let others in

template <class T>
T& grown(std::vector<T>& list, size_t index) {
  if (index >= list.size()) list.resize(index + 1);
  return list[index];
}

}  // namespace

void Node::settle() {
  settle_now();
  if (!blocked_.empty()) unblock();
}

void Node::settle_now() {
  for (int done = 0; done < todos_per_call && !todo_.empty(); ++done) {
    Todo todo = todo_.pop();
    do_one(todo);
  }
}

void Node::do_one(Todo& todo) {
  if (auto* self = std::get_if<ToSelf>(&todo)) {
    const Reading reading = self->outbound.reading;
    std::vector<uint8_t> whole;
    nic::Packet& packet = self->outbound.packet;
    if (!self->outbound.pieces.empty()) {
      whole.resize(packet.payload.length);
      nic::gather(self->outbound.pieces, whole.data());
      packet.payload.bytes = whole.data();
    }
    feed(nullptr, packet);
    sent(reading);
    return;
  }
  actions_.clear();
  if (const auto* dma = std::get_if<DmaEnd>(&todo)) {
    engine_.on_dma_done({}, dma->dma, actions_, dma->failed ? nic::Fail::undeliverable : nic::Fail::ok);
  } else if (const auto* sent = std::get_if<Sent>(&todo)) {
    if (sent->reading.slot.exists()) {
      engine_.on_packet_left({}, sent->reading.slot, actions_);
    } else {
      engine_.on_packet_sent({}, sent->reading.message, actions_);
    }
  } else if (const auto* ready = std::get_if<HerReady>(&todo)) {
    engine_.on_her_ready({}, ready->her, actions_, ready->bytes);
  } else if (const auto* gone = std::get_if<Lost>(&todo)) {
    engine_.on_peer_lost({}, gone->peer, actions_);
  } else {
    engine_.on_continue({}, actions_);
  }
  perform();
}

void Node::perform() {
  for (nic::Action& action : actions_.list) {
    if (auto* send = std::get_if<nic::Send>(&action)) {
      perform(*send);
    } else if (const auto* write = std::get_if<nic::DmaWrite>(&action)) {
      perform(*write);
    } else if (const auto* counter = std::get_if<nic::PostCounter>(&action)) {
      grown(counters_, counter->counter.value) = counter->value;
      ++changes_;
    } else if (const auto* event = std::get_if<nic::PostEvent>(&action)) {
      grown(queues_, event->queue.value).push(event->event);
      ++changes_;
    } else if (auto* answer = std::get_if<nic::Answer>(&action)) {
      answers_.insert_or_assign(answer->token, std::move(answer->result));
      ++changes_;
    } else if (std::holds_alternative<nic::Continue>(action)) {
      todo_.push(nic::Continue{});
    } else if (const auto* buffer = std::get_if<nic::BufferPacket>(&action)) {
      perform(*buffer);
    } else if (const auto* read = std::get_if<nic::DmaRead>(&action)) {
      todo_.push(DmaEnd{portals::perform(*read)});
    } else if (const auto* atomic = std::get_if<nic::DmaAtomic>(&action)) {
      todo_.push(DmaEnd{portals::perform(*atomic)});
    } else if (const auto* apply = std::get_if<nic::ApplyAtomic>(&action)) {
      todo_.push(DmaEnd{portals::perform(*apply)});
    } else if (const auto* stored = std::get_if<nic::StorePacket>(&action)) {
      std::memcpy(stored->local, stored->source.bytes, stored->source.length);
      todo_.push(DmaEnd{stored->dma});
    } else if (auto* memory = std::get_if<nic::WriteNicMemory>(&action)) {
      std::copy(memory->bytes.begin(), memory->bytes.end(),
                nic_memory_.begin() + static_cast<ptrdiff_t>(memory->offset));
    } else if (const auto* start = std::get_if<nic::RunHandler>(&action)) {
      perform(*start);
    } else if (const auto* resume = std::get_if<nic::Resume>(&action)) {
      if (pool_ != nullptr) pool_->resume(resume->her, resume->value);
    } else if (const auto* local = std::get_if<nic::LocalAtomic>(&action)) {
      if (pool_ != nullptr) pool_->resume(local->her, portals::perform(*local));
    } else if (const auto* store = std::get_if<nic::StoreLocal>(&action)) {
      std::memcpy(store->local, store->words.data(), sizeof store->words);
    } else {
      SPL_ASSERT(std::holds_alternative<nic::DebugLine>(action), "action ", action.index());
    }
  }
}

void Node::perform(nic::Send& send) {
  Outbound outbound;
  outbound.packet = send.packet;
  outbound.pieces = std::move(send.pieces);
  outbound.reading.slot = send.slot;
  outbound.reading.message = send.packet.message;
  outbound.reading.told = send.slot.exists() || (send.last && send.packet.operation != nic::Operation::ack);
  if (send.packet.target == rank_) {
    todo_.push(ToSelf{std::move(outbound)});
    return;
  }
  Transport* const way = send.packet.target.value < routes_.size() ? routes_[send.packet.target.value] : nullptr;
  const Reading reading = outbound.reading;
  if (way == nullptr) lost(send.packet.target);
  if (way == nullptr || way->send(outbound)) sent(reading);
}

void Node::sent(const Reading& reading) {
  if (reading.told) todo_.push(Sent{reading});
}

void Node::lost(nic::Rank peer) {
  todo_.push(Lost{peer});
  ++changes_;
}

void Node::perform(const nic::DmaWrite& write) {
  const bool there = write.source.length == 0 || bring(write.source, write.host);
  todo_.push(DmaEnd{write.dma, !there});
}

void Node::perform(const nic::BufferPacket& buffer) {
  if (buffer.bytes == 0) {  // a packet of a process-put is in its slot already
    todo_.push(HerReady{buffer.her, nullptr});
    return;
  }
  auto& memory = grown(packet_memory_, buffer.her.value);
  if (!memory) memory = std::make_unique<uint8_t[]>(engine_.limits().payload_bytes);
  std::memcpy(memory.get(), arrival_.packet->payload.bytes, arrival_.packet->payload.length);
  todo_.push(HerReady{buffer.her, memory.get()});
}

void Node::perform(const nic::RunHandler& start) {
  if (pool_ == nullptr) return;  // the end has begun
  portals::HandlerFrame frame;
  frame.her = start.her;
  frame.context = engine_.context(start.her.context);
  frame.packet = {start.her.payload.bytes, start.her.payload.length};
  frame.constants = {nic_memory_.data() + frame.context->constants.offset, frame.context->constants.length};
  frame.state = {nic_memory_.data() + frame.context->state.offset, frame.context->state.length};
  frame.hpu_count = engine_.limits().hpus;
  pool_->start(frame);
}

bool Node::call(nic::HerId her, const nic::HandlerCall& call) {
  const std::lock_guard inside(lock_);
  actions_.clear();
  const bool stop = engine_.on_handler_call({}, her, call, actions_);
  perform();
  settle();
  tell_sleepers();
  return !stop;
}

void Node::ended(nic::HerId her, const portals::HandlerOutcome& outcome) {
  const std::lock_guard inside(lock_);
  actions_.clear();
  engine_.on_handler_done({}, her, outcome.end, outcome.code, actions_, outcome.cycles);
  perform();
  settle();
  tell_sleepers();
}

}  // namespace spinloom::live
