#include "portals/testbed/loopback.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "portals/interface/handler_frame.hpp"
#include "portals/interface/mailbox.hpp"
#include "portals/interface/perform.hpp"
#include "portals/interface/probed_memory.hpp"

namespace spinloom::testbed {

namespace {
constexpr size_t kinds = 15;  // the items, and answers apart from other packets
}

// One rank: its engine, and the mailbox of its host.
class Loopback::Node final : public portals::Port {
 public:
  Node(Loopback& loopback, nic::Rank rank)
      : engine(rank, loopback.options_.nic, &host_memory),
        nic_memory(loopback.options_.nic.nic_memory_bytes),
        loopback_(loopback),
        rank_(rank) {}

  [[nodiscard]] nic::Rank rank() const override { return rank_; }
  [[nodiscard]] Time now() const override { return {static_cast<int64_t>(loopback_.steps_)}; }
  void submit(const nic::Command& command) override {
    const auto* create = std::get_if<nic::ContextCreate>(&command.body);
    if (create != nullptr && loopback_.options_.handlers == nullptr && command.token != 0) {
      mailbox.answer(command.token, fail(Code::unsupported, "this loopback driver has no handler runner, so context ",
                                         create->id, " cannot be created"));
      return;
    }
    if (!is_dead) loopback_.work_.push_back(Work{rank_.value, command});
  }
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return mailbox.take_answer(token); }
  std::optional<nic::Event> take_event(nic::QueueId queue) override { return mailbox.take_event(queue); }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return mailbox.counter(counter); }
  Status wait() override {
    const uint64_t before = mailbox.changes();
    while (mailbox.changes() == before) {
      if (!loopback_.step()) {
        return fail(Code::stalled, "loopback: rank ", rank_,
                    " waits and nothing can happen any more: ", loopback_.stall_report());
      }
    }
    return {};
  }
  Status host_work(const portals::HostWork&) override { return {}; }  // host work takes no time here
  [[nodiscard]] nic::HostMemory* memory() override { return &host_memory; }

  portals::ProbedMemory host_memory;
  nic::Nic engine;
  std::vector<uint8_t> nic_memory;
  portals::Mailbox mailbox;
  std::deque<nic::Packet> blocked_packets;  // packets for which the engine has no room
  bool is_dead = false;
  ForwardedCalls* waiting_handler = nullptr;  // the handler that waits for an answer

 private:
  Loopback& loopback_;
  nic::Rank rank_;
};

// Forwards a running handler's calls to its engine.
class Loopback::ForwardedCalls final : public spin::HandlerCalls {
 public:
  ForwardedCalls(Loopback& loopback, uint32_t rank, nic::HerId her) : loopback_(loopback), rank_(rank), her_(her) {}

  std::optional<uint32_t> call(const nic::HandlerCall& call) override {
    actions_.clear();
    Node& node = *loopback_.nodes_[rank_];
    if (node.engine.on_handler_call(her_, call, actions_)) return std::nullopt;
    result_.reset();
    outer_ = std::exchange(node.waiting_handler, this);
    loopback_.perform(rank_, actions_);
    // The call blocks. The transfers of this rank are performed now, in order, until one answers it. A call that
    // waits for another rank lets everything go on except further handlers of this rank.
    while (!result_) {
      Links* const links = loopback_.options_.links;
      const bool served = loopback_.serve_transfer(rank_) || (links != nullptr && links->step(loopback_)) ||
                          loopback_.serve_others(rank_);
      SPL_ASSERT(served, "call ", call.call, " has no answer");
    }
    node.waiting_handler = outer_;
    return result_;
  }
  [[nodiscard]] nic::HerId her() const { return her_; }
  [[nodiscard]] ForwardedCalls* outer() const { return outer_; }
  void answer(uint32_t value) { result_ = value; }

 private:
  Loopback& loopback_;
  uint32_t rank_;
  nic::HerId her_;
  ForwardedCalls* outer_ = nullptr;  // a handler of this rank that waited before
  nic::Actions actions_;
  std::optional<uint32_t> result_;
};

