#include "app/studies/mix.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "app/studies/calibrate.hpp"
#include "base/random.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

struct PlannedMessage {
  size_t type = 0;
  bool is_early = false;
  uint32_t tag = 0;
  std::vector<uint8_t> packed = {};
  std::optional<Destination> destination = {};
  strategies::RequestId request = {};
  Time start = {};  // the time when its put was posted; for an early one, later the time when its receive was posted
  MixedMessage result = {};
};

class Mix {
 public:
  explicit Mix(const MixConfig& config) : config_(config) {}

  Result<MixResult> run() {
    SPL_TRY(read_types());
    SPL_TRY(build());
    plan();
    for (size_t first = 0; first < planned_.size(); first += config_.at_once) {
      const Status status = run_window(first, std::min(first + config_.at_once, planned_.size()));
      if (!status) return explain(status.error(), node());
    }
    result_.statistics = inbox_->cache().statistics();
    const uint64_t left = node().nic().state().nic_memory_used;
    SPL_ASSERT(left == 0, left, " B of NIC memory are held after all types were freed");
    return std::move(result_);
  }

 private:
  [[nodiscard]] simulated::Node& node() { return world_->node(receiving_rank); }

  Status read_types() {
    if (config_.types.empty()) return fail(Code::invalid, "a mix has at least one type");
    if (config_.at_once == 0) return fail(Code::invalid, "at least one receive is under way at a time");
    if (config_.early_denominator == 0 || config_.early_numerator > config_.early_denominator) {
      return fail(Code::invalid, "the part of early messages is ", config_.early_numerator, "/",
                  config_.early_denominator, ", it must be from 0 to 1");
    }
    SPL_ASSIGN(messages_, messages_of(config_.types));
    return {};
  }

  Status build() {
    DdtConfig cell;
    static_cast<Setup&>(cell) = config_;
    SPL_ASSIGN(const strategies::HandlerCost cost, calibrate(cell));
    SPL_ASSIGN(loaded_, load_images(config_.images));
    SPL_ASSIGN(world_, simulated::World::create(config_.profile, loaded_.images, world_options(config_)));
    sender_.emplace(world_->node(0));
    receiver_.emplace(node());
    strategies::Inbox::Options options;
    options.strategy = config_.strategy;
    options.eager_bytes = 0;
    for (const strategies::Message& message : messages_) {
      options.eager_bytes = std::max(options.eager_bytes, static_cast<uint64_t>(message.bytes));
    }
    options.unexpected_blocks = config_.at_once + 1;
    options.unexpected_block_bytes = options.eager_bytes;
    SPL_ASSIGN(inbox_, strategies::Inbox::create({*receiver_, loaded_.handlers, facts_of(config_), cost}, options));
    for (size_t type = 0; type < messages_.size(); ++type) {
      SPL_ASSIGN(const strategies::TypeId made, inbox_->commit(messages_[type].type, config_.types[type].attributes));
      types_.push_back(made);
    }
    result_.nic_bytes.resize(messages_.size());
    return {};
  }

  void plan() {
    Random random(config_.ordering.seed, "app.mix");
    for (uint64_t round = 0; round < config_.rounds; ++round) {
      for (size_t type = 0; type < messages_.size(); ++type) planned_.push_back({.type = type});
    }
    for (size_t i = planned_.size(); i > 1; --i) std::swap(planned_[i - 1].type, planned_[random.below(i)].type);
    for (size_t i = 0; i < planned_.size(); ++i) {
      planned_[i].is_early = random.below(config_.early_denominator) < config_.early_numerator;
      planned_[i].tag = static_cast<uint32_t>(i);
    }
  }

