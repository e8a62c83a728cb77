#include "app/studies/frame_slmp.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "app/studies/frame_machine.hpp"
#include "app/studies/frame_packets.hpp"
#include "memory/layout/oracle.hpp"
#include "spinloom/ddt.h"
#include "spinloom/segment.h"

namespace spinloom::app {
namespace {

constexpr Time give_up_time{2'000'000'000'000};
constexpr int64_t guard = DdtContext::guard;

template <class Integer>
Integer round_up(Integer value, Integer step) {
  return (value + step - 1) / step * step;
}

class SlmpRun final : public simulated::FrameHost, simulated::EventTarget {
 public:
  SlmpRun(const SlmpConfig& config, strategies::Message message)
      : config_(config), message_(std::move(message)), threads_(config.messages) {}

  Result<SlmpResult> run() {
    SPL_TRY(set_up());
    for (uint32_t thread = 0; thread < config_.messages; ++thread) {
      events().at(config_.ready_time, *this, thread_steps, thread);
    }
    events().at(config_.compute_time, *this, host_poll_begins, 0);
    result_.compute_ps = config_.compute_time.ps;
    result_.bytes = static_cast<uint64_t>(message_.bytes) * config_.messages;
    while (!is_over_ && events().step()) {
    }
    const Time end = events().now();
    while (events().step()) {
    }
    SPL_TRY(machine_->check());
    frames::Nic& nic = machine_->node().nic();
    result_.lost = nic.count(frames::Count::dropped_full) + nic.count(frames::Count::spilled);
    const simulated::HandlerStatistics& ran = machine_->node().hpus().statistics(spin::HandlerKind::payload);
    result_.handlers = ran.handlers;
    result_.handler_cycles = ran.cycles;
    result_.handler_cycles_max = ran.cycles_max;
    if (result_.lost > 0) return result_;
    if (finished_messages_ < config_.messages) {
      return fail(Code::stalled, finished_messages_, " of ", config_.messages, " messages have ended, and ",
                  nic.describe_waiting());
    }
    SPL_TRY(compare());
    result_.compared = true;
    result_.time_ps = end.ps;
    return result_;
  }

 private:
  enum Step : uint32_t { thread_steps, leaves, ack_seen, host_poll_begins, host_poll_ends };
  struct Thread {
    std::vector<uint8_t> packed;
    uint32_t sent_bytes = 0;
    uint32_t packets_in_flight = 0;
    uint32_t acks_seen = 0;  // acknowledgements that the thread can read
    bool first_acknowledged = false;
    bool has_ended = false;
    Time last_progress{};  // the time when it has last sent, or read an acknowledgement
  };

  simulated::EventQueue& events() { return machine_->events(); }

  Status set_up() {
    const auto hpus = static_cast<uint64_t>(config_.profile.hpu.count);
    SPL_ASSIGN(const DdtContext context, ddt_context(message_, config_.messages, hpus * SPL_HOST_PAGE_BYTES, false));
    stride_ = static_cast<int64_t>(context.host_bytes);
    FrameMachineOptions options;
    options.image = config_.image;
    options.rules = "slmp";
    options.constants = context.constants;
    options.state_bytes = context.state_bytes;
    options.buffer_bytes = context.host_bytes * config_.messages;
    SPL_ASSIGN(machine_, FrameMachine::create(config_, *this, options));
    buffers_before_ = random_bytes(config_.ordering.seed, "app.slmp.host", options.buffer_bytes);
    std::copy(buffers_before_.begin(), buffers_before_.end(), machine_->memory().data() + machine_->buffers_offset());
    for (uint32_t i = 0; i < config_.messages; ++i) {
      const auto bytes = static_cast<size_t>(message_.bytes);
      threads_[i].packed = random_bytes(config_.ordering.seed + i, "app.slmp", bytes);
    }
    return {};
  }