Result<std::unique_ptr<Loopback>> Loopback::create(const LoopbackOptions& options) {
  if (options.ranks == 0) return fail(Code::invalid, "loopback: 0 ranks; it needs at least 1");
  SPL_TRY(nic::check(options.nic));
  return std::unique_ptr<Loopback>(new Loopback(options));
}

Loopback::Loopback(const LoopbackOptions& options) : options_(options) {
  static_assert(std::variant_size_v<Item> == kinds - 1);
  if (options.racy_seed) random_.emplace(*options.racy_seed, "loopback");
  for (size_t i = 0; options.leans && i < options.ranks * kinds; ++i) {
    weights_.push_back(uint64_t{1} << 2 * random_->below(6));
  }
  for (uint32_t rank = 0; rank < options.ranks; ++rank)
    nodes_.push_back(std::make_unique<Node>(*this, nic::Rank{rank}));
}

Loopback::~Loopback() = default;

portals::Port& Loopback::port(uint32_t rank) {
  SPL_ASSERT(rank < nodes_.size(), "rank ", rank, " of ", nodes_.size());
  return *nodes_[rank];
}

const nic::Nic& Loopback::nic(uint32_t rank) const {
  SPL_ASSERT(rank < nodes_.size(), "rank ", rank, " of ", nodes_.size());
  return nodes_[rank]->engine;
}

std::span<const uint8_t> Loopback::nic_memory(uint32_t rank) const {
  SPL_ASSERT(rank < nodes_.size(), "rank ", rank, " of ", nodes_.size());
  return nodes_[rank]->nic_memory;
}

// Returns the place of the oldest waiting header between the ranks of the chosen one; the chosen place if that is no
// header or is the oldest.
size_t Loopback::oldest_header_before(size_t chosen) const {
  const auto header_of = [](const Work& work) -> const nic::Packet* {
    const auto* const arrival = std::get_if<PacketArrival>(&work.item);
    return arrival != nullptr && arrival->packet.is_header() && !arrival->packet.is_answer() ? &arrival->packet
                                                                                             : nullptr;
  };
  const nic::Packet* const header = header_of(work_[chosen]);
  if (header == nullptr) return chosen;
  for (size_t place = 0; place < chosen; ++place) {
    const nic::Packet* const older = header_of(work_[place]);
    if (older != nullptr && older->source == header->source && older->target == header->target) return place;
  }
  return chosen;
}

// Returns the place of the oldest transfer of the chosen item's rank; the chosen place if there is none.
size_t Loopback::oldest_transfer_for(size_t chosen) const {
  for (size_t place = 0; place < work_.size(); ++place) {
    const bool is_transfer =
        std::visit([]<class Kind>(const Kind&) { return portals::Transfer<Kind>; }, work_[place].item);
    if (is_transfer && work_[place].rank == work_[chosen].rank) return place;
  }
  return chosen;
}

// Draws one of the oldest items.
size_t Loopback::draw(size_t window) {
  if (weights_.empty()) return random_->below(window);
  const auto weight_of = [&](size_t place) {
    const Work& work = work_[place];
    const auto* const arrival = std::get_if<PacketArrival>(&work.item);
    const size_t kind = arrival != nullptr && arrival->packet.is_answer() ? kinds - 1 : work.item.index();
    return weights_[work.rank * kinds + kind];
  };
  uint64_t sum = 0;
  for (size_t place = 0; place < window; ++place) sum += weight_of(place);
  uint64_t drawn = random_->below(sum);
  size_t place = 0;
  for (; drawn >= weight_of(place); ++place) drawn -= weight_of(place);
  return place;
}

Loopback::Work Loopback::take_work() {
  size_t chosen = 0;
  if (random_) {
    constexpr size_t window = 64;  // the number of oldest items among which the next one is chosen
    chosen = draw(std::min(work_.size(), window));
    if (std::holds_alternative<nic::Command>(work_[chosen].item)) {
      const uint32_t rank = work_[chosen].rank;
      size_t first = 0;
      while (work_[first].rank != rank || !std::holds_alternative<nic::Command>(work_[first].item)) ++first;
      chosen = first;
    }
    if (options_.headers_in_order) chosen = oldest_header_before(chosen);
    if (options_.transfers_first) chosen = oldest_transfer_for(chosen);
    overtakes_ += chosen > 0 ? 1 : 0;
  }
  Work work = std::move(work_[chosen]);
  work_.erase(work_.begin() + static_cast<ptrdiff_t>(chosen));
  return work;
}

