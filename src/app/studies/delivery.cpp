#include "app/studies/delivery.hpp"

#include <memory>
#include <utility>

#include "app/measure/destination.hpp"
#include "app/studies/calibrate.hpp"
#include "app/studies/ddt.hpp"
#include "memory/layout/text.hpp"
#include "portals/strategies/asking_send.hpp"
#include "portals/strategies/pack.hpp"

namespace spinloom::app {
namespace {

class Delivery {
 public:
  explicit Delivery(const DeliveryConfig& config) : config_(config) {}

  Result<DeliveryResult> run() {
    SPL_TRY(build());
    Result<DeliveryResult> result = transfer();
    if (!result) return explain(result.error(), world_->node(receiving_rank));
    return result;
  }

 private:
  static constexpr uint32_t receiving_rank = 1;
  static constexpr uint32_t request_number = 5;  // the request's
  static constexpr uint32_t tag = 9;

  Status build() {
    SPL_ASSIGN(sent_, message_of(config_.sent, config_.sent_count));
    SPL_ASSIGN(received_, message_of(config_.received, config_.received_count));
    if (sent_->bytes != received_->bytes || sent_->bytes == 0) {
      return fail(Code::invalid, "the sent type has ", sent_->bytes, " B, the received one ", received_->bytes, " B");
    }
    SPL_TRY(Destination::check_span(received_->type, received_->count));
    SPL_TRY(Destination::check_span(sent_->type, sent_->count));
    strategies::HandlerCost cost;
    if (!config_.strategy || strategies::uses_checkpoints(*config_.strategy)) {
      DdtConfig cell;
      static_cast<Setup&>(cell) = config_;
      SPL_ASSIGN(cost, calibrate(cell));
    }
    SPL_ASSIGN(loaded_, load_images(config_.images));
    SPL_ASSIGN(world_, simulated::World::create(config_.profile, loaded_.images, world_options(config_)));
    strategies::Inbox::Options options;
    options.strategy = config_.strategy;
    options.eager_bytes = config_.asks ? 1 : static_cast<uint64_t>(sent_->bytes);
    options.unexpected_block_bytes = options.eager_bytes + 64;
    for (uint32_t rank = 0; rank < 2; ++rank) {  // each process has one, so that portals have the same numbers
      hosts_[rank].emplace(world_->node(rank));
      SPL_ASSIGN(inboxes_[rank],
                 strategies::Inbox::create({*hosts_[rank], loaded_.handlers, facts_of(config_), cost}, options));
    }
    return {};
  }

  static Result<std::optional<strategies::Message>> message_of(const std::string& text_form, int64_t count) {
    SPL_ASSIGN(const layout::Type type, layout::parse(text_form));
    SPL_ASSIGN(strategies::Message message, strategies::make_message(type, count));
    return std::optional<strategies::Message>(std::move(message));
  }

  // Fills the sender's memory, and packed_ with the bytes of its message.
  Status fill_source() {
    const uint64_t seed = config_.ordering.seed;
    packed_ = random_bytes(seed, "app.message", static_cast<size_t>(sent_->bytes));
    source_ = random_bytes(seed, "app.source", static_cast<size_t>(sent_->reach.last - sent_->reach.first));
    SPL_TRY(layout::oracle::pack(sent_->type, sent_->count, reinterpret_cast<const std::byte*>(source()),
                                 std::as_writable_bytes(std::span(packed_))));
    return {};
  }
  [[nodiscard]] const uint8_t* source() const { return source_.data() - sent_->reach.first; }

  Status prepare_send() {
    const strategies::NicFacts facts = facts_of(config_);
    if (config_.asks) {
      SPL_ASSIGN(asking_send_, strategies::AskingSend::prepare(*hosts_[0], inboxes_[0]->portal(), loaded_.handlers,
                                                               config_.send, *sent_, facts, source(), request_number));
      return {};
    }
    SPL_ASSIGN(departures_, hosts_[0]->eq_alloc(cell_queue_slots));
    if (sent_->blocks == 1) return {};  // a put takes the one block from the sender's memory
    SPL_ASSIGN(plain_send_,
               strategies::Send::prepare(*hosts_[0], departures_, loaded_.handlers, config_.send, *sent_, facts));
    return {};
  }

