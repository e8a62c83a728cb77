// TestRanks - the ranks of a context over the loopback driver, each with a program that waits.
//
// Contract: run() calls program(rank, context) for each rank. One of them goes on at a time; where it waits, the driver
//   makes some steps, and any rank may be next. The same seed gives the same run. A rank that is killed goes on no
//   more: its program has to return.
// Invariants: (1) a pause takes 10 us of the time that contexts see, or more where nothing is under way, so pauses end;
//   (2) a run of too many pauses is a failure that says so: then every wait ends with an Error.
// Threads: one for each rank; a baton lets one go on. Time: made up, see (1).
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/random.hpp"
#include "portals/rma/window.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::rma::test {

// A port whose time goes on in pauses, too.
class PausedPort final : public portals::Port {
 public:
  explicit PausedPort(portals::Port& under) : port_(under) {}
  [[nodiscard]] nic::Rank rank() const override { return port_.rank(); }
  [[nodiscard]] Time now() const override { return port_.now() + paused_; }
  void submit(const nic::Command& command) override { port_.submit(command); }
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return port_.take_answer(token); }
  std::optional<nic::Event> take_event(nic::QueueId queue) override { return port_.take_event(queue); }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return port_.counter(counter); }
  Status wait() override { return port_.wait(); }
  Status host_work(const portals::HostWork& work) override { return port_.host_work(work); }
  [[nodiscard]] nic::HostMemory* memory() override { return port_.memory(); }
  void pass(Time time) { paused_ += time; }

 private:
  portals::Port& port_;
  Time paused_{};
};

class TestRanks {
 public:
  using Program = std::function<void(uint32_t rank, Context&)>;
  // `options` but for what the driver gives. Without `racy`, packets and atomics keep their order, as those of real
  // drivers.
  TestRanks(uint32_t ranks, const Options& options, uint64_t seed, bool emulate_odd = false, bool racy = true);
  ~TestRanks();
  void run(const Program& program);
  void kill(uint32_t rank);
  [[nodiscard]] bool is_stuck() const { return pauses_ > pauses_max; }

 private:
  static constexpr uint64_t pauses_max = 2'000'000;
  struct Member {
    std::unique_ptr<PausedPort> port;
    std::unique_ptr<portals::Interface> interface;
    bool is_over = false;
  };
  void pass_baton(std::unique_lock<std::mutex>& held, uint32_t rank, bool is_over);
  void play(uint32_t rank, const Program& program);

  Options options_;
  bool emulate_odd_;
  Random random_;
  std::unique_ptr<testbed::Loopback> loopback_;
  std::vector<Member> members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t turn_ = 0;
  uint64_t pauses_ = 0;
  uint32_t open_ = 0;
};

}  // namespace spinloom::rma::test