bool Loopback::step() {
  if (steps_ >= options_.steps_max) return false;
  if (is_mending_ && have_all_parted()) {
    ++steps_;
    rejoin_peers();
    return true;
  }
  if (options_.links != nullptr && (work_.empty() || (random_ && random_->chance(1, 3)))) {
    ++steps_;
    if (options_.links->step(*this)) return true;
  }
  if (work_.empty()) return false;
  ++steps_;
  Work work = take_work();
  do_work(work);
  if (work_.empty()) free_payloads_if_idle();
  return true;
}

Status Loopback::run() {
  while (step()) {
  }
  if (work_.empty() && waiting_packets_ == 0) return {};
  return fail(Code::stalled, "loopback: ", stall_report());
}

std::string Loopback::stall_report() const {
  std::ostringstream report;
  if (!work_.empty()) report << "steps_max of " << options_.steps_max << " reached with work left; ";
  for (const auto& node : nodes_) {
    report << node->engine.describe_waiting() << ", " << node->blocked_packets.size() << " packets wait for room. ";
  }
  return report.str();
}

void Loopback::do_work(Work& work) {
  const uint32_t rank = work.rank;
  Node& node = *nodes_[rank];
  if (node.is_dead) return;
  if (const auto* arrival = std::get_if<PacketArrival>(&work.item)) return take_packet(rank, arrival->packet);
  if (const auto* start = std::get_if<nic::RunHandler>(&work.item)) return run_handler(rank, start->her);
  nic::Nic& engine = node.engine;
  nic::Actions actions;
  const auto tell_engine = portals::Overloaded{
      [&](const nic::Command& command) { engine.on_command(command, actions); },
      [&](const HerReady& ready) { engine.on_her_ready(ready.her, actions); },
      [&](const HandlerDone& done) {
        const spin::HandlerOutcome& outcome = done.outcome;
        engine.on_handler_done(done.her, outcome.end, outcome.code, actions, outcome.cycles);
      },
      [&](const MessageSent& sent) { engine.on_packet_sent(sent.message, actions); },
      [&](const PacketLeft& left) { engine.on_packet_left(left.slot, actions); },
      [&](const PeerLost& lost) {
        // Nothing of the peer comes any more; its packets that wait for room are dropped, too.
        waiting_packets_ -=
            std::erase_if(node.blocked_packets, [&](const nic::Packet& packet) { return packet.source == lost.peer; });
        engine.on_peer_lost(lost.peer, actions);
      },
      [&](const nic::Continue&) { engine.on_continue(actions); },
      [&]<portals::Transfer Kind>(const Kind& transfer) { engine.on_dma_done(portals::perform(transfer), actions); },
      [](const PacketArrival&) {},
      [](const nic::RunHandler&) {},
  };
  std::visit(tell_engine, work.item);
  perform(rank, actions);
  unblock(rank);
}

// Performs the oldest DMA or atomic of a handler, end of a message's sending, or continuation of this rank, because a
// handler's blocking call may wait for it. False if there is none.
bool Loopback::serve_transfer(uint32_t rank) {
  const auto waited_for = [rank](const Work& work) {
    return work.rank == rank &&
           (std::holds_alternative<nic::DmaWrite>(work.item) || std::holds_alternative<nic::DmaRead>(work.item) ||
            std::holds_alternative<nic::DmaAtomic>(work.item) || std::holds_alternative<MessageSent>(work.item) ||
            std::holds_alternative<nic::Continue>(work.item));
  };
  const auto found = std::find_if(work_.begin(), work_.end(), waited_for);
  if (found == work_.end()) return false;
  Work work = std::move(*found);
  work_.erase(found);
  do_work(work);
  return true;
}

