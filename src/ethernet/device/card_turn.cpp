// The loop: frames in, what follows, frames out.
#include <poll.h>

#include <array>

#include "ethernet/device/card.hpp"
#include "live/node/hpu_pool.hpp"

namespace spinloom::ethernet {
namespace {

spin::PayloadRef reference(Bytes bytes) {
  spin::PayloadRef out;
  out.space = spin::PayloadRef::Space::local;
  out.bytes = bytes.data();
  out.length = bytes.size();
  return out;
}

}  // namespace

Result<bool> Card::turn() {
  bool moved = false;
  SPL_TRY(take_from_wire(moved));
  if (host_ != nullptr && host_frames_in_nic_ == 0) SPL_TRY(take_from_host(moved));
  while (!egress_.empty() && flush_wire()) {
    run_handlers();
    moved = true;
  }
  if (host_callback_) host_callback_();  // no frame that may leave waits for it
  if (port_error_) return *port_error_;
  return moved;
}

Status Card::take_from_wire(bool& moved) {
  stages_.enter(Stage::receive);
  const auto received = wire_->receive(batch_);
  if (!received || *received == 0) {
    stages_.enter(Stage::waiting);
    return received ? Status{} : Status(received.error());
  }
  moved = true;
  stages_.count(Stage::receive, *received);
  const uint64_t matched = nic_->count(frames::Count::matched);
  stages_.enter(Stage::match);
  for (size_t i = 0; i < *received; ++i) nic_->on_frame(reference(batch_[i]), actions_);
  stages_.count(Stage::match, *received);
  stages_.enter(Stage::store);
  perform();
  stages_.count(Stage::store, nic_->count(frames::Count::matched) - matched);
  run_handlers();
  flush_host();  // frames that no rule set takes lie in the port's memory until the next receive()
  stages_.enter(Stage::waiting);
  return {};
}

Status Card::take_from_host(bool& moved) {
  stages_.enter(Stage::from_host);
  const auto received = host_->receive(batch_);
  if (received && *received > 0) {
    moved = true;
    stages_.count(Stage::from_host, *received);
    host_frames_in_nic_ = static_cast<uint32_t>(*received);
    for (const Bytes bytes : std::span(batch_).first(*received)) {
      const bool taken = nic_->on_host_frame(reference(bytes), 0, actions_);
      SPL_ASSERT(taken, "a batch of the host is larger than what the NIC holds for it");
    }
    perform();
  }
  stages_.enter(Stage::waiting);
  return received ? Status{} : Status(received.error());
}

// Gives the port the frames that it takes, and tells the engine which have left. Returns true if any has left.
bool Card::flush_wire() {
  if (egress_.empty() || port_error_) return false;
  const Stage before = stages_.enter(Stage::transmit);
  const auto sent = wire_->send(egress_bytes_);
  if (!sent) port_error_ = sent.error();
  const size_t count = sent ? *sent : 0;
  for (size_t i = 0; i < count; ++i) {
    const frames::EgressFrame frame = egress_[i];
    finish_egress(frame, true);
  }
  egress_.erase(egress_.begin(), egress_.begin() + static_cast<ptrdiff_t>(count));
  egress_bytes_.erase(egress_bytes_.begin(), egress_bytes_.begin() + static_cast<ptrdiff_t>(count));
  stages_.count(Stage::transmit, count);
  perform();
  stages_.enter(before);
  return count > 0;
}

void Card::flush_host() {
  if (to_host_.empty() || port_error_) return;
  const Stage before = stages_.enter(Stage::to_host);
  if (const auto arrival_ns = wire_->time_ns()) host_->set_time_ns(*arrival_ns);
  const auto sent = host_->send(to_host_);
  if (!sent) port_error_ = sent.error();
  const size_t count = sent ? *sent : 0;
  to_host_lost_ += to_host_.size() - count;
  stages_.count(Stage::to_host, count);
  to_host_.clear();
  stages_.enter(before);
}

bool Card::ended() const { return wire_->ended() && egress_.empty() && handlers_to_run_.empty(); }

void Card::wait(std::chrono::milliseconds limit) {
  std::array<pollfd, 8> watched{};
  nfds_t count = 0;
  const auto add = [&](const port::FramePort& port, bool sends) {
    if (port.descriptor() < 0) return;
    watched[count++] = {port.descriptor(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0};
  };
  add(*wire_, !egress_.empty());
  if (host_ != nullptr) add(*host_, false);
  for (const int descriptor : watched_) {
    if (count < watched.size()) watched[count++] = {descriptor, POLLIN, 0};
  }
  if (count > 0) (void)poll(watched.data(), count, static_cast<int>(limit.count()));
}

Status Card::run(const std::function<bool()>& go_on) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds ask_interval{20};
  const std::chrono::nanoseconds patience = live::HpuPoolOptions::spin_by_default();
  Clock::time_point last_asked = Clock::now();
  std::optional<Clock::time_point> idle_since;
  for (uint32_t turns = 0; turns == 0 || !ended(); ++turns) {
    SPL_ASSIGN(const bool moved, turn());
    if (moved) {
      idle_since.reset();
      if (turns % 64 != 0) continue;
    }
    Clock::time_point now = Clock::now();
    if (!moved) {
      if (!idle_since) idle_since = now;
      if (now - *idle_since >= patience) {
        wait(ask_interval);
        now = Clock::now();
      }
    }
    if (now - last_asked < ask_interval) continue;
    last_asked = now;
    if (!go_on()) break;
  }
  return {};
}

}  // namespace spinloom::ethernet