  Status run_window(size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) SPL_TRY(prepare(planned_[i]));
    for (size_t i = first; i < end; ++i) {
      if (!planned_[i].is_early) continue;
      node().reset_statistics();
      SPL_TRY(put(planned_[i]));
      world_->drain();
      planned_[i].result.landing_ps = (node().statistics().data_landed - planned_[i].start).ps;
    }
    for (size_t i = first; i < end; ++i) {
      if (!planned_[i].is_early) continue;
      node().reset_statistics();
      planned_[i].start = node().now();
      SPL_TRY(post(planned_[i]));
      SPL_TRY(wait(planned_[i]));
      planned_[i].result.host_busy_ps = node().statistics().host_busy.ps;
    }
    for (size_t i = first; i < end; ++i) {
      if (!planned_[i].is_early) SPL_TRY(post(planned_[i]));
    }
    if (end == planned_.size()) {
      for (const strategies::TypeId type : types_) SPL_TRY(inbox_->free(type));
    }
    for (size_t i = first; i < end; ++i) {
      if (!planned_[i].is_early) SPL_TRY(put(planned_[i]));
    }
    for (size_t i = first; i < end; ++i) {
      if (!planned_[i].is_early) SPL_TRY(wait(planned_[i]));
    }
    world_->drain();  // later work on these messages must not touch memory of the next ones
    for (size_t i = first; i < end; ++i) SPL_TRY(check(planned_[i]));
    return {};
  }

  Status prepare(PlannedMessage& planned) {
    const uint64_t seed = config_.ordering.seed + planned.tag;  // every message has other bytes
    const strategies::Message& message = messages_[planned.type];
    SPL_ASSIGN(planned.destination, Destination::create(message, seed));
    planned.packed = random_bytes(seed, "app.message", static_cast<size_t>(message.bytes));
    planned.result.type = planned.type;
    return {};
  }

  Status put(PlannedMessage& planned) {
    portals::PutArguments put;
    put.local = planned.packed.data();
    put.length = planned.packed.size();
    put.target = node().rank();
    put.portal = inbox_->portal();
    put.match_bits = wanted(planned).match_bits();
    put.event_send_disable = true;
    planned.start = node().now();
    return sender_->put(put);
  }

  Status post(PlannedMessage& planned) {
    SPL_ASSIGN(planned.request, inbox_->post(planned.destination->base(), messages_[planned.type].count,
                                             types_[planned.type], wanted(planned)));
    const uint64_t used = node().nic().state().nic_memory_used;
    result_.nic_memory_peak_bytes = std::max(result_.nic_memory_peak_bytes, used);
    uint64_t& most = result_.nic_bytes[planned.type];
    most = std::max(most, inbox_->nic_memory_bytes(planned.request));
    return {};
  }

  Status wait(PlannedMessage& planned) {
    SPL_ASSIGN(planned.result.completion, inbox_->wait(planned.request));
    planned.result.time_ps = (planned.result.completion.completed_at - planned.start).ps;
    return {};
  }

  Status check(PlannedMessage& planned) {
    const strategies::Message& message = messages_[planned.type];
    const strategies::Completion& completion = planned.result.completion;
    if (completion.truncated || completion.bytes != planned.packed.size() || completion.tag != planned.tag) {
      return fail(Code::mismatch, "message ", planned.tag, " of ", planned.packed.size(), " B completes with tag ",
                  completion.tag, " and ", completion.bytes, " B");
    }
    SPL_TRY(planned.destination->inject(config_.inject, message, config_.ordering.seed + planned.tag));
    SPL_TRY(planned.destination->check(message, planned.packed));
    const std::vector<uint8_t>& bytes = planned.destination->bytes();
    result_.destinations.insert(result_.destinations.end(), bytes.begin(), bytes.end());
    result_.messages.push_back(std::move(planned.result));
    planned.destination.reset();
    planned.packed = {};
    return {};
  }

  static constexpr uint32_t receiving_rank = 1;
  static constexpr uint32_t communicator = 1;
  static strategies::Envelope wanted(const PlannedMessage& planned) {
    return {nic::Rank{0}, planned.tag, communicator};
  }

  const MixConfig& config_;
  LoadedImages loaded_;
  std::vector<strategies::Message> messages_;  // one for each type
  std::unique_ptr<simulated::World> world_;
  std::optional<portals::Interface> sender_;
  std::optional<portals::Interface> receiver_;
  std::unique_ptr<strategies::Inbox> inbox_;
  std::vector<strategies::TypeId> types_;
  std::vector<PlannedMessage> planned_;
  MixResult result_;
};

}  // namespace

Result<MixResult> run_mix(const MixConfig& config) { return Mix(config).run(); }

}  // namespace spinloom::app
