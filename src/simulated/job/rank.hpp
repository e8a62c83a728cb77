// Rank - one process of a job: its program's fiber, its nodes, and the Portals library between them.
//
// Contract: begin() makes the fiber; resume() lets the program run until it waits or ends. `on_ready` wakes waiting
//   ranks, in the order of virtual time. A Rank is both the Port and the Host of its program: a call that waits leaves
//   the fiber.
// Invariants: (1) the program runs only inside resume(); (2) a waiting rank is woken once when something has become
//   readable; (3) the time that a call takes does not depend on what arrives meanwhile.
// Threads: one. Time: virtual.
#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/namespaces/program.hpp"
#include "base/random.hpp"
#include "portals/calls/process.hpp"
#include "simulated/job/fiber.hpp"
#include "simulated/node/event_queue.hpp"
#include "simulated/node/node.hpp"

namespace spinloom::job {

// Handler images by name, with their numbers on the NICs.
struct Images {
  std::vector<std::string> names;
  std::vector<hpu::Image> images;
};

// State of the C library that each program must have for itself.
struct LibraryState {
  char* option_argument = nullptr;
  int option_index = 0;  // 0: getopt() begins anew
  int option_errors = 1;
  int option_letter = '?';
};

class Rank final : public portals::Port, public calls::Host, simulated::EventTarget {
 public:
  // `nodes`: the rank's NICs, one for each rail of the job.
  Rank(simulated::EventQueue& events, std::vector<simulated::Node*> nodes, const simulated::Profile& profile,
       const Images& images, uint32_t size, std::function<void(Rank&)> on_ready);

  Status begin(const namespaces::Program& program, const std::vector<std::string>& arguments, size_t stack_bytes);
  void resume();
  // The program calls this to exit. Destructors run unless `at_once` is set. A child that it has forked ends by itself.
  [[noreturn]] void exit_program(int exit_code, bool at_once);
  // The program calls this to sleep.
  void sleep(Time duration);
  // The program calls this to let others run: it takes the time of a call.
  void yield();
  // Returns the program's clock. A look costs nothing. But a program that only looks waits for a time or for another
  // rank: from the 1001st look without another pause on, each takes the time of a call.
  [[nodiscard]] Time read_clock();

  [[nodiscard]] bool ended() const { return exit_code_.has_value(); }
  [[nodiscard]] int exit_code() const { return *exit_code_; }
  [[nodiscard]] Time end() const { return end_; }
  // The reason why the program could not be loaded, or why it was ended: it slept beyond the end of modelled time.
  [[nodiscard]] const std::optional<Error>& trouble() const { return trouble_; }
  [[nodiscard]] const calls::Process& process() const { return process_; }
  [[nodiscard]] calls::Process& process() { return process_; }
  [[nodiscard]] const Fiber& fiber() const { return *fiber_; }
  [[nodiscard]] const namespaces::LoadedCopy& copy() const { return copy_; }
  [[nodiscard]] const std::string& rank_text() const { return rank_text_; }
  [[nodiscard]] const std::string& size_text() const { return size_text_; }

  // portals::Port
  [[nodiscard]] nic::Rank rank() const override { return node_.rank(); }
  [[nodiscard]] Time now() const override { return events_.now(); }
  void submit(const nic::Command& command) override { node_.submit(command); }
  std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return node_.take_answer(token); }
  std::optional<nic::Event> take_event(nic::QueueId queue) override { return node_.take_event(queue); }
  [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return node_.counter(counter); }
  Status wait() override;
  Status host_work(const portals::HostWork& work) override;
  [[nodiscard]] nic::HostMemory* memory() override { return node_.memory(); }

  // calls::Host
  portals::Port& port() override { return *this; }
  [[nodiscard]] uint32_t rails() const override { return static_cast<uint32_t>(1 + rail_ports_.size()); }
  [[nodiscard]] portals::Port& rail_port(uint32_t rail) override;
  [[nodiscard]] rails::RailFacts rail_facts(uint32_t rail) override;
  void wait(Time deadline) override;
  void spend_call_time() override { sleep(profile_.host.call); }
  [[nodiscard]] uint32_t size() const override { return size_; }
  [[nodiscard]] bool has_ended(uint32_t rank) const override;
  // Waits for a second at most.
  [[nodiscard]] bool drain() override;
  [[nodiscard]] bool close() override { return true; }
  // The user of the process, as its programs know it from geteuid().
  [[nodiscard]] uint32_t user() const override;
  [[nodiscard]] uint32_t atomic_bytes() const override;
  // Atomics are coherent: the NIC changes memory at one moment of virtual time, and programs run between such moments.
  [[nodiscard]] uint32_t features() const override { return PTL_COHERENT_ATOMICS; }
  // Gives the same numbers in every run.
  [[nodiscard]] uint64_t random() override { return random_.next(); }
  [[nodiscard]] Result<calls::HandlerImage> image(std::string_view name) override;

 private:
  enum class State : uint8_t { running, waiting, sleeping };
  // A NIC beside the first one. A program that waits for it waits as the rank does.
  class RailPort final : public portals::Port {
   public:
    RailPort(Rank& rank, simulated::Node& node) : rank_(rank), node_(node) {}
    [[nodiscard]] nic::Rank rank() const override { return node_.rank(); }
    [[nodiscard]] Time now() const override { return rank_.now(); }
    void submit(const nic::Command& command) override { node_.submit(command); }
    std::optional<Result<uint64_t>> take_answer(uint64_t token) override { return node_.take_answer(token); }
    std::optional<nic::Event> take_event(nic::QueueId queue) override { return node_.take_event(queue); }
    [[nodiscard]] nic::CounterValue counter(nic::CounterId counter) const override { return node_.counter(counter); }
    Status wait() override { return rank_.wait(); }
    Status host_work(const portals::HostWork& work) override { return rank_.host_work(work); }
    [[nodiscard]] nic::HostMemory* memory() override { return node_.memory(); }

   private:
    Rank& rank_;
    simulated::Node& node_;
  };
  void on_event(uint32_t code, uint64_t argument) override;
  void run_program(const namespaces::Program& program, std::vector<std::string> arguments);
  void pause(State state);
  void wake();

  simulated::EventQueue& events_;
  simulated::Node& node_;
  const simulated::Profile& profile_;
  const Images& images_;
  uint32_t size_;
  std::function<void(Rank&)> on_ready_;
  std::vector<RailPort> rail_ports_;
  calls::Process process_;
  pid_t process_id_ = getpid();  // the simulation's process; a child that a program forks has another one
  Random random_{port().rank().value, "ptl/random"};
  std::unique_ptr<Fiber> fiber_;
  const namespaces::Program* program_ = nullptr;
  namespaces::LoadedCopy copy_;
  LibraryState library_;
  State state_ = State::running;
  uint64_t pauses_ = 0;  // number of the newest pause; timers of earlier pauses are ignored
  uint32_t clock_reads_ = 0;  // looks in a row, without another pause between them
  uint64_t pauses_at_read_ = 0;
  std::optional<int> exit_code_;
  std::optional<Error> trouble_;
  Time end_{};
  std::string rank_text_;
  std::string size_text_;
};

}  // namespace spinloom::job
