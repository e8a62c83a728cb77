// FrameMachine - a host with a simulated Ethernet NIC and one context of handlers, for the studies of frames.
//
// Contract: create() makes the NIC, its context (constants, then state, in NIC memory) and its rule set;
//   host memory is one page for each HPU of the profile (spinloom/frame.h), then `buffer_bytes`. The host's program
//   polls the pages one after the other: take_request() gives each request of a page once; answer() answers the newest.
// Threads: one owner. Time: virtual.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "simulated/node/frame_node.hpp"

namespace spinloom::app {

struct FrameMachineOptions {
  std::string image;  // empty: the NIC takes no frames for itself
  std::string rules;  // a name of ethernet/device/rule_text.hpp
  std::vector<uint8_t> constants;
  uint64_t state_bytes = 0;
  uint64_t buffer_bytes = 0;
};

class FrameMachine {
 public:
  // `setup` and `host` outlive the machine.
  static Result<std::unique_ptr<FrameMachine>> create(const Setup& setup, simulated::FrameHost& host,
                                                      const FrameMachineOptions& options);

  [[nodiscard]] simulated::EventQueue& events() { return events_; }
  [[nodiscard]] simulated::FrameNode& node() { return *node_; }
  [[nodiscard]] uint32_t pages() const { return pages_; }
  [[nodiscard]] uint8_t* page(uint32_t hpu) { return memory_.data() + hpu * page_bytes; }
  [[nodiscard]] std::vector<uint8_t>& memory() { return memory_; }
  [[nodiscard]] uint64_t buffers_offset() const { return uint64_t{pages_} * page_bytes; }
  // Returns the HPU whose page begins at this place of host memory, where its requests stand; none for other places.
  [[nodiscard]] std::optional<uint32_t> page_of_request(const uint8_t* place) const;
  // Returns the value of the page's request if it has not returned that request before.
  [[nodiscard]] std::optional<uint32_t> take_request(uint32_t hpu);
  void answer(uint32_t hpu, uint32_t value);
  // Returns an Error if a handler has failed or faulted.
  [[nodiscard]] Status check() const;

 private:
  static constexpr uint64_t page_bytes = 4096;
  FrameMachine(LoadedImages loaded, uint32_t pages, uint64_t buffer_bytes)
      : loaded_(std::move(loaded)), pages_(pages), memory_(pages * page_bytes + buffer_bytes), newest_request_(pages) {}

  LoadedImages loaded_;
  uint32_t pages_;
  std::vector<uint8_t> memory_;
  std::vector<uint8_t> newest_request_;  // the identifier of each HPU's newest request
  uint64_t state_offset_ = 0;
  simulated::EventQueue events_;
  std::unique_ptr<simulated::FrameNode> node_;
};

}  // namespace spinloom::app
