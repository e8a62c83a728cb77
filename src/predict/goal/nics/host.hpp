// Host - the program of one rank: executes its part of a schedule over a port, as a state machine.
//
// Contract: begin() starts what waits for nothing; read_events() reads what the NIC has brought. It knows no driver: it
//   posts commands, reads events, and works on CPUs by the clock. What it does, with c = o + n O as in model.hpp:
//   - An operation is free when all that it waits for has ended (or begun), and then needs its CPU, the first come
//     first: a send for c, a computation for its time, a receive to be posted, in no time.
//   - A receive is a use-once priority entry: bits of the tag, rank of the source. A message of s <= S is a put whose
//     header says s and the number of its send. It lands in a receive, or in the overflow entry if none is posted;
//     then the append of its receive finds it there, and the CPU also copies it.
//   - A message of s > S is an empty put, the request, and a use-once entry over its bytes, from which the receiver
//     gets them when its request has matched. No CPU is needed for that. The send ends when its bytes have been read.
//   - When the bytes are there, the CPU of the receive works for c, and the receive has ended.
//   - A put, get, atomic or fetching atomic is Portals' own, to an entry at its target that counts: there is a counter
//     for each tag, and an `arrived` is the host's wait until it has read that many there. Atomics longer than a NIC's
//     are several, of which the last one counts. A put or an atomic ends with its send event.
//   - A one-sided operation that costs no CPU time and waits for `arrived`s only is a triggered operation: the host
//     gives it to the NIC when they begin, and the NIC begins it by itself. Where there are several, a counter of its
//     own counts them.
// Invariants: (1) at one moment what has waited for a CPU begins first, then messages, sends, receives, computations,
//   as in the engine; (2) no CPU does two things at once; (3) where bytes move, those of every receive are checked
//   before it ends.
// Threads: one owner. Time: modelled, that of the job's clock from its start on.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nic/spin/slab.hpp"
#include "portals/interface/id_pool.hpp"
#include "predict/goal/model/arrivals.hpp"
#include "predict/goal/model/matching.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/goal/model/noise.hpp"
#include "predict/goal/model/record.hpp"
#include "predict/goal/model/sample.hpp"
#include "predict/goal/nics/nics.hpp"
#include "predict/goal/nics/payloads.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

class Host;

inline constexpr uint64_t one_sided_mark = uint64_t{1} << 32;  // a bit in user pointers of events, above the operation

// State that the hosts of a run share.
struct Job {
  // The costs of the operations of a Shape.
  struct Costs {
    uint64_t size = 0;
    uint64_t cpu_ps = 0;  // a computation, or what a message costs each of both CPUs
    uint64_t layout_ps = 0;  // the time that its layout costs its own CPU
    uint32_t cpu = 0;  // the place of its CPU (places.hpp)
    bool is_rendezvous = false;
  };

  const schedule::Schedule& schedule;
  Nics& nics;
  Payloads& payloads;
  std::vector<Costs> costs;
  // One list for each Program: the number of others for which each operation waits.
  std::vector<std::vector<uint32_t>> dependency_counts;
  // One list for each Program: true if the NIC begins the operation; empty: none.
  std::vector<std::vector<bool>> triggered;
  std::optional<Phases> noise;
  Rate copy_rate;  // the time of a CPU for each byte that it copies
  uint64_t start_ps = 0;
  size_t cpus_per_rank = 1;
  Record* record = nullptr;
  std::vector<std::unique_ptr<Host>> hosts = {};
  uint64_t not_begun = 0;  // operations that have not begun
  uint64_t unmatched = 0;  // sends and receives that have begun, without a partner
  std::optional<Error> error = {};
};

class Host final : simulated::EventTarget {
 public:
  Host(Job& job, uint32_t rank);
  // Returns the commands that make a rank's NIC ready.
  [[nodiscard]] static std::vector<nic::Command> setup(Payloads& payloads, uint32_t rank);
  // Returns the number of entries that these commands append; they are the first ones.
  [[nodiscard]] static uint32_t entries_of_setup(Payloads& payloads, uint32_t rank);

  void begin();
  void read_events();

  [[nodiscard]] uint32_t not_begun() const { return not_begun_; }
  [[nodiscard]] bool has_ended() const { return not_ended_ == 0; }
  [[nodiscard]] uint64_t finish_ps() const { return finish_ps_; }
  [[nodiscard]] uint64_t compute_ps() const { return compute_ps_; }
  [[nodiscard]] uint64_t overhead_ps() const { return overhead_ps_; }
  [[nodiscard]] const std::vector<bool>& begun() const { return begun_; }
  // True if the message of this send has met its receive.
  [[nodiscard]] bool has_matched(uint32_t send) const { return matched_[send]; }
  // Receives that wait for a message, the first posted first.
  [[nodiscard]] std::vector<uint32_t> posted() const;
  // The number of `arrived`s that wait, and the first of them under the smallest tag.
  [[nodiscard]] size_t waiting_arrivals() const { return waiting_arrivals_.size(); }
  [[nodiscard]] std::optional<Arrivals::Waiter> first_waiting_arrival() const;