  Status start() {
    const nic::Rank target{receiving_rank};
    if (config_.asks) return asking_send_->start(target, wanted().match_bits());
    portals::PutArguments put;
    put.target = target;
    put.portal = inboxes_[receiving_rank]->portal();
    put.match_bits = wanted().match_bits();
    if (plain_send_) return plain_send_->start(source(), put);
    put.local = source_.data();
    put.length = source_.size();
    put.queue = departures_;
    SPL_TRY(hosts_[0]->host_work(strategies::post_work(/*walked_blocks=*/0)));
    return hosts_[0]->put(put);
  }

  Status finish_send() {
    if (config_.asks) return asking_send_->finish();
    const auto finished = plain_send_ ? plain_send_->finish() : hosts_[0]->eq_wait(departures_);
    return finished ? Status() : Status(finished.error());
  }

  [[nodiscard]] strategies::Envelope wanted() const {
    return {config_.any_source ? nic::Rank::any() : nic::Rank{0}, tag, 0};
  }

  Result<DeliveryResult> transfer() {
    SPL_TRY(fill_source());
    SPL_ASSIGN(Destination destination, Destination::create(*received_, config_.ordering.seed));
    strategies::Inbox& inbox = *inboxes_[receiving_rank];
    SPL_ASSIGN(const strategies::TypeId type, inbox.commit(received_->type));
    SPL_TRY(prepare_send());
    simulated::Node& receiver = world_->node(receiving_rank);
    const auto post = [&] { return inbox.post(destination.base(), received_->count, type, wanted()); };
    std::optional<strategies::RequestId> request;
    if (!config_.late) {
      SPL_ASSIGN(request, post());
    }
    world_->drain();
    world_->node(0).reset_statistics();
    receiver.reset_statistics();
    const Time call_time = receiver.now();
    SPL_TRY(start());
    DeliveryResult result;
    Time time_from = call_time;
    if (config_.late) {
      world_->drain();
      result.landing_ps = (receiver.statistics().data_landed - call_time).ps;
      time_from = receiver.now();
      SPL_ASSIGN(request, post());
    }
    SPL_ASSIGN(result.completion, inbox.wait(*request));
    result.time_ps = (result.completion.completed_at - time_from).ps;
    SPL_TRY(finish_send());
    result.sent_ps = (world_->node(0).now() - call_time).ps;
    world_->drain();
    result.size_bytes = received_->bytes;
    result.sender_busy_ps = world_->node(0).statistics().host_busy.ps;
    result.receiver_busy_ps = receiver.statistics().host_busy.ps;
    if (result.completion.bytes != packed_.size() || result.completion.truncated || result.completion.tag != tag ||
        result.completion.source != nic::Rank{0}) {
      return fail(Code::mismatch, "a message of ", packed_.size(), " B with tag ", tag, " completes with ",
                  result.completion.bytes, " B and tag ", result.completion.tag);
    }
    if (asking_send_) SPL_TRY(asking_send_->release());
    if (plain_send_) SPL_TRY(plain_send_->release());
    SPL_TRY(inbox.free(type));
    SPL_TRY(destination.inject(config_.inject, *received_, config_.ordering.seed));
    SPL_TRY(destination.check(*received_, packed_));
    result.destination = destination.bytes();
    return result;
  }

  const DeliveryConfig& config_;
  std::optional<strategies::Message> sent_;
  std::optional<strategies::Message> received_;
  LoadedImages loaded_;
  std::unique_ptr<simulated::World> world_;
  std::optional<portals::Interface> hosts_[2];
  std::unique_ptr<strategies::Inbox> inboxes_[2];
  std::unique_ptr<strategies::AskingSend> asking_send_;
  std::unique_ptr<strategies::Send> plain_send_;
  nic::QueueId departures_;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> packed_;
};

}  // namespace

Result<DeliveryResult> deliver(const DeliveryConfig& config) { return Delivery(config).run(); }

}  // namespace spinloom::app
