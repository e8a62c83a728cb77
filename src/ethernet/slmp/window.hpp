// Window - how many packets may wait for their acknowledgements; and which window a receiver's buffer allows.
//
// Contract: a fixed window stays as its user set it, as FPsPIN's does. Any other begins with ten packets (RFC 6928), or
//   the user's window if that is smaller, and grows up to the user's window by one packet for each acknowledgement. A
//   loss halves it, and from then on it grows by one packet a round trip (RFC 5681). Packets that left before it was
//   halved do not halve it again.
// Invariants: (1) 1 <= packets() <= the user's window.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace spinloom::slmp {

class Window {
 public:
  static constexpr uint32_t packets_first = 10;

  Window(uint32_t most, bool fixed)
      : most_(std::max(most, 1U)), fixed_(fixed), packets_(fixed ? most_ : std::min(most_, packets_first)) {}

  [[nodiscard]] uint32_t packets() const { return packets_; }

  void on_acknowledgement() {
    if (fixed_ || packets_ == most_) return;
    if (packets_ >= slow_start_threshold_ && ++acknowledged_since_growth_ < packets_) return;
    acknowledged_since_growth_ = 0;
    ++packets_;
  }

  // `lost` is the number of the lost transmission, `next` that of the transmission to come.
  void on_loss(uint64_t lost, uint64_t next) {
    if (fixed_ || lost < halved_before_) return;
    halved_before_ = next;
    packets_ = std::max(packets_ / 2, 1U);
    slow_start_threshold_ = packets_;
    acknowledged_since_growth_ = 0;
  }

 private:
  uint32_t most_;
  bool fixed_;
  uint32_t packets_;  // the window now: cwnd of RFC 5681
  uint32_t slow_start_threshold_ = std::numeric_limits<uint32_t>::max();  // ssthresh of RFC 5681
  uint32_t acknowledged_since_growth_ = 0;
  uint64_t halved_before_ = 0;  // losses of earlier transmissions do not halve the window again
};

// Returns the window with which a sender just fills a receiver's buffer: S_wnd = S_recv * v_send / (v_send - v_recv)
// (FPsPIN, deliverable D4.7, section 4.4.2, equation 3), rounded down, in the unit of the buffer. Both rates are in one
// unit. Returns nothing if the receiver keeps up, so that no window is too large.
[[nodiscard]] inline std::optional<uint64_t> window_of(uint64_t receive_buffer, uint64_t send_rate,
                                                       uint64_t receive_rate) {
  if (send_rate <= receive_rate) return std::nullopt;
  const auto window = static_cast<unsigned __int128>(receive_buffer) * send_rate / (send_rate - receive_rate);
  constexpr auto most = std::numeric_limits<uint64_t>::max();
  return window > most ? most : static_cast<uint64_t>(window);
}

}  // namespace spinloom::slmp