  Status compare() {
    const std::span<const uint8_t> after{machine_->memory().data() + machine_->buffers_offset(),
                                         buffers_before_.size()};
    for (uint32_t i = 0; i < config_.messages; ++i) {
      const auto at = static_cast<size_t>(stride_) * i;
      const auto length = static_cast<size_t>(stride_);
      const Status same =
          layout::oracle::compare_over(message_.type, message_.count, std::as_bytes(std::span(threads_[i].packed)),
                                       std::as_bytes(after.subspan(at, length)), guard - message_.reach.first,
                                       std::as_writable_bytes(std::span(buffers_before_).subspan(at, length)));
      if (!same) return fail(same.error().code, "message ", i, ": ", same.error().message);
    }
    return {};
  }

  void on_event(uint32_t code, uint64_t argument) override {
    const auto index = static_cast<uint32_t>(argument);
    switch (static_cast<Step>(code)) {
      case thread_steps: return step_thread(index);
      case leaves: {
        result_.slots_peak = std::max(result_.slots_peak, machine_->node().nic().state().packets);
        std::vector<uint8_t> frame = std::move(leaving_frames_[index]);
        leaving_frames_.give_back(index);
        return machine_->node().send_from_far(std::move(frame));
      }
      case ack_seen: ++threads_[index].acks_seen; return;
      case host_poll_begins: return begin_host_poll();
      case host_poll_ends: return end_host_poll();
    }
  }

  void step_thread(uint32_t index) {
    Thread& thread = threads_[index];
    const Time now = events().now();
    const auto bytes = static_cast<uint32_t>(message_.bytes);
    const auto may_send = [&] {
      return thread.sent_bytes < bytes && thread.packets_in_flight < (thread.first_acknowledged ? config_.window : 1);
    };
    if (!may_send() && thread.acks_seen > 0) {
      thread.packets_in_flight -= thread.acks_seen;
      thread.acks_seen = 0;
      thread.first_acknowledged = true;
      thread.last_progress = now;
    }
    if (may_send()) return send(index);
    if (thread.packets_in_flight == 0 || now - thread.last_progress > give_up_time) {
      thread.has_ended = true;
      return;
    }
    ++result_.sleeps;
    events().at(now + config_.sleep_time, *this, thread_steps, index);
  }

  void send(uint32_t index) {
    Thread& thread = threads_[index];
    const auto bytes = static_cast<uint32_t>(message_.bytes);
    const uint32_t length = std::min(config_.packet_bytes, bytes - thread.sent_bytes);
    const bool last = thread.sent_bytes + length == bytes;
    const auto flags = static_cast<uint16_t>(SPL_SLMP_SYN | (last ? SPL_SLMP_EOM : 0));
    const uint32_t slot = leaving_frames_.take(
        slmp_frame(index, thread.sent_bytes, flags, std::span(thread.packed).subspan(thread.sent_bytes, length)));
    thread.sent_bytes += length;
    ++thread.packets_in_flight;
    ++result_.packets;
    const Time done = events().now() + config_.send_time;
    thread.last_progress = done;
    events().at(done + config_.far_stack_time, *this, leaves, slot);
    events().at(done, *this, thread_steps, index);
  }

  void on_far_frame(const simulated::FrameBytes& frame) override {
    const auto headers = headers_of<SlmpHeaders>(frame);
    SPL_ASSERT(frame.size() == sizeof headers && headers.slmp.flags == spl_net16(SPL_SLMP_ACK), "no acknowledgement");
    SPL_ASSERT(headers.slmp.message < config_.messages, "message ", headers.slmp.message);
    ++result_.acks;
    if (result_.acks == 2) result_.ack_second_ps = events().now().ps;
    result_.ack_last_ps = events().now().ps;
    events().at(events().now() + config_.far_stack_time, *this, ack_seen, headers.slmp.message);
  }
  void on_stack_frame(const simulated::FrameBytes&) override {}  // spilled: counted by the NIC
  void on_host_write(const uint8_t*, uint64_t) override { ++result_.pieces; }

  void begin_host_poll() {
    if (is_over_) return;
    const Time turn{config_.poll_time.ps * machine_->pages()};
    ++result_.polls;
    result_.poll_ps += turn.ps;
    events().at(events().now() + turn, *this, host_poll_ends, 0);
  }

