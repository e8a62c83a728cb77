#include "live/testing/live_testbed.hpp"

#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "live/fabric/fabric_faults.hpp"

namespace spinloom::live {
namespace {

constexpr int64_t millisecond = 1'000'000'000;  // Time counts picoseconds

// A port whose calls hold the node's lock, as the C functions do.
class LockedPort final : public portals::Port {
 public:
  LockedPort(Node& node, Time give_up) : node_(node), give_up_(give_up) {}
  void set_progress(Progress& progress) { progress_ = &progress; }

  [[nodiscard]] nic::Rank rank() const override { return node_.rank(); }
  [[nodiscard]] Time now() const override { return node_.now(); }
  void submit(const nic::Command& command) override {
    inside([&] { node_.submit(command); });
  }
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override {
    std::optional<Result<uint64_t>> answer;
    inside([&] { answer = node_.take_answer(token); });
    return answer;
  }
  std::optional<nic::Event> take_event(nic::QueueId queue) override {
    std::optional<nic::Event> event;
    inside([&] { event = node_.take_event(queue); });
    return event;
  }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override {
    const std::lock_guard lock(node_.lock());
    return node_.counter(counter);
  }
  Status wait() override {
    Status status;
    inside([&] {
      node_.wait_until(std::min(give_up_, node_.now() + Time{50'000'000'000}));
      if (node_.now() >= give_up_)
        status = fail(Code::stalled, "rank ", rank(), ": ", node_.engine().describe_waiting());
    });
    return status;
  }
  Status host_work(const portals::HostWork&) override { return {}; }
  [[nodiscard]] nic::HostMemory* memory() override { return node_.memory(); }

 private:
  template <class Call>
  void inside(Call call) {
    const std::lock_guard lock(node_.lock());
    call();
    node_.tell_sleepers();
    progress_->note_call_end();
  }

  Node& node_;
  Progress* progress_ = nullptr;
  Time give_up_;
};

}  // namespace

struct LiveTestbed::Member {
  Member(LiveTestbed& bed, uint32_t rank, const nic::NicLimits& limits, const ShmOptions& options)
      : node(nic::Rank{rank}, static_cast<uint32_t>(bed.job_.cards.size()), limits, bed.job_.segments[rank]),
        tap(node),
        shm(tap, bed.job_.segments[rank], rank, bed.job_.cards, options,
            [this](int descriptor, nic::Rank peer) { helper.load()->watch(descriptor, peer.value); }),
        port(node, monotonic_now() + patience()) {}

  Node node;
  BridgeTap tap;
  ShmTransport shm;
  std::unique_ptr<UdpTransport> udp;
  std::unique_ptr<FabricTransport> fabric;
  std::unique_ptr<BridgeTransport> bridge;
  std::unique_ptr<HpuPool> pool;
  std::unique_ptr<Progress> progress;
  // A pointer for its own thread, which may run before `progress` is set, and after.
  std::atomic<Progress*> helper{nullptr};
  std::atomic<bool> is_alive{true};
  LockedPort port;
  std::unique_ptr<portals::Interface> interface;
};

Result<LocalJob> LocalJob::create(uint32_t ranks) {
  LocalJob job;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    BusinessCard card;
    SPL_ASSIGN(card.machine, machine_id());
    card.pid = getpid();
    card.nonce = random_secret();
    card.user = geteuid();
    SPL_ASSIGN(job.segments.emplace_back(), Segment::create(rank, ranks, card.nonce));
    card.file = job.segments.back().file();
    job.cards.push_back(card);
  }
  return job;
}

Result<std::unique_ptr<LiveTestbed>> LiveTestbed::create(uint32_t ranks, const nic::NicLimits& limits,
                                                         const ShmOptions& options, Time spin,
                                                         std::shared_ptr<testbed::ScenarioHandlers> handlers, Over over,
                                                         const Bridging& bridging, Patience patience) {
  std::unique_ptr<LiveTestbed> bed(new LiveTestbed);
  bed->patience_ = patience;
  bed->ranks_ = ranks;
  ranks += bridging.gateways;
  SPL_ASSIGN(bed->job_, LocalJob::create(ranks));
  bed->handlers_ = std::move(handlers);
  constexpr uint32_t loopback = 0x7f000001;
  std::vector<std::unique_ptr<DatagramPort>> ports;
  const bool by_udp = over == Over::udp || over == Over::lossy_udp;
  for (uint32_t rank = 0; by_udp && rank < ranks; ++rank) {
    SPL_ASSIGN(ports.emplace_back(), open_udp(loopback));
    if (over == Over::lossy_udp) {
      const Faults faults{.drop = 0.05, .duplicate = 0.05, .reorder = 0.05, .corrupt = 0.02, .seed = rank + 1};
      ports.back() = disturb(std::move(ports.back()), faults);
    }
    bed->job_.cards[rank].address = ports.back()->address().address;
    bed->job_.cards[rank].port = ports.back()->address().port;
  }
  bed->fabric_ = std::make_unique<LocalFabric>(ranks, over != Over::fabric_in_pieces);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto& member = *bed->members_.emplace_back(std::make_unique<Member>(*bed, rank, limits, options));
    member.node.set_patience(spin);
    SPL_ASSIGN(Transport* const way,
               bed->make_way(member, rank, over, ports.empty() ? nullptr : std::move(ports[rank])));
    member.node.add_transport(*way);
    for (uint32_t peer = 0; peer < ranks; ++peer) {
      if (peer != rank) member.node.set_route(nic::Rank{peer}, *way);
    }
    if (bridging.gateways > 0) bed->make_bridge(member, rank, *way, bridging);
    if (bed->handlers_) {
      const std::shared_ptr<spin::HandlerRunner> runner(bed->handlers_, &bed->handlers_->runner());
      SPL_ASSIGN(member.pool, HpuPool::create({limits.hpus}, runner, member.node));
      member.node.set_pool(*member.pool);
    }
  }
  for (const auto& member : bed->members_) {
    Member* const it = member.get();
    SPL_ASSIGN(it->progress, Progress::start(it->node, [it, ranks](uint64_t peer) {
                 if (peer == ranks) {
                   if (it->udp) it->udp->disarmed();
                   if (it->fabric) it->fabric->disarmed();
                   return it->node.doorbell().ring(true);
                 }
                 const std::lock_guard lock(it->node.lock());
                 it->shm.process_ended(nic::Rank{static_cast<uint32_t>(peer)});
               }));
    it->helper = it->progress.get();
    it->port.set_progress(*it->progress);
    if (it->udp) {  // armed perhaps before the node could hear it
      const std::lock_guard inside(it->node.lock());
      it->udp->disarmed();
      it->udp->arm();
    }
    if (it->fabric) {
      const std::lock_guard inside(it->node.lock());
      it->fabric->disarmed();
      it->fabric->arm();
    }
    it->interface = std::make_unique<portals::Interface>(it->port);
  }
  return bed;
}

Result<Transport*> LiveTestbed::make_way(Member& member, uint32_t rank, Over over, std::unique_ptr<DatagramPort> port) {
  if (over == Over::shared_memory) return &member.shm;
  const uint32_t ranks = static_cast<uint32_t>(job_.cards.size());
  const auto arm = [&member, ranks](int descriptor) {
    if (Progress* const helper = member.helper) helper->watch(descriptor, ranks);
  };
  const std::vector<bool> all(ranks, true);
  if (port) {
    UdpPatience patience;
    if (patience_ == Patience::short_for_deaths) patience = {Time{100 * millisecond}, Time{500 * millisecond}, 4};
    SPL_ASSIGN(member.udp,
               UdpTransport::create(member.tap, std::move(port), rank, job_.cards, all, arm, false, patience));
    return member.udp.get();
  }
  std::unique_ptr<FabricPort> fabric = fabric_->port(rank);
  if (over == Over::fabric_disturbed) {
    FabricFaults faults;
    faults.refuse = 0.1;
    faults.delay = 0.1;
    faults.seed = rank + 1;
    fabric = disturb(std::move(fabric), faults);
  }
  FabricPatience patience;
  if (patience_ == Patience::short_for_deaths) {
    patience.keepalive = Time{100 * millisecond};
    patience.fetch = Time{300 * millisecond};
    patience.silence = Time{500 * millisecond};
  }
  member.fabric =
      std::make_unique<FabricTransport>(member.tap, std::move(fabric), rank, job_.cards[0].nonce, all, arm, patience);
  return member.fabric.get();
}

void LiveTestbed::make_bridge(Member& member, uint32_t rank, Transport& way, const Bridging& bridging) {
  const auto all = static_cast<uint32_t>(job_.cards.size());
  std::vector<bool> gateways(all);
  std::vector<std::vector<bool>> marks(all, std::vector<bool>(all));
  for (uint32_t i = 0; i < bridging.gateways; ++i) gateways[ranks_ + i] = true;
  for (uint32_t one = 0; one < all; ++one) {
    const uint32_t gateway = one < ranks_ ? ranks_ + one % bridging.gateways : std::min(one + 1, all - 1);
    marks[one][gateway] = marks[gateway][one] = true;
  }
  member.bridge =
      std::make_unique<BridgeTransport>(member.node, rank, ranks_, BridgeRoutes(marks, gateways), bridging.options);
  member.node.add_transport(*member.bridge);
  for (uint32_t peer = 0; peer < all; ++peer) {
    if (marks[rank][peer]) {
      member.bridge->link(nic::Rank{peer}, way);
    } else if (peer != rank) {
      member.node.set_route(nic::Rank{peer}, *member.bridge);
    }
  }
  member.tap.attach(*member.bridge);
  if (member.udp && gateways[rank]) member.udp->cork_while_delivering();
}

const BridgeTransport& LiveTestbed::bridge(uint32_t rank) const { return *members_.at(rank)->bridge; }

LiveTestbed::~LiveTestbed() {
  for (const auto& member : members_) member->progress.reset();
  for (const auto& member : members_) member->pool.reset();
}

portals::Interface& LiveTestbed::rank(uint32_t rank) { return *members_.at(rank)->interface; }

const nic::Nic& LiveTestbed::nic(uint32_t rank) const { return members_.at(rank)->node.engine(); }

Result<testbed::TestHandlers> LiveTestbed::handlers(std::string_view name) {
  if (!handlers_) return fail(Code::unsupported, "this testbed has no handlers");
  return handlers_->find(name);
}

// All ranks must be quiet twice in a row: a message that left one rank between two looks has reached another by the
// second look.
Status LiveTestbed::settle() {
  const Time give_up = monotonic_now() + patience();
  for (int quiet_rounds = 0; quiet_rounds < 3;) {
    bool quiet = true;
    for (const auto& member : members_) {
      if (!member->is_alive) continue;
      const std::lock_guard lock(member->node.lock());
      member->node.drive();
      member->node.tell_sleepers();
      const nic::NicState now = member->node.engine().state();
      quiet = quiet && member->node.drained() && !member->node.has_news() && now.messages_open == 0 &&
              now.dmas_open == 0 && now.hpus_busy == 0 && now.hers_waiting == 0 && now.messages_outgoing == 0;
    }
    quiet_rounds = quiet ? quiet_rounds + 1 : 0;
    if (quiet) continue;
    if (monotonic_now() >= give_up) return {};  // the scenario reports what is missing
    std::this_thread::yield();
  }
  return {};
}

// The rank stops, and what it has written stays. Over shared memory the others hear at once, as
// they do when the kernel tells them that a process has ended; elsewhere they notice its silence.
Status LiveTestbed::kill(uint32_t rank) {
  Member& dead = *members_.at(rank);
  dead.is_alive = false;
  dead.progress->stop();
  for (const auto& member : members_) {
    if (!member->is_alive) continue;
    const std::lock_guard lock(member->node.lock());
    member->shm.process_ended(nic::Rank{rank});
    member->node.drive();
    member->node.tell_sleepers();
  }
  return {};
}

Backlog::Amount LiveTestbed::backlog_peak(uint32_t rank) {
  Node& node = members_.at(rank)->node;
  const std::lock_guard lock(node.lock());
  return node.backlog().peak();
}

void LiveTestbed::leave(uint32_t rank) {
  Member& member = *members_.at(rank);
  const std::lock_guard lock(member.node.lock());
  if (member.bridge) member.bridge->say_goodbye();
  member.shm.say_goodbye();
}

void LiveTestbed::kill_gateway(uint32_t gateway) {
  const nic::Rank gone{ranks_ + gateway};
  for (const auto& member : members_) {
    const std::lock_guard lock(member->node.lock());
    if (member->node.rank() == gone) {
      for (uint32_t peer = 0; peer < members_.size(); ++peer) member->bridge->lose_link(nic::Rank{peer});
    } else {
      member->bridge->lose_link(gone);
    }
    member->node.drive();
    member->node.tell_sleepers();
  }
}

uint64_t LiveTestbed::refused() {
  uint64_t sum = 0;
  for (const auto& member : members_) {
    const std::lock_guard lock(member->node.lock());
    if (member->bridge) sum += member->bridge->counts().malformed + member->bridge->counts().repeated;
    if (member->bridge && member->bridge->forwarder()) sum += member->bridge->forwarder()->counts().refused;
    sum += member->shm.refused_cells() + member->node.engine().state().refused_packets;
  }
  return sum;
}

}  // namespace spinloom::live
