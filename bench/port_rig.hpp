// PortRig - the common parts of benches of frame ports: a frame, a plain forward loop, and how to give up.
//
// Threads: one owner. Time: none of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ethernet/port/frame_port.hpp"
#include "nic/packet/build.hpp"

namespace spinloom::port::bench {

constexpr size_t batch_frames = 64;
constexpr size_t waiting_frames = 1500;  // the number of frames that a ring takes

[[noreturn]] inline void give_up(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(3);
}

template <class Value>
Value value_or_exit(Result<Value> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

inline packet::FrameBytes frame_of(size_t frame_bytes, const packet::MacAddress& target) {
  const packet::Endpoints ends{{{2, 0, 0, 0, 0, 9}}, target, {0x0a000001}, {0x0a000002}};
  return packet::udp_frame(ends, 4000, 9330, packet::FrameBytes(frame_bytes - 42, 7));
}

// Takes each frame and sends it back to where it came from.
class Forwarder {
 public:
  Forwarder(FramePort& port, bool sends_back)
      : port_(port), sends_back_(sends_back), frame_memory_(batch_frames * port.frame_bytes_max()) {}

  // Returns how many frames came.
  size_t forward_batch() {
    const size_t count = value_or_exit(port_.receive(frames_));
    if (!sends_back_) return count;
    for (size_t i = 0; i < count; ++i) {
      uint8_t* const frame = frame_memory_.data() + i * port_.frame_bytes_max();
      std::copy(frames_[i].begin(), frames_[i].end(), frame);
      packet::store_mac(frame, packet::load_mac(frames_[i].data() + 6));
      packet::store_mac(frame + 6, port_.mac());
      answers_[i] = {frame, frames_[i].size()};
    }
    for (size_t sent = 0; sent < count;)
      sent += value_or_exit(port_.send(std::span(answers_).subspan(sent, count - sent)));
    return count;
  }

 private:
  FramePort& port_;
  bool sends_back_;
  std::vector<uint8_t> frame_memory_;
  std::array<Bytes, batch_frames> frames_{};
  std::array<Bytes, batch_frames> answers_{};
};

}  // namespace spinloom::port::bench
