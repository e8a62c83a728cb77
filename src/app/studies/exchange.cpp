#include "app/studies/exchange.hpp"

#include <memory>
#include <set>
#include <utility>

#include "app/studies/calibrate.hpp"
#include "app/studies/ddt.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

// One peer's message: its sender's bytes, its receive and where it goes.
struct Peer {
  strategies::Message message;
  Destination destination;
  std::vector<uint8_t> packed;
  std::unique_ptr<portals::Interface> sender;
  nic::PortalIndex portal;
  std::unique_ptr<strategies::Receive> receive;
  std::string fallback;
};

// The world with everything posted and put, before time goes on.
class RunningExchange {
 public:
  static Result<std::unique_ptr<RunningExchange>> create(const ExchangeConfig& config, const LoadedImages& loaded,
                                                         const std::vector<strategies::Message>& messages,
                                                         const strategies::HandlerCost& cost) {
    std::unique_ptr<RunningExchange> running(new RunningExchange);
    SPL_TRY(running->build(config, loaded, messages, cost));
    return running;
  }

  [[nodiscard]] simulated::World& world() { return *world_; }
  [[nodiscard]] simulated::Node& node() { return world_->node(receiving_rank_); }
  [[nodiscard]] std::vector<Peer>& peers() { return peers_; }

 private:
  Status build(const ExchangeConfig& config, const LoadedImages& loaded,
               const std::vector<strategies::Message>& messages, const strategies::HandlerCost& cost) {
    receiving_rank_ = static_cast<uint32_t>(messages.size());
    simulated::WorldOptions options = world_options(config);
    options.ranks = receiving_rank_ + 1;
    SPL_ASSIGN(world_, simulated::World::create(config.profile, loaded.images, options));
    receiver_ = std::make_unique<portals::Interface>(node());
    for (uint32_t rank = 0; rank < messages.size(); ++rank) {
      SPL_TRY(add(config, loaded, messages[rank], cost, rank));
    }
    for (Peer& peer : peers_) {
      portals::PutArguments put;
      put.local = peer.packed.data();
      put.length = peer.packed.size();
      put.target = node().rank();
      put.portal = peer.portal;
      put.match_bits = cell_match_bits;
      SPL_TRY(peer.sender->put(put));
    }
    return {};
  }

  Status add(const ExchangeConfig& config, const LoadedImages& loaded, const strategies::Message& message,
             const strategies::HandlerCost& cost, uint32_t rank) {
    const uint64_t seed = config.ordering.seed + rank;
    SPL_ASSIGN(Destination destination, Destination::create(message, seed));
    Peer peer{message,
              std::move(destination),
              random_bytes(seed, "app.message", static_cast<size_t>(message.bytes)),
              std::make_unique<portals::Interface>(world_->node(rank)),
              {},
              {},
              {}};
    SPL_ASSIGN(const nic::QueueId queue, receiver_->eq_alloc(cell_queue_slots));
    SPL_ASSIGN(peer.portal, receiver_->pt_alloc(queue));
    auto receive = strategies::Receive::prepare(*receiver_, peer.portal, queue, loaded.handlers, config.strategy,
                                                peer.message, facts_of(config), cost);
    const bool falls_back =
        !receive && (receive.error().code == Code::exhausted || receive.error().code == Code::unsupported);
    if (falls_back && strategies::puts_on_nic(config.strategy)) {
      peer.fallback = receive.error().message;
      receive = strategies::Receive::prepare(*receiver_, peer.portal, queue, loaded.handlers,
                                             strategies::Strategy::host_mpitypes, peer.message, facts_of(config), cost);
    }
    if (!receive) return receive.error();
    peer.receive = std::move(*receive);
    peers_.push_back(std::move(peer));
    return peers_.back().receive->post(peers_.back().destination.base(), cell_match_bits);
  }

  uint32_t receiving_rank_ = 0;
  std::unique_ptr<simulated::World> world_;
  std::unique_ptr<portals::Interface> receiver_;
  std::vector<Peer> peers_;
};

