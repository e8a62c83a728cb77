#include "live/node/testing/pool_testbed.hpp"

#include <algorithm>
#include <cstring>

#include "portals/interface/admission.hpp"
#include "portals/interface/handler_frame.hpp"
#include "portals/interface/mailbox.hpp"
#include "portals/interface/perform.hpp"
#include "portals/interface/probed_memory.hpp"

namespace spinloom::live {

class PoolTestbed::Node final : public portals::Port, public HandlerOwner {
 public:
  Node(PoolTestbed& bed, nic::Rank rank, const nic::NicLimits& limits)
      : engine(rank, limits, &host_memory), on_nic(limits.nic_memory_bytes), bed_(bed), rank_(rank) {}

  // portals::Port
  [[nodiscard]] nic::Rank rank() const override { return rank_; }
  [[nodiscard]] Time now() const override { return {}; }
  void submit(const nic::Command& command) override {
    const std::lock_guard lock(bed_.lock_);
    nic::Actions actions;
    engine.on_command(command, actions);
    bed_.perform(*this, actions);
    bed_.drain();
  }
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override {
    const std::lock_guard lock(bed_.lock_);
    return mail.take_answer(token);
  }
  std::optional<nic::Event> take_event(nic::QueueId queue) override {
    const std::lock_guard lock(bed_.lock_);
    return mail.take_event(queue);
  }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override {
    const std::lock_guard lock(bed_.lock_);
    return mail.counter(counter);
  }
  Status wait() override {
    std::unique_lock lock(bed_.lock_);
    const bool news = bed_.changed_.wait_for(lock, patience(), [this] { return bed_.changes_ != seen_; });
    seen_ = bed_.changes_;
    if (!news) return fail(Code::stalled, "rank ", rank_, " waits: ", engine.describe_waiting());
    return {};
  }
  Status host_work(const portals::HostWork&) override { return {}; }
  [[nodiscard]] nic::HostMemory* memory() override { return &host_memory; }

  // HandlerOwner
  CallResult call(nic::HerId her, const nic::HandlerCall& call) override {
    const std::lock_guard lock(bed_.lock_);
    nic::Actions actions;
    if (engine.on_handler_call(her, call, actions)) return {false};
    bed_.perform(*this, actions);
    bed_.drain();
    return {};
  }
  void ended(nic::HerId her, const spin::HandlerOutcome& outcome) override {
    const std::lock_guard lock(bed_.lock_);
    nic::Actions actions;
    engine.on_handler_done(her, outcome.end, outcome.code, actions, outcome.cycles);
    bed_.perform(*this, actions);
    bed_.drain();
    ++bed_.changes_;
    bed_.changed_.notify_all();
  }

  portals::ProbedMemory host_memory;
  nic::Nic engine;
  std::vector<uint8_t> on_nic;
  std::unique_ptr<HpuPool> pool;
  std::deque<nic::Packet> blocked;
  portals::Mailbox mail;

 private:
  PoolTestbed& bed_;
  nic::Rank rank_;
  uint64_t seen_ = 0;
};

Result<std::unique_ptr<PoolTestbed>> PoolTestbed::create(uint32_t ranks, const nic::NicLimits& limits,
                                                         std::shared_ptr<testbed::ScenarioHandlers> handlers,
                                                         std::chrono::nanoseconds spin) {
  SPL_TRY(nic::check(limits));
  std::unique_ptr<PoolTestbed> bed(new PoolTestbed);
  bed->handlers_ = handlers;
  const std::shared_ptr<spin::HandlerRunner> runner(handlers, &handlers->runner());
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    bed->nodes_.push_back(std::make_unique<Node>(*bed, nic::Rank{rank}, limits));
    bed->interfaces_.push_back(std::make_unique<portals::Interface>(*bed->nodes_.back()));
  }
  for (const auto& node : bed->nodes_) {
    HpuPoolOptions options;
    options.hpus = limits.hpus;
    options.spin = spin;
    SPL_ASSIGN(node->pool, HpuPool::create(options, runner, *node));
  }
  return bed;
}

// Ends the pools first, because handlers of one rank use the other ranks.
PoolTestbed::~PoolTestbed() {
  for (const auto& node : nodes_) node->pool.reset();
}

const nic::Nic& PoolTestbed::nic(uint32_t rank) const { return nodes_.at(rank)->engine; }

uint32_t PoolTestbed::busy(uint32_t rank) {
  const std::lock_guard lock(lock_);
  return nodes_.at(rank)->engine.state().hpus_busy;
}

Status PoolTestbed::shut_down() {
  for (const auto& node : nodes_) SPL_TRY(node->pool->shut_down());
  return {};
}

// True if nothing can happen any more: no work is left, and no handler runs.
bool PoolTestbed::quiet() const {
  return work_.empty() && std::all_of(nodes_.begin(), nodes_.end(),
                                      [](const auto& node) { return node->engine.state().hpus_busy == 0; });
}

