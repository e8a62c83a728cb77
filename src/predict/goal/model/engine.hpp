// Engine - one run of run() of model.hpp.
//
// Invariants: (1) times never go back; (2) the number of an event is (1, kind, count), and of one that waits for its
//   CPU (0, count): at one moment waiting ones come first, and then kinds in their order; (3) of those that wait for a
//   CPU the first, the leader, is in the queue for the time at which it will be free; (4) an operation that waits for
//   one other has no counter; the counters of a rank live from its first to its last need; (5) a rank whose Program is
//   its own or has several passes has a window instead, and its Plan says nothing else.
// Threads: one owner. Time: modelled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/large_vector.hpp"
#include "predict/goal/model/arrivals.hpp"
#include "predict/goal/model/counter_windows.hpp"
#include "predict/goal/model/event_queue.hpp"
#include "predict/goal/model/matching.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/goal/model/noise.hpp"
#include "predict/goal/model/plan.hpp"
#include "predict/goal/model/record.hpp"
#include "predict/goal/model/sample.hpp"
#include "predict/goal/model/stall.hpp"
#include "simulated/network/network.hpp"

namespace spinloom::goal {

// Returns the time of `units` units at a rate, rounded up. It is `time_ps_max` + 1 if it is later than any modelled
// time.
[[nodiscard]] inline uint64_t time_ps(Rate rate, uint64_t units) {
  return static_cast<uint64_t>(std::min<unsigned __int128>(rate.ps_up(units), time_ps_max + 1));
}

// Takes the messages to ranks that are not the engine's.
class MessageSink {
 public:
  // The first byte of the message leaves its NIC at `at_ps`; its `rank` is its destination.
  virtual void on_message(uint64_t at_ps, const Event& message) = 0;

 protected:
  ~MessageSink() = default;
};

class Engine {
 public:
  // `begun`: the ranks for which the engine records each operation that has begun.
  Engine(const schedule::Schedule& schedule, const Model& model, Begun* begun = nullptr, Record* record = nullptr);

  // Runs until nothing happens any more. Returns an error if a time does not fit, or `watch` has ended the run.
  Status run(const Watch& watch = {});

  // In place of run(), if others run the ranks of a sample: exclude(), start(), then step() while there is a next_ps().
  // For a message from such a rank, receive_part() occupies the NIC of its target part by part, with bytes `first` to
  // `end` of `total`. Then add_arrived() adds the message as an event of kind `complete`.
  void exclude(const Sample& outside_ranks, MessageSink& sink);
  Status start();
  static constexpr uint64_t never = UINT64_MAX;
  [[nodiscard]] uint64_t next_ps() const { return queue_.is_empty() ? never : queue_.next_time(); }
  void step();
  // Returns when the last of these bytes is there.
  uint64_t receive_part(uint64_t now, uint32_t rank, uint64_t first, uint64_t end, uint64_t total);
  void add_arrived(uint64_t at_ps, const Event& message);
  [[nodiscard]] Status trouble() const;
  [[nodiscard]] uint64_t not_begun() const { return not_begun_; }
  [[nodiscard]] uint64_t unmatched() const { return unmatched_; }
  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] bool has_stalled() const { return not_begun_ > 0 || unmatched_ > 0; }
  // The first few ranks on which something waits.
  [[nodiscard]] std::vector<uint32_t> stalled_ranks() const;
  [[nodiscard]] Error stall() const;

 private:
  struct Costs {
    uint64_t size;
    uint64_t cpu_ps;  // a computation, or what a message costs each of both CPUs
    uint64_t work_ps;  // cpu_ps + layout_ps: the CPU's work when the operation begins
    uint64_t bytes_ps;  // n G: how long its bytes keep a NIC
    uint64_t layout_ps;  // the time that its layout costs its own CPU
    uint32_t tag;
    uint32_t cpu;  // the place of its CPU (places.hpp)
    uint32_t nic;  // the place of its NIC
    bool is_rendezvous;
    schedule::Kind kind;
    MessageKind message_kind;  // the kind of the first message of the operation
    EventKind begin_event;  // the kind of the event that begins it
  };
  struct Cpu {
    uint64_t free_ps = 0;
    uint32_t first_waiting = none;  // the first event that waits behind the leader
    uint32_t last_waiting = none;
    bool has_leader = false;
  };
  struct Nic {
    uint64_t sending_until_ps = 0;  // it is busy with sending until then
    uint64_t receiving_until_ps = 0;  // it is busy with receiving until then
  };
  struct alignas(64) Rank {
    uint32_t not_begun = 0;  // operations that have not begun
    uint32_t counters = none;  // the place of its counters, or the number of its window
    Matching::List posted;
    Matching::List arrived;
    uint64_t finish_ps = 0;
    uint64_t compute_ps = 0;
    uint64_t overhead_ps = 0;
  };
  static_assert(sizeof(Rank) == 64, "what a step of a rank needs is in one cache line");
  // Messages from one rank to another one, where packets choose their paths.
  struct Pair {
    uint32_t sent = 0;  // the number of messages that have left their sender
    uint32_t completed = 0;  // the number of messages that the receiver has got, in the order in which they left
    // Messages that are there before an earlier one, by place in that order: when they were there, and their events.
    std::map<uint32_t, std::pair<uint64_t, uint32_t>> early;
  };

