// Egress - frames that wait for the wire: those of handlers and those of the host, in turn.
//
// Contract: add_handler() and add_host() queue a frame; next() gives the frame that may leave now, finish() says that
//   it has been read, or that the wire did not take it. At most `depth` frames are between next() and finish().
//   Handlers come first, or both take turns. Source: FPsPIN, deliverable D4.7, section 4.2.4: priority by default,
//   round robin as an option.
// Invariants: (1) frames of one source leave in the order in which they were added; (2) a host frame is refused, not
//   queued, when `host_frames` wait, so that its driver can hold it back.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <optional>

#include "nic/spin/fifo.hpp"
#include "nic/spin/ids.hpp"
#include "nic/spin/payload.hpp"

namespace spinloom::frames {

enum class Arbitration : uint8_t { handlers_first, round_robin };

struct EgressFrame {
  spin::DmaId dma;  // the send of a handler; none: the frame is the host's
  uint64_t host_token = 0;  // the driver's name for a frame of the host
  spin::PayloadRef bytes;
};

class Egress {
 public:
  Egress(Arbitration arbitration, uint32_t depth, uint32_t host_frames)
      : arbitration_(arbitration), depth_(depth), host_frames_(host_frames) {}

  void add_handler(const EgressFrame& frame) { handlers_.push(frame); }
  [[nodiscard]] bool add_host(const EgressFrame& frame) {
    if (host_.size() >= host_frames_) return false;
    host_.push(frame);
    return true;
  }
  [[nodiscard]] std::optional<EgressFrame> next() {
    if (under_way_ >= depth_ || (handlers_.empty() && host_.empty())) return std::nullopt;
    const bool host_turn = arbitration_ == Arbitration::round_robin && !host_was_last_;
    const bool takes_host = handlers_.empty() || (host_turn && !host_.empty());
    ++under_way_;
    host_was_last_ = takes_host;
    return takes_host ? host_.pop() : handlers_.pop();
  }
  void finish() {
    SPL_ASSERT(under_way_ > 0);
    --under_way_;
  }

  [[nodiscard]] size_t waiting() const { return handlers_.size() + host_.size(); }
  [[nodiscard]] uint32_t under_way() const { return under_way_; }

  // Throws InternalError if more frames leave or wait than may, or if one waits that may leave. For tests.
  void check_invariants() const {
    SPL_ASSERT(host_.size() <= host_frames_, host_.size(), " frames of the host wait, of at most ", host_frames_);
    SPL_ASSERT(under_way_ == depth_ || (under_way_ < depth_ && waiting() == 0), waiting(), " frames wait, and ",
               under_way_, " of at most ", depth_, " are under way");
  }

 private:
  Arbitration arbitration_;
  uint32_t depth_;
  uint32_t host_frames_;  // the most frames of the host that may wait
  spin::Fifo<EgressFrame> handlers_;
  spin::Fifo<EgressFrame> host_;
  uint32_t under_way_ = 0;
  bool host_was_last_ = false;
};

}  // namespace spinloom::frames