 private:
  enum class Step : uint32_t { worked, arrived, send, receive, compute, deliver };
  struct Task {
    Step step = Step::compute;
    uint32_t operation = 0;
    uint32_t slot = 0;  // deliver: the slot of its Receive
  };
  struct Cpu {
    bool is_busy = false;
    Task task;
    std::deque<Task> waiting;
  };
  // A receive that is posted, until it ends.
  struct Receive {
    uint32_t operation = 0;
    uint64_t post_order = 0;  // the number of receives that were posted before it
    bool has_matched = false;
    uint32_t source = 0;
    uint32_t send = 0;  // the number of the send's operation
    uint64_t size = 0;
    uint64_t overflow_address = 0;  // the place of a message that came before its receive; 0: it came to its receive
    simulated::ZeroedBytes memory;
  };

  // An `arrived` that waits until a counter has reached its threshold.
  struct WaitingArrival {
    uint64_t threshold = 0;
    nic::CounterId counter;
    uint32_t operation = 0;
  };

  void on_event(uint32_t code, uint64_t argument) override;
  [[nodiscard]] uint64_t now() const;
  [[nodiscard]] const schedule::Operation& operation(uint32_t number) const { return program_.operations[number]; }
  [[nodiscard]] const schedule::Shape& shape(uint32_t number) const { return job_.schedule.shape(operation(number)); }
  void on_ready(uint32_t operation);
  // Works for a task at once, or puts it into the queue of its CPU.
  void queue_or_work(const Task& task);
  void work(Cpu& cpu, const Task& task);
  void finish(const Task& task);
  void on_begin(uint32_t operation);
  void on_end(uint32_t operation);
  void release(uint32_t operation, schedule::Awaits awaits);
  // host_messages.cpp
  void send_message(uint32_t operation);
  void post(uint32_t operation);
  void on_match(const nic::Event& event);
  void on_delivered(uint32_t slot);
  [[nodiscard]] uint64_t delivery_ps(const Receive& receive);
  [[nodiscard]] nic::EntryId take_entry();
  // host_one_sided.cpp
  static void open_windows(Payloads& payloads, uint32_t rank, std::vector<nic::Command>& commands);
  void begin_arrived(uint32_t operation);
  void trigger(uint32_t operation, const nic::Trigger& arrival, const schedule::Edge& edge);
  void count_arrivals();
  void submit_one_sided(uint32_t operation, const std::optional<nic::Trigger>& trigger);
  void on_one_sided_end(uint32_t operation);
  [[nodiscard]] bool is_triggered(uint32_t operation) const {
    const std::vector<bool>& of_program = job_.triggered[job_.schedule.number_of_program(rank_)];
    return !of_program.empty() && of_program[operation];
  }
  // The counter of the window of a tag.
  [[nodiscard]] nic::CounterId counter_of(uint32_t tag) const;
  void submit(const nic::CommandBody& body, const std::optional<nic::Trigger>& trigger = {}) {
    job_.nics.port(rank_).submit(nic::Command{body, trigger, 0});
  }
  void stop(const Error& error);

  Job& job_;
  uint32_t rank_;
  const schedule::Program& program_;
  std::vector<uint32_t> pending_;  // the number of each operation's dependencies that have not come
  std::vector<bool> begun_;
  std::vector<bool> matched_;
  std::vector<Cpu> cpus_;
  nic::Slab<Receive> receives_;
  portals::IdPool<nic::EntryId> entries_;
  // For each operation true if one of those that its any-of edges wait for has come; empty if none has such edges.
  std::vector<bool> is_any_met_;
  std::vector<WaitingArrival> waiting_arrivals_;
  std::unordered_map<uint32_t, simulated::ZeroedBytes> fetched_;  // the bytes of each operation's reply go there
  // The counters of triggered operations that wait for several arrivals, by operation.
  std::unordered_map<uint32_t, nic::CounterId> arrival_counters_;
  portals::IdPool<nic::CounterId> counters_;
  uint64_t next_post_ = 0;
  uint32_t not_begun_;  // operations
  uint32_t not_ended_;
  uint64_t finish_ps_ = 0;
  uint64_t compute_ps_ = 0;
  uint64_t overhead_ps_ = 0;
};

// Makes a Job without hosts; `copy_rate`: the time of a CPU for each byte that it copies.
[[nodiscard]] Job make_job(Nics& nics, Payloads& payloads, Rate copy_rate, const schedule::Schedule& schedule);
// Makes the hosts of the ranks of a sample, and has the NICs' watcher call them.
[[nodiscard]] Status make_hosts(Job& job, const Model& model, const Sample& sample = {});
// Returns an Error if something went wrong in a run that is over and has not stalled.
[[nodiscard]] Status trouble_of(const Job& job);

// Runs the hosts of all ranks until nothing happens any more. Errors are those of run() of model.hpp and of the NICs,
// and wrong bytes.
[[nodiscard]] Result<Outcome> run_hosts(Nics& nics, Payloads& payloads, Rate copy_rate,
                                        const schedule::Schedule& schedule, const Model& model,
                                        Record* record = nullptr, const Watch& watch = {});

}  // namespace spinloom::goal