  void end_host_poll() {
    Time answers{};
    for (uint32_t hpu = 0; hpu < machine_->pages(); ++hpu) {
      const auto message = machine_->take_request(hpu);
      if (!message) continue;
      ++finished_messages_;
      answers += config_.call_time;
      machine_->answer(hpu, *message);
    }
    const bool all_ended =
        std::all_of(threads_.begin(), threads_.end(), [](const Thread& each) { return each.has_ended; });
    is_over_ = finished_messages_ == config_.messages || (all_ended && machine_->node().nic().state().hers == 0);
    if (is_over_) return;
    result_.poll_ps += answers.ps;
    result_.compute_ps += config_.compute_time.ps;
    events().at(events().now() + answers + config_.compute_time, *this, host_poll_begins, 0);
  }

  const SlmpConfig& config_;
  const strategies::Message message_;
  std::vector<Thread> threads_;
  std::unique_ptr<FrameMachine> machine_;
  std::vector<uint8_t> buffers_before_;  // the contents of the buffers at the beginning
  int64_t stride_ = 0;
  spin::Slab<std::vector<uint8_t>> leaving_frames_;
  uint32_t finished_messages_ = 0;
  bool is_over_ = false;
  SlmpResult result_;
};

}  // namespace

Result<DdtContext> ddt_context(const strategies::Message& message, uint32_t messages, uint64_t rooms_offset,
                               bool notices) {
  constexpr int64_t bytes_max = 1 << 28;
  const int64_t span = message.reach.last - message.reach.first;
  if (message.bytes == 0 || message.bytes > bytes_max || span > bytes_max) {
    return fail(Code::overflow, "a message of ", message.bytes, " B; it must have data, and at most ", bytes_max, " B");
  }
  const auto blob = message.blob.bytes();
  if (!spl_layout_narrow(blob.data())) {
    return fail(Code::unsupported, "the message's program is of the wide form, the handlers walk narrow ones");
  }
  DdtContext context;
  context.rooms_offset = rooms_offset;
  context.host_bytes = static_cast<uint64_t>(round_up(span + 2 * guard, guard));
  if (rooms_offset + context.host_bytes * messages > UINT32_MAX) {
    return fail(Code::overflow, messages, " messages of ", context.host_bytes,
                " B; handlers reach 4 GiB of host memory");
  }
  spl_ddt_frames constants{};
  constants.blob_offset = sizeof constants;
  constants.message_bytes = round_up(spl_segment_bytes(blob.data()), 8u);
  constants.host_offset = static_cast<uint32_t>(rooms_offset + DdtContext::guard);
  constants.host_bytes = static_cast<uint32_t>(context.host_bytes);
  constants.messages = messages;
  constants.notices = notices;
  context.constants.resize(sizeof constants + blob.size());
  std::memcpy(context.constants.data(), &constants, sizeof constants);
  std::memcpy(context.constants.data() + sizeof constants, blob.data(), blob.size());
  context.state_bytes = sizeof(struct spl_host_data) + uint64_t{messages} * constants.message_bytes;
  return context;
}

Result<SlmpResult> run_slmp(const SlmpConfig& config) {
  if (config.messages == 0 || config.messages > config.profile.scheduler.messages) {
    return fail(Code::invalid, "there are ", config.messages, " messages; the NIC has ",
                config.profile.scheduler.messages, " queues for them (scheduler.messages)");
  }
  constexpr uint32_t most = 1514 - sizeof(SlmpHeaders);
  if (config.window == 0 || config.packet_bytes == 0 || config.packet_bytes > most) {
    return fail(Code::invalid, "a window of ", config.window, " packets of ", config.packet_bytes,
                " B; there must be a packet, of at most ", most, " B");
  }
  if (config.poll_time.ps <= 0) return fail(Code::invalid, "the host's poll of a page must take time");
  SPL_ASSIGN(strategies::Message message, strategies::make_message(config.type, config.count));
  SlmpRun run(config, std::move(message));
  return run.run();
}

}  // namespace spinloom::app