Status PoolTestbed::settle() {
  std::unique_lock lock(lock_);
  if (changed_.wait_for(lock, patience(), [this] { return quiet(); })) return {};
  std::string report;
  for (const auto& node : nodes_) report += node->engine.describe_waiting() + ". ";
  return fail(Code::stalled, "handlers run on: ", report);
}

void PoolTestbed::drain() {
  do {
    while (!work_.empty()) {
      const Work work = work_.front();
      work_.pop_front();
      do_one(work);
    }
  } while (unblock());
}

// Tries packets again that had no room, in their order.
bool PoolTestbed::unblock() {
  bool any = false;
  for (const auto& node : nodes_) {
    const auto itself = [](const nic::Packet& packet) -> const nic::Packet& { return packet; };
    while (portals::next(portals::Order::arrival, node->engine, node->blocked, itself)) {
      const nic::Packet packet = node->blocked.front();
      node->blocked.pop_front();
      nic::Actions actions;
      node->engine.on_packet(packet, actions);
      perform(*node, actions);
      any = true;
    }
  }
  return any;
}

void PoolTestbed::do_one(const Work& work) {
  Node& node = *nodes_[work.rank];
  nic::Actions actions;
  if (const auto* arrival = std::get_if<Arrive>(&work.item)) return arrive(node, arrival->packet);
  if (const auto* ready = std::get_if<HerReady>(&work.item)) {
    node.engine.on_her_ready(ready->her, actions);
  } else if (const auto* dma = std::get_if<DmaDone>(&work.item)) {
    node.engine.on_dma_done(dma->dma, actions);
  } else if (const auto* sent = std::get_if<Sent>(&work.item)) {
    node.engine.on_packet_sent(sent->message, actions);
  } else if (const auto* left = std::get_if<Left>(&work.item)) {
    node.engine.on_packet_left(left->slot, actions);
  } else {
    node.engine.on_continue(actions);
  }
  perform(node, actions);
}

void PoolTestbed::arrive(Node& node, const nic::Packet& packet) {
  const bool may_enter = portals::passes(portals::Order::arrival, packet, !node.blocked.empty());
  if (!may_enter || !node.engine.can_accept(packet)) {
    node.blocked.push_back(packet);
    return;
  }
  nic::Actions actions;
  node.engine.on_packet(packet, actions);
  perform(node, actions);
}

void PoolTestbed::send(Node& node, const nic::Send& send) {
  Work work{send.packet.target.value, Arrive{send.packet}};
  nic::Packet& packet = std::get<Arrive>(work.item).packet;
  if (packet.payload.length > 0) {
    payloads_.push_back(std::make_unique<uint8_t[]>(packet.payload.length));
    uint8_t* const kept = payloads_.back().get();
    if (send.pieces.empty()) std::memcpy(kept, packet.payload.bytes, packet.payload.length);
    nic::gather(send.pieces, kept);
    packet.payload.bytes = kept;
  }
  if (work.rank < nodes_.size()) work_.push_back(work);
  if (send.slot.exists()) {
    work_.push_back({node.rank().value, Left{send.slot}});
  } else if (send.last && send.packet.operation != nic::Operation::ack) {
    work_.push_back({node.rank().value, Sent{send.packet.message}});
  }
}

void PoolTestbed::start(Node& node, const nic::Her& her) {
  node.pool->start(portals::frame_of(her, node.engine, node.on_nic));
  busy_peak_ = std::max(busy_peak_, node.engine.state().hpus_busy);
}

void PoolTestbed::perform(Node& node, nic::Actions& actions) {
  const uint32_t rank = node.rank().value;
  const auto one = portals::Overloaded{
      [&](const nic::Send& packet) { send(node, packet); },
      [&](const nic::BufferPacket& buffer) { work_.push_back({rank, HerReady{buffer.her}}); },
      [&](const nic::RunHandler& run) { start(node, run.her); },
      [&](const nic::Resume& resume) { node.pool->resume(resume.her, resume.value); },
      [&](const nic::PostEvent& post) { node.mail.add(post.queue, post.event); },
      [&](const nic::PostCounter& post) { node.mail.set(post.counter, post.value); },
      [&](nic::Answer& answer) { node.mail.answer(answer.token, std::move(answer.result)); },
      [&](const nic::Continue& more) { work_.push_back({rank, more}); },
      [](const nic::DebugLine&) {},
      [&]<portals::Transfer Kind>(const Kind& transfer) {
        work_.push_back({rank, DmaDone{portals::perform(transfer)}});
      },
  };
  portals::perform_each(actions, node.on_nic, one);
  ++changes_;
  changed_.notify_all();
}

}  // namespace spinloom::live