// Waits for all messages: the host unpacks its own as they land, and then reads that the NIC's are in their places.
Status finish_all(RunningExchange& running) {
  for (const bool on_nic : {false, true}) {
    for (Peer& peer : running.peers()) {
      if (peer.receive->plan().has_value() != on_nic) continue;
      const Result<nic::Event> finished = peer.receive->finish();
      if (!finished) return explain(finished.error(), running.node());
    }
  }
  return {};
}

Result<PeerResult> result_of(const ExchangeConfig& config, Peer& peer, uint64_t seed) {
  PeerResult result;
  result.size_bytes = peer.message.bytes;
  result.blocks = peer.message.blocks;
  result.fallback = std::move(peer.fallback);
  if (const auto& plan = peer.receive->plan()) {
    result.program_bytes = plan->constants.size();
    result.state_bytes = plan->state.size();
  }
  SPL_TRY(peer.destination.inject(config.inject, peer.message, seed));
  SPL_TRY(peer.destination.check(peer.message, peer.packed));
  result.destination = peer.destination.bytes();
  return result;
}

uint64_t code_bytes_of(RunningExchange& running, const LoadedImages& loaded) {
  std::set<std::string_view> used;
  for (const Peer& peer : running.peers()) {
    if (peer.receive->plan()) used.insert(peer.receive->plan()->image);
  }
  uint64_t sum = 0;
  for (const strategies::HandlerImage& handler : loaded.handlers) {
    if (used.contains(handler.name)) sum += loaded.images[handler.index].bytes().size();
  }
  return sum;
}

Result<std::vector<strategies::Message>> messages_of(const ExchangeConfig& config) {
  if (config.peers.empty() || config.peers.size() > ExchangeConfig::peers_max) {
    return fail(Code::invalid, config.peers.size(), " peers; an exchange has 1 to ", ExchangeConfig::peers_max,
                " (portal_table_max)");
  }
  std::vector<strategies::Message> messages;
  for (const PeerType& peer : config.peers) {
    SPL_ASSIGN(const layout::Type type, layout::parse(peer.type));
    SPL_TRY(Destination::check_span(type, peer.count));
    SPL_ASSIGN(strategies::Message message, strategies::make_message(type, peer.count));
    if (message.bytes == 0) return fail(Code::unsupported, "a message has zero bytes: there is nothing to receive");
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace

Result<ExchangeResult> run_exchange(const ExchangeConfig& config) {
  SPL_ASSIGN(const std::vector<strategies::Message> messages, messages_of(config));
  SPL_ASSIGN(const LoadedImages loaded, load_images(config.images));
  strategies::HandlerCost cost;
  if (strategies::uses_checkpoints(config.strategy)) {
    DdtConfig cell;
    static_cast<Setup&>(cell) = config;
    SPL_ASSIGN(cost, calibrate(cell));
  }
  ExchangeResult result;
  {  // a run of its own, step by step, that samples the packets on the NIC over time
    SPL_ASSIGN(const auto sampled, RunningExchange::create(config, loaded, messages, cost));
    while (sampled->world().events().step()) {
      result.packet_buffer.sample(sampled->node().now(), sampled->node().nic().state().packet_buffer_used);
    }
  }
  SPL_ASSIGN(const auto running, RunningExchange::create(config, loaded, messages, cost));
  SPL_TRY(finish_all(*running));
  simulated::Node& node = running->node();
  result.first_byte_ps = node.statistics().first_byte.ps;
  result.time_ps = node.now().ps - result.first_byte_ps;
  running->world().drain();
  result.packet_buffer_peak_bytes = node.nic().state().packet_buffer_peak;
  result.code_bytes = code_bytes_of(*running, loaded);
  uint64_t seed = config.ordering.seed;
  for (Peer& peer : running->peers()) {
    SPL_ASSIGN(PeerResult peer_result, result_of(config, peer, seed++));
    result.bytes += peer_result.size_bytes;
    result.packets += div_ceil(peer_result.size_bytes, static_cast<int64_t>(config.payload_bytes));
    result.peers.push_back(std::move(peer_result));
  }
  return result;
}

}  // namespace spinloom::app
