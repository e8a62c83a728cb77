// Performs the engine's actions at once, and queues what follows from them.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "live/node/node.hpp"
#include "portals/interface/admission.hpp"
#include "portals/interface/handler_frame.hpp"
#include "portals/interface/perform.hpp"

namespace spinloom::live {
namespace {

constexpr int follow_ups_per_call = 4096;  // endless triggered operations let others in after this many

// Marks the time in which follow-ups are being done, however that ends.
class Settling {
 public:
  explicit Settling(bool& flag) : flag_(flag) { flag_ = true; }
  ~Settling() { flag_ = false; }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;

 private:
  bool& flag_;
};

template <class T>
T& grown(std::vector<T>& list, size_t index) {
  if (index >= list.size()) list.resize(index + 1);
  return list[index];
}

}  // namespace

void Node::settle() {
  settle_now();
  if (!backlog_.empty()) drain_backlog();
}

// Does the follow-ups, up to a limit. Those that they cause, also by packets to this process, join the same queue.
void Node::settle_now() {
  if (settling_) return;
  const Settling now(settling_);
  for (int done = 0; done < follow_ups_per_call && !follow_ups_.empty(); ++done) {
    const FollowUp& first = follow_ups_.front();
    const FollowUp one{first.kind, first.id, first.bytes};  // copied field by field, because it was written so
    follow_ups_.drop();
    execute(one);
  }
}

void Node::execute(const FollowUp& one) {
  actions_.clear();
  switch (one.kind) {
    case FollowUp::Kind::dma_end: engine_.on_dma_done(nic::DmaId{static_cast<uint32_t>(one.id)}, actions_); break;
    case FollowUp::Kind::dma_failed:
      engine_.on_dma_done(nic::DmaId{static_cast<uint32_t>(one.id)}, actions_, nic::Fail::undeliverable);
      break;
    case FollowUp::Kind::sent: engine_.on_packet_sent(one.id, actions_); break;
    case FollowUp::Kind::left:
      engine_.on_packet_left(nic::OutboundSlotId{static_cast<uint32_t>(one.id)}, actions_);
      break;
    case FollowUp::Kind::her_ready:
      engine_.on_her_ready(nic::HerId{static_cast<uint32_t>(one.id)}, actions_, one.bytes);
      break;
    case FollowUp::Kind::go_on: engine_.on_continue(actions_); break;
    case FollowUp::Kind::unreachable:
      engine_.on_peer_unreachable(nic::Rank{static_cast<uint32_t>(one.id)}, actions_);
      break;
    case FollowUp::Kind::lost: engine_.on_peer_lost(nic::Rank{static_cast<uint32_t>(one.id)}, actions_); break;
    case FollowUp::Kind::to_self: return arrive_from_self();
    case FollowUp::Kind::direct_end: return end_direct();
  }
  perform();
}

// Takes a packet that this process sent to itself: its bytes go from memory to memory. A handler's packet that must
// wait for room is copied, so that the handler goes on.
void Node::arrive_from_self() {
  nic::Send send = std::move(to_self_.front());
  to_self_.pop_front();
  nic::PayloadRef& payload = send.packet.payload;
  BacklogEntry one;
  one.completion = completion_of(send);
  if (send.at_once) {
    one.bytes = std::move(at_once_.front());
    at_once_.pop_front();
  } else if (!send.pieces.empty()) {
    one.bytes.resize(payload.length);
    nic::gather(send.pieces, one.bytes.data());
    payload.bytes = one.bytes.data();
  }
  const bool passes = portals::passes(portals::Order::arrival, send.packet, !backlog_.empty());
  if (passes && feed(nullptr, send.packet, 0)) return sent(one.completion);
  if (send.from_device && one.bytes.empty() && payload.length > 0) {
    one.bytes.assign(payload.bytes, payload.bytes + payload.length);
    payload.bytes = one.bytes.data();
    sent(std::exchange(one.completion, {}));
  }
  one.packet = send.packet;
  one.by_handler = send.by_handler;
  backlog_.add(std::move(one));
}

void Node::perform() {
  portals::perform_each(actions_, nic_memory_, [this](auto& action) { perform(action); });
}

void Node::perform(nic::Send& send) {
  const nic::Rank target = send.packet.target;
  if (target == rank_) {
    if (send.at_once) {
      const nic::PayloadRef& payload = send.packet.payload;
      at_once_.emplace_back(payload.bytes, payload.bytes + payload.length);
      send.packet.payload.bytes = at_once_.back().data();
    }
    to_self_.push_back(std::move(send));
    follow_ups_.push({FollowUp::Kind::to_self});
    return;
  }
  Transport* const route = target.value < routes_.size() ? routes_[target.value] : nullptr;
  if (route == nullptr) lost(target);
  if (DirectEnd end; route != nullptr && route->access_directly(send, end)) {
    sent(completion_of(send));
    if (!end.has_answer) return;
    direct_ends_.push_back(std::move(end));
    follow_ups_.push({FollowUp::Kind::direct_end});
    return;
  }
  if (route == nullptr || route->send(send)) sent(completion_of(send));
}

// Gives the engine the answer that the target's NIC would have sent.
void Node::end_direct() {
  DirectEnd end = std::move(direct_ends_.front());
  direct_ends_.pop_front();
  end.answer.payload = {nic::PayloadRef::Space::local, end.bytes.data(), end.bytes.size()};
  give_to_engine(nullptr, end.answer);
}

// Changes memory that peers may change, too, while none of them does.
template <class Change>
void Node::perform_alone(const Change& change) {
  if (publications_.any()) publications_.pause();
  dma_ended(portals::perform(change));
  if (publications_.any()) publications_.resume();
}

void Node::sent(const SendCompletion& completion) {
  if (!completion.is_expected) return;
  if (completion.slot.exists()) {
    follow_ups_.push({FollowUp::Kind::left, completion.slot.value});
  } else {
    follow_ups_.push({FollowUp::Kind::sent, completion.message});
  }
}

// Queues the calls for a peer's loss. Operations that wait for the peer's answers end at once, because the peer's
// packets may wait for those operations.
void Node::lost(nic::Rank peer) {
  follow_ups_.push({FollowUp::Kind::unreachable, peer.value});
  mail_.note_change();
  if (peer.value >= routes_.size() || !backlog_.holds(peer)) {
    follow_ups_.push({FollowUp::Kind::lost, peer.value});
    return;
  }
  BacklogEntry end;
  end.packet.source = peer;
  end.lost = true;
  backlog_.add(std::move(end));
}

bool Node::is_disconnected(nic::Rank peer) const {
  return follow_ups_.empty() && !backlog_.holds(peer) && engine_.is_quiescent(peer);
}

void Node::reconnected(nic::Rank peer) {
  actions_.clear();
  engine_.on_peer_back(peer, actions_);
  perform();
  mail_.note_change();
}

void Node::dma_ended(nic::DmaId dma) { follow_ups_.push({FollowUp::Kind::dma_end, dma.value}); }

void Node::perform(const nic::DmaWrite& write) {
  if (write.source.space == nic::PayloadRef::Space::peer && write.source.length > 0) return fetch_dma(write);
  dma_ended(portals::perform(write));
}
void Node::perform(const nic::DmaRead& read) { dma_ended(portals::perform(read)); }
void Node::perform(const nic::DmaAtomic& atomic) { perform_alone(atomic); }
void Node::perform(const nic::ApplyAtomic& apply) { perform_alone(apply); }
void Node::perform(const nic::StorePacket& store) { dma_ended(portals::perform(store)); }

void Node::perform(const nic::BufferPacket& buffer) {
  // Here no packet has to be copied: the packet of a process-put is in its slot, and the engine has that of an invoked
  // handler.
  if (buffer.bytes == 0 || arrival_.packet == nullptr) {
    follow_ups_.push({FollowUp::Kind::her_ready, buffer.her.value});
    return;
  }
  auto& memory = grown(packet_memory_, buffer.her.value);
  if (!memory) memory = std::make_unique<uint8_t[]>(engine_.limits().payload_bytes);
  std::memcpy(memory.get(), arrival_.packet->payload.bytes, arrival_.packet->payload.length);
  follow_ups_.push({FollowUp::Kind::her_ready, buffer.her.value, memory.get()});
}

// Does nothing without a pool: the node is then about to end.
void Node::perform(const nic::RunHandler& start) {
  if (pool_ != nullptr) pool_->start(portals::frame_of(start.her, engine_, nic_memory_));
}
void Node::perform(const nic::Resume& resume) {
  if (pool_ != nullptr) pool_->resume(resume.her, resume.value);
}

HandlerOwner::CallResult Node::call(nic::HerId her, const nic::HandlerCall& call) {
  const std::lock_guard inside(lock_);
  const uint64_t left = backlog_.added_by_handlers();
  bring_counts();
  actions_.clear();
  const bool stop = engine_.on_handler_call(her, call, actions_);
  perform();
  settle();
  tell_sleepers();
  if (on_work_left_) on_work_left_();
  // Each waiting packet to this process holds memory until a handler has run for it, so a handler that goes on
  // leaving packets must be stopped: a sandboxed one is.
  const bool leaves = backlog_.added_by_handlers() != left;
  return {!stop, leaves && backlog_.is_full_of_handlers()};
}

void Node::ended(nic::HerId her, const spin::HandlerOutcome& outcome) {
  const std::lock_guard inside(lock_);
  actions_.clear();
  engine_.on_handler_done(her, outcome.end, outcome.code, actions_, outcome.cycles);
  perform();
  settle();
  tell_sleepers();
  if (on_work_left_) on_work_left_();
}

}  // namespace spinloom::live