// Performs the oldest work that starts no handler; if there is none, the oldest that starts one of another rank.
bool Loopback::serve_others(uint32_t rank) {
  const auto starts_handler = [](const Work& work) { return std::holds_alternative<nic::RunHandler>(work.item); };
  auto found = std::find_if_not(work_.begin(), work_.end(), starts_handler);
  if (found == work_.end()) {
    found = std::find_if(work_.begin(), work_.end(), [rank](const Work& work) { return work.rank != rank; });
  }
  if (found == work_.end()) return false;
  Work work = std::move(*found);
  work_.erase(found);
  do_work(work);
  return true;
}

portals::Order Loopback::order() const {
  if (options_.links != nullptr) return portals::Order::header_order;
  if (random_ && options_.headers_in_order) return portals::Order::header_order;
  return random_ ? portals::Order::any : portals::Order::arrival;
}

void Loopback::take_packet(uint32_t rank, const nic::Packet& packet) {
  Node& node = *nodes_[rank];
  if (options_.links != nullptr) {
    node.blocked_packets.push_back(packet);
    ++waiting_packets_;
    const uint64_t before = waiting_packets_;
    unblock(rank);
    if (waiting_packets_ >= before) ++packets_blocked_;
    return;
  }
  if (!portals::passes(order(), packet, !node.blocked_packets.empty()) || !node.engine.can_accept(packet)) {
    node.blocked_packets.push_back(packet);
    ++waiting_packets_;
    ++packets_blocked_;
    return;
  }
  nic::Actions actions;
  node.engine.on_packet(packet, actions);
  perform(rank, actions);
  if (random_) unblock(rank);
}

void Loopback::unblock(uint32_t rank) {
  Node& node = *nodes_[rank];
  if (order() == portals::Order::any) return requeue_blocked(rank);
  const auto packet_of = [](const nic::Packet& packet) -> const nic::Packet& { return packet; };
  while (const auto next = portals::next(order(), node.engine, node.blocked_packets, packet_of)) {
    const auto chosen = node.blocked_packets.begin() + static_cast<ptrdiff_t>(*next);
    const nic::Packet packet = *chosen;
    node.blocked_packets.erase(chosen);
    --waiting_packets_;
    nic::Actions actions;
    node.engine.on_packet(packet, actions);
    perform(rank, actions);
  }
}

// All waiting packets arrive again: with Order::any each of them may be next.
void Loopback::requeue_blocked(uint32_t rank) {
  std::deque<nic::Packet>& blocked = nodes_[rank]->blocked_packets;
  waiting_packets_ -= blocked.size();
  for (; !blocked.empty(); blocked.pop_back()) work_.push_front(Work{rank, PacketArrival{blocked.back()}});
}

void Loopback::run_handler(uint32_t rank, const nic::Her& her) {
  Node& node = *nodes_[rank];
  SPL_ASSERT(options_.handlers != nullptr, "a context was created without a runner");
  const spin::HandlerFrame frame = portals::frame_of(her, node.engine, node.nic_memory);
  ForwardedCalls calls(*this, rank, her.id);
  const spin::HandlerOutcome outcome = options_.handlers->run(frame, calls);
  work_.push_back(Work{rank, HandlerDone{her.id, outcome}});
}

void Loopback::on_arrival(uint32_t rank, const nic::Packet& packet) {
  if (nodes_[rank]->is_dead) return;
  nic::Packet copied = packet;
  if (packet.payload.length > 0) copied.payload.bytes = copy_payload(packet.payload, {});
  take_packet(rank, copied);
}

void Loopback::on_sent(uint32_t rank, uint64_t message) { work_.push_back(Work{rank, MessageSent{message}}); }

void Loopback::on_left(uint32_t rank, nic::OutboundSlotId slot) { work_.push_back(Work{rank, PacketLeft{slot}}); }

void Loopback::on_lost(uint32_t rank, nic::Rank peer) { work_.push_back(Work{rank, PeerLost{peer}}); }

void Loopback::kill(uint32_t rank) {
  Node& node = *nodes_[rank];
  node.is_dead = true;
  waiting_packets_ -= node.blocked_packets.size();
  node.blocked_packets.clear();
  std::erase_if(work_, [rank](const Work& work) { return work.rank == rank; });
}