  Status price_shapes();
  Status make_network();
  Status make_noise();
  [[nodiscard]] const Costs& costs_of(uint32_t rank, uint32_t operation) const {
    return costs_[schedule_.program(rank).operation(operation).shape];
  }
  [[nodiscard]] size_t cpu_number(uint32_t rank, const Costs& costs) const { return rank * cpus_each_ + costs.cpu; }
  [[nodiscard]] Cpu& cpu_of(uint32_t rank, const Costs& costs) { return cpus_[cpu_number(rank, costs)]; }
  [[nodiscard]] Nic& nic_of(uint32_t rank, const Costs& costs) { return nics_[rank * nics_each_ + costs.nic]; }

  // These return false if the event waits for its CPU.
  bool step(uint64_t now, uint32_t event);
  bool send(uint64_t now, uint32_t event);
  bool receive(uint64_t now, uint32_t event);
  bool compute(uint64_t now, uint32_t event);
  bool deliver(uint64_t now, uint32_t event);
  // Messages at a NIC.
  void leave(uint64_t now, uint32_t event);
  void arrive(uint64_t now, uint32_t event);
  bool complete(uint64_t now, uint32_t event);
  void answer(uint64_t now, uint32_t event, uint32_t receive);
  // One-sided operations: engine_one_sided.cpp.
  void land(uint64_t now, uint32_t event);
  void push_served(uint64_t at_ps, const Event& reply);
  void served(uint64_t now, uint32_t event);
  void arrived(uint64_t now, uint32_t event);
  void count_arrival(uint64_t now, uint32_t rank, uint32_t source, uint32_t operation, uint32_t shape);
  // Packets. The event of a packet has the event of its message as `operation`, its own number as `shape`, and the
  // switch where it is as `source`. The `number` of the message's event holds how many of its packets have not come
  // and, where packets may overtake, its place among the messages from one rank to another.
  void send_packets(uint64_t now, uint32_t message);
  void enter(uint64_t now, uint32_t packet);
  void travel(uint64_t now, uint32_t packet);
  void take_packet(uint64_t now, uint32_t packet);
  void complete_in_order(uint64_t at_ps, uint32_t message, uint32_t place);
  [[nodiscard]] bool is_ordered(const Event& message) const;
  [[nodiscard]] uint64_t bytes_of(const Event& message) const;
  [[nodiscard]] uint64_t packet_bytes_of(uint64_t bytes) const;
  [[nodiscard]] const Costs& costs_of(const Event& message) const;
  void finish_send(uint64_t at_ps, const Event& message, const Costs& costs);

  // Returns when a CPU of `rank` that begins at `now` has done `work_ps` of work, which noise may interrupt. `work_ps`
  // is the sum of two clamped() times at most.
  [[nodiscard]] uint64_t end_of_work(uint64_t now, uint32_t rank, uint64_t work_ps) {
    return noise_.has_value() ? clamped(noise_->end_of_work(rank, now, clamped(work_ps))) : now + work_ps;
  }
  [[nodiscard]] static bool is_busy(const Cpu& cpu, uint64_t now) { return cpu.free_ps > now; }
  void wait(uint32_t event);
  void occupy(Cpu& cpu, uint64_t until_ps, bool is_leader);
  void count_busy(uint64_t& busy_ps, uint64_t more_ps) { busy_ps = clamped(busy_ps + more_ps); }
  // Limits a time so that two such times can be added; notes it in has_overflowed_.
  [[nodiscard]] uint64_t clamped(uint64_t ps) {
    if (ps > time_ps_max) has_overflowed_ = true;
    return std::min(ps, time_ps_max);
  }

  void begin(uint64_t now, uint32_t rank, uint32_t operation);
  void end(uint64_t at_ps, uint32_t rank, uint32_t operation);
  void release(uint64_t at_ps, uint32_t rank, uint32_t operation, schedule::Awaits awaits);
  void count_down(uint64_t at_ps, uint32_t rank, uint32_t operation);
  // For any-of edges: ends are known before they come, and that of another operation may still be earlier.
  void announce(uint64_t at_ps, uint32_t rank, uint32_t operation, const schedule::Edge& edge);
  void first_came(uint64_t now, uint32_t event);
  // Returns null if the operation waits for one other only, or has begun.
  [[nodiscard]] Counter* counter_of(uint32_t rank, uint32_t operation);
  void make_counters(Rank& state, const Plan& plan);
  void drop_counters(uint32_t rank);
  void push_operation(uint64_t at_ps, uint32_t rank, uint32_t operation);
  void push(uint64_t at_ps, uint32_t event, EventKind kind);

  const schedule::Schedule& schedule_;
  Model model_;
  Sample outside_ranks_;
  MessageSink* sink_ = nullptr;  // null: all ranks are the engine's
  Begun* const begun_;
  Record* const record_;
  std::vector<Costs> costs_;  // one for each Shape
  std::vector<Plan> plans_;  // one for each Program
  LargeVector<Rank> ranks_;
  size_t cpus_each_ = 1;
  size_t nics_each_ = 1;
  LargeVector<Cpu> cpus_;
  LargeVector<Nic> nics_;
  std::optional<network::Network> network_;
  std::optional<Phases> noise_;
  std::unordered_map<uint64_t, Pair> pairs_;  // the key is sender and receiver, which have messages on their way
  EventQueue queue_;
  Matching matching_;
  Arrivals arrivals_;
  LargeVector<Counter> counters_;
  std::unordered_map<size_t, std::vector<uint32_t>> free_counters_;  // unused places, by number of counters
  CounterWindows windows_;
  uint64_t event_count_ = 0;  // operations that began and messages that came
  uint64_t next_number_ = 0;
  uint64_t next_wait_number_ = 0;
  uint64_t not_begun_ = 0;
  uint64_t unmatched_ = 0;
  bool has_overflowed_ = false;
};

}  // namespace spinloom::goal
