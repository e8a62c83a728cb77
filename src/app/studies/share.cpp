#include "app/studies/share.hpp"

#include <utility>

#include "app/studies/calibrate.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

constexpr uint32_t receiving_rank = 1;

Status check_epsilon(const strategies::TypeAttributes& attributes) {
  if (!attributes.epsilon || (attributes.epsilon->numerator > 0 && attributes.epsilon->denominator > 0)) return {};
  return fail(Code::invalid, "epsilon is ", attributes.epsilon->numerator, "/", attributes.epsilon->denominator,
              ", it must be positive");
}

Result<strategies::HandlerCost> cost_of(const ShareConfig& config) {
  if (!strategies::uses_checkpoints(config.strategy)) return strategies::HandlerCost{};
  DdtConfig cell;
  static_cast<Setup&>(cell) = config;
  Result<strategies::HandlerCost> cost = calibrate(cell);
  if (cost) return cost;
  return fail(cost.error().code, "calibrating ", strategies::name_of(config.strategy), ": ", cost.error().message);
}

}  // namespace

const char* name_of(Served served) {
  switch (served) {
    case Served::prepared: return "prepared";
    case Served::hit: return "hit";
    case Served::fallback: return "fallback";
    case Served::host: return "host";
  }
  SPL_ASSERT(false, "served ", static_cast<int>(served));
}

Result<std::unique_ptr<Share>> Share::create(ShareConfig config) {
  if (!strategies::puts_on_nic(config.strategy)) {
    return fail(Code::unsupported, "strategy ", strategies::name_of(config.strategy),
                " keeps nothing in NIC memory that types could share");
  }
  std::unique_ptr<Share> share(new Share(std::move(config)));
  for (const SharedType& shared : share->config_.types) SPL_TRY(check_epsilon(shared.attributes));
  SPL_ASSIGN(share->messages_, messages_of(share->config_.types));
  SPL_TRY(share->build());
  return share;
}

Result<std::vector<strategies::Message>> messages_of(const std::vector<SharedType>& types) {
  std::vector<strategies::Message> messages;
  for (const SharedType& shared : types) {
    SPL_ASSIGN(const layout::Type type, layout::parse(shared.type));
    SPL_TRY(Destination::check_span(type, shared.count));
    SPL_ASSIGN(strategies::Message message, strategies::make_message(type, shared.count));
    if (message.bytes == 0) return fail(Code::unsupported, "a message has zero bytes: there is nothing to receive");
    messages.push_back(std::move(message));
  }
  return messages;
}

Status Share::build() {
  SPL_ASSIGN(const strategies::HandlerCost cost, cost_of(config_));
  SPL_ASSIGN(loaded_, load_images(config_.images));
  SPL_ASSIGN(world_, simulated::World::create(config_.profile, loaded_.images, world_options(config_)));
  sender_.emplace(world_->node(0));
  receiver_.emplace(world_->node(receiving_rank));
  SPL_ASSIGN(const nic::QueueId queue, receiver_->eq_alloc(cell_queue_slots));
  SPL_ASSIGN(portal_, receiver_->pt_alloc(queue));
  cache_.emplace(strategies::ReceiveCache::Nic{*receiver_, portal_, queue, loaded_.handlers, facts_of(config_), cost});
  return {};
}

Result<SharedMessage> Share::receive(size_t type) {
  SPL_ASSERT(type < messages_.size(), "type ", type, " of ", messages_.size());
  const strategies::Message& message = messages_[type];
  const SharedType& shared = config_.types[type];
  const uint64_t seed = config_.ordering.seed + received_++;  // every message has other bytes
  SPL_ASSIGN(Destination destination, Destination::create(message, seed));
  const std::vector<uint8_t> packed = random_bytes(seed, "app.message", static_cast<size_t>(message.bytes));

  const auto before = cache_->statistics();
  SPL_ASSIGN(const auto lease, cache_->acquire(message.type, message.count, config_.strategy, shared.attributes));
  const auto& after = cache_->statistics();
  Result<SharedMessage> result = run_message(lease, message, destination, packed);
  if (!result) return explain(result.error(), world_->node(receiving_rank));
  result->evictions = after.evictions - before.evictions;
  result->fallback = lease.fallback;
  if (!lease.fallback.empty()) {
    result->served = Served::fallback;
  } else if (!shared.attributes.offload) {
    result->served = Served::host;
  } else if (after.hits > before.hits) {
    result->served = Served::hit;
  } else if (lease.receive->plan()) {
    result->prepared_blocks = lease.receive->plan()->prepared_blocks;
  }
  result->nic_memory_bytes = lease.receive->nic_memory_bytes();
  cache_->give_back(lease);
  result->nic_memory_in_use = world_->node(receiving_rank).nic().state().nic_memory_used;

  SPL_TRY(destination.inject(config_.inject, message, seed));
  SPL_TRY(destination.check(message, packed));
  result->destination = destination.bytes();
  return result;
}

Result<SharedMessage> Share::run_message(const strategies::ReceiveCache::Lease& lease,
                                         const strategies::Message& message, Destination& destination,
                                         std::span<const uint8_t> packed) {
  simulated::Node& node = world_->node(receiving_rank);
  node.reset_statistics();
  SPL_TRY(lease.receive->post(destination.base(), cell_match_bits));
  portals::PutArguments put;
  put.local = packed.data();
  put.length = packed.size();
  put.target = node.rank();
  put.portal = portal_;
  put.match_bits = cell_match_bits;
  SPL_TRY(sender_->put(put));
  SPL_ASSIGN(const nic::Event event, lease.receive->finish());
  SharedMessage result;
  result.size_bytes = message.bytes;
  result.time_ps = (node.now() - node.statistics().first_byte).ps;
  log_event(result.event_log, result.time_ps, event);
  world_->drain();  // later work on this message must not touch memory of the next one
  return result;
}

}  // namespace spinloom::app