void Loopback::cut_links() {
  is_mending_ = false;
  if (std::exchange(is_cut_, true)) return;
  std::erase_if(work_, [](const Work& work) {
    const auto* const arrive = std::get_if<PacketArrival>(&work.item);
    return arrive != nullptr && arrive->packet.source.value != work.rank;
  });
  for (uint32_t rank = 0; rank < ranks(); ++rank) {
    for (uint32_t peer = 0; peer < ranks(); ++peer) {
      if (peer != rank) on_lost(rank, nic::Rank{peer});
    }
  }
}

bool Loopback::have_all_parted() const {
  for (uint32_t rank = 0; rank < nodes_.size(); ++rank) {
    for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
      if (peer != rank && !nodes_[rank]->engine.is_quiescent(nic::Rank{peer})) return false;
    }
  }
  return true;
}

void Loopback::rejoin_peers() {
  is_cut_ = is_mending_ = false;
  for (uint32_t rank = 0; rank < nodes_.size(); ++rank) {
    for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
      if (peer == rank) continue;
      nic::Actions actions;
      nodes_[rank]->engine.on_peer_back(nic::Rank{peer}, actions);
      perform(rank, actions);
    }
  }
}

void Loopback::send(uint32_t rank, const nic::Send& send) {
  if (options_.links != nullptr) return options_.links->send(rank, send, *this);
  Work work{send.packet.target.value, PacketArrival{send.packet}};
  auto& packet = std::get<PacketArrival>(work.item).packet;
  if (packet.payload.length > 0) packet.payload.bytes = copy_payload(send.packet.payload, send.pieces);
  // A rank that does not exist is an unreachable host: its packets vanish.
  const bool arrives = work.rank < nodes_.size() && (!is_cut_ || work.rank == rank);
  if (arrives) work_.push_back(std::move(work));
  if (send.slot.exists()) {
    work_.push_back(Work{rank, PacketLeft{send.slot}});
  } else if (send.last && !send.at_once && send.packet.operation != nic::Operation::ack) {
    work_.push_back(Work{rank, MessageSent{send.packet.message}});
  }
}

void Loopback::perform(uint32_t rank, nic::Actions& actions) {
  Node& node = *nodes_[rank];
  const auto queue = [&](auto item) { work_.push_back(Work{rank, std::move(item)}); };
  const auto performer = portals::Overloaded{
      [&](const nic::Send& packet) { send(rank, packet); },
      [&](const nic::BufferPacket& buffer) { queue(HerReady{buffer.her}); },
      [&](const nic::RunHandler& start) { queue(start); },
      [&](const nic::Continue& more) { queue(more); },
      [&](const nic::PostEvent& post) { node.mailbox.add(post.queue, post.event); },
      [&](const nic::PostCounter& post) { node.mailbox.set(post.counter, post.value); },
      [&](nic::Answer& answer) { node.mailbox.answer(answer.token, std::move(answer.result)); },
      [](const nic::DebugLine&) {},  // debug lines are dropped
      [&](const nic::Resume& resume) {
        ForwardedCalls* waiting = node.waiting_handler;
        while (waiting != nullptr && waiting->her() != resume.her) waiting = waiting->outer();
        SPL_ASSERT(waiting != nullptr, "HER ", resume.her, " waits for nothing");
        waiting->answer(resume.value);
      },
      [&]<portals::Transfer Kind>(const Kind& transfer) { queue(transfer); },
  };
  portals::perform_each(actions, node.nic_memory, performer);
}

const uint8_t* Loopback::copy_payload(const nic::PayloadRef& payload, const std::vector<nic::PayloadRef>& pieces) {
  payloads_.push_back(std::make_unique<uint8_t[]>(payload.length));
  uint8_t* const copy = payloads_.back().get();
  if (pieces.empty()) std::memcpy(copy, payload.bytes, payload.length);
  nic::gather(pieces, copy);
  return copy;
}

// Payloads are kept until no engine has an open message, because engines refer to them.
void Loopback::free_payloads_if_idle() {
  if (waiting_packets_ > 0) return;
  for (const auto& node : nodes_) {
    if (!node->is_dead && node->engine.state().messages_open > 0) return;
  }
  payloads_.clear();
}

}  // namespace spinloom::testbed
