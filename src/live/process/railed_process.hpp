// RailedProcess - a rank with several NICs: one LiveProcess for each rail, as one Host.
//
// Contract: join() joins the job once for each rail, in the order of SPINLOOM_RAILS, over one launcher. Rail 0 is the
//   NIC of the Portals calls; all of them are those of spinloom/rails.h. wait() returns for what any rail has.
// Invariants: (1) a call holds the locks of all rails, taken from the last rail to the first; (2) a caller that sleeps
//   does so on the doorbell of rail 0 and holds no lock: the helpers of the other rails drive them, and wake the caller
//   for their news.
// Threads: any. Time: the monotonic clock.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "live/process/live_process.hpp"

namespace spinloom::process {

class RailedProcess final : public calls::Host {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RailedProcess>> join(const Settings& settings,
                                                                   const std::shared_ptr<live::Launcher>& launcher);
  ~RailedProcess() override;

  [[nodiscard]] LiveProcess& rail(uint32_t number) { return *rails_.at(number); }

  // calls::Host
  [[nodiscard]] portals::Port& port() override { return ports_.front(); }
  [[nodiscard]] uint32_t rails() const override { return static_cast<uint32_t>(rails_.size()); }
  [[nodiscard]] portals::Port& rail_port(uint32_t rail) override { return ports_.at(rail); }
  [[nodiscard]] rails::RailFacts rail_facts(uint32_t rail) override;
  void wait(Time deadline) override;
  void poll() override;
  void begin_call() override;
  void end_call() override;
  void interrupt() override { rails_.front()->interrupt(); }
  void spend_call_time() override {}
  [[nodiscard]] bool drain() override;
  [[nodiscard]] bool close() override;
  [[nodiscard]] uint32_t size() const override { return rails_.front()->size(); }
  [[nodiscard]] uint32_t user() const override { return rails_.front()->user(); }
  [[nodiscard]] uint32_t atomic_bytes() const override { return rails_.front()->atomic_bytes(); }
  [[nodiscard]] uint64_t random() override { return rails_.front()->random(); }
  [[nodiscard]] Result<calls::HandlerImage> image(std::string_view name) override {
    return rails_.front()->image(name);
  }

 private:
  // The port of a rail. A call that waits for it waits for all rails.
  class RailPort final : public portals::Port {
   public:
    RailPort(RailedProcess& process, live::Node& node) : process_(process), node_(node) {}
    [[nodiscard]] nic::Rank rank() const override { return node_.rank(); }
    [[nodiscard]] Time now() const override { return node_.now(); }
    void submit(const nic::Command& command) override { node_.submit(command); }
    void put(const nic::Put& put) override { node_.put(put); }
    bool put_quickly(const nic::QuickPut& put) override { return node_.put_quickly(put); }
    std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return node_.take_answer(token); }
    std::optional<nic::Event> take_event(nic::QueueId queue) override { return node_.take_event(queue); }
    [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return node_.counter(counter); }
    Status wait() override {
      process_.wait(Time::never());
      return {};
    }
    Status host_work(const portals::HostWork& work) override { return node_.host_work(work); }
    [[nodiscard]] nic::HostMemory* memory() override { return node_.memory(); }

   private:
    RailedProcess& process_;
    live::Node& node_;
  };

  RailedProcess() = default;
  [[nodiscard]] live::Node& node(uint32_t rail) const { return rails_[rail]->node(); }
  void lock_all();
  void unlock_all();
  [[nodiscard]] bool poll_all();
  [[nodiscard]] uint64_t changes() const;
  void sleep_until(Time deadline);

  std::vector<std::unique_ptr<LiveProcess>> rails_;
  std::vector<RailPort> ports_;
  std::vector<std::string> names_;
  Time patience_{};
  std::atomic<uint32_t> asleep_{0};  // number of callers that sleep
};

}  // namespace spinloom::process
