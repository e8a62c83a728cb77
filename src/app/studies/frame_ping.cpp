#include "app/studies/frame_ping.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/studies/frame_machine.hpp"
#include "app/studies/frame_packets.hpp"

namespace spinloom::app {
namespace {

// Not a whole number of turns of any host's polls, so that pings meet the host at different places.
constexpr Time ping_interval{1'000'037'000};

class PingRun final : public simulated::FrameHost, simulated::EventTarget {
 public:
  explicit PingRun(const PingConfig& config) : config_(config) {}

  Result<PingResult> run() {
    FrameMachineOptions options;
    options.rules = config_.udp ? "udp:7" : "icmp";
    if (config_.way == PingWay::nic) options.image = config_.image.empty() ? "frame_ping" : config_.image;
    if (config_.way == PingWay::both) {
      options.image = "frame_ping_host";
      options.state_bytes = sizeof(struct spl_host_data);
    }
    SPL_ASSIGN(machine_, FrameMachine::create(config_, *this, options));
    PingResult result;
    for (uint32_t ping = 0; ping < config_.pings; ++ping) {
      SPL_TRY(measure_ping(ping));
      result.round_trips_ps.push_back(round_trip_.ps);
    }
    const simulated::HandlerStatistics& ran = machine_->node().hpus().statistics(spin::HandlerKind::payload);
    result.handlers = ran.handlers;
    result.handler_cycles = ran.cycles;
    result.to_send_cycles = ran.first_call_cycles;
    return result;
  }

 private:
  enum Step : uint32_t { request_leaves, host_answers, poll_reads, checksum_done, call_done };

  Status measure_ping(uint32_t ping) {
    const std::vector<uint8_t> payload = random_bytes(config_.ordering.seed + ping, "app.ping", config_.payload_bytes);
    request_ = ping_frame(config_.udp ? protocol_udp : protocol_icmp, static_cast<uint16_t>(ping), payload);
    start_ = std::max(machine_->events().now(), ping_interval * static_cast<int64_t>(ping));
    answered_ = false;
    machine_->events().at(start_ + config_.far_stack_time, *this, request_leaves, 0);
    while (machine_->events().step()) {
    }
    SPL_TRY(machine_->check());
    if (!answered_) {
      return fail(Code::stalled, "ping ", ping, " of ", config_.payload_bytes,
                  " B has no answer: ", machine_->node().nic().describe_waiting());
    }
    answer_ping(request_);
    if (reply_ != request_) return fail(Code::mismatch, "the answer to ping ", ping, " has wrong bytes");
    return {};
  }

  void on_event(uint32_t code, uint64_t argument) override {
    const auto hpu = static_cast<uint32_t>(argument);
    switch (static_cast<Step>(code)) {
      case request_leaves: return machine_->node().send_from_far(request_);
      case host_answers: {
        answer_ping(stack_frame_);
        const bool taken = machine_->node().send_from_host(stack_frame_);
        SPL_ASSERT(taken, "one ping at a time");
        return;
      }
      case poll_reads: {
        const auto value = machine_->take_request(hpu);
        SPL_ASSERT(value.has_value(), "page ", hpu, " has a request");
        value_ = *value;
        const int64_t words = config_.udp ? 0 : div_ceil(int64_t{value_} - icmp_at, 2);
        machine_->events().at(machine_->events().now() + config_.word_time * words, *this, checksum_done, hpu);
        return;
      }
      case checksum_done:
        if (!config_.udp) update_ping_checksum({machine_->page(hpu) + SPL_HOST_PAGE_PAYLOAD, value_});
        machine_->events().at(machine_->events().now() + config_.call_time, *this, call_done, hpu);
        return;
      case call_done: return machine_->answer(hpu, value_);
    }
  }
  void on_far_frame(const simulated::FrameBytes& frame) override {
    reply_ = frame;
    answered_ = true;
    round_trip_ = machine_->events().now() + config_.far_stack_time - start_;
  }
  void on_stack_frame(const simulated::FrameBytes& frame) override {
    stack_frame_ = frame;
    machine_->events().at(machine_->events().now() + config_.host_answer_time, *this, host_answers, 0);
  }
  // The host's program reads page k at the times poll * (n * pages + k).
  void on_host_write(const uint8_t* host, uint64_t) override {
    const auto hpu = machine_->page_of_request(host);
    if (!hpu) return;
    const Time now = machine_->events().now();
    const int64_t turn = config_.poll_time.ps * machine_->pages();
    const int64_t phase = config_.poll_time.ps * *hpu;
    const int64_t read = turn == 0 ? now.ps : div_ceil(std::max<int64_t>(now.ps - phase, 0), turn) * turn + phase;
    machine_->events().at(Time{read} + config_.poll_time, *this, poll_reads, *hpu);
  }

  static constexpr int64_t icmp_at = sizeof(spl_eth_t) + sizeof(spl_ipv4_t);
  const PingConfig& config_;
  std::unique_ptr<FrameMachine> machine_;
  std::vector<uint8_t> request_, reply_, stack_frame_;
  Time start_{}, round_trip_{};
  bool answered_ = false;
  uint32_t value_ = 0;
};

}  // namespace

Result<PingWay> ping_way_named(std::string_view name) {
  if (name == "host") return PingWay::host;
  if (name == "nic") return PingWay::nic;
  if (name == "both") return PingWay::both;
  return fail(Code::invalid, "there is no way ", name, " to answer a ping; there are host, nic and both");
}

Result<PingResult> run_ping(const PingConfig& config) {
  constexpr uint32_t most = 1514 - sizeof(PingHeaders);
  if (config.payload_bytes > most) {
    return fail(Code::invalid, "a ping of ", config.payload_bytes, " B does not fit into a frame; at most ", most,
                " B");
  }
  PingRun run(config);
  return run.run();
}

}  // namespace spinloom::app
