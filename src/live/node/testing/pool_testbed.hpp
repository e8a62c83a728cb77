// PoolTestbed - engines of several ranks in one process under one lock; their handlers run on HPU threads.
//
// Contract: the testbed of scenarios (portals/testbed/testbed.hpp) for the parts of src/live that run handlers. Whoever
//   holds the lock performs packets, DMAs and commands at once; handlers run meanwhile on the threads of their rank's
//   pool.
// Invariants: (1) an engine is called only under the lock; (2) wait() and settle() give up with an Error when nothing
//   has changed for patience(); (3) payloads are kept until the end.
// Threads: the scenario's one, and the pools'. Time: nothing depends on it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/testing/patience.hpp"
#include "live/node/hpu_pool.hpp"
#include "portals/testbed/loopback_testbed.hpp"
#include "portals/testbed/testbed.hpp"

namespace spinloom::live {

class PoolTestbed final : public testbed::Testbed {
 public:
  static std::chrono::milliseconds patience() { return patient(std::chrono::seconds(60)); }
  static Result<std::unique_ptr<PoolTestbed>> create(uint32_t ranks, const nic::NicLimits& limits,
                                                     std::shared_ptr<testbed::ScenarioHandlers> handlers,
                                                     std::chrono::nanoseconds spin);
  ~PoolTestbed() override;

  [[nodiscard]] uint32_t ranks() const override { return static_cast<uint32_t>(interfaces_.size()); }
  [[nodiscard]] portals::Interface& rank(uint32_t rank) override { return *interfaces_.at(rank); }
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const override;
  [[nodiscard]] Result<testbed::TestHandlers> handlers(std::string_view name) override { return handlers_->find(name); }
  [[nodiscard]] Status settle() override;
  [[nodiscard]] Status shut_down();
  // The number of a rank's HPUs with handlers that run or wait; busy_peak() is the most there ever were.
  [[nodiscard]] uint32_t busy(uint32_t rank);
  [[nodiscard]] uint32_t busy_peak() const { return busy_peak_; }

 private:
  class Node;
  struct Arrive {
    nic::Packet packet;
  };
  struct HerReady {
    nic::HerId her;
  };
  struct DmaDone {
    nic::DmaId dma;
  };
  struct Sent {
    uint64_t message = 0;
  };
  struct Left {
    nic::OutboundSlotId slot;
  };
  struct Work {
    uint32_t rank = 0;
    std::variant<Arrive, HerReady, DmaDone, Sent, Left, nic::Continue> item;
  };

  PoolTestbed() = default;
  // The functions below are called under the lock.
  void perform(Node& node, nic::Actions& actions);
  void drain();
  [[nodiscard]] bool unblock();
  void do_one(const Work& work);
  void arrive(Node& node, const nic::Packet& packet);
  void send(Node& node, const nic::Send& send);
  void start(Node& node, const nic::Her& her);
  [[nodiscard]] bool quiet() const;

  std::mutex lock_;
  std::condition_variable changed_;
  uint64_t changes_ = 0;
  uint32_t busy_peak_ = 0;
  std::deque<Work> work_;
  std::vector<std::unique_ptr<uint8_t[]>> payloads_;
  std::shared_ptr<testbed::ScenarioHandlers> handlers_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<portals::Interface>> interfaces_;
};

}  // namespace spinloom::live
