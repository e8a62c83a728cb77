// RankEmitter - one rank's Script at given costs as a program of the schedule. For schedule_of.cpp only.
//
// Contract: that of schedule_of() (schedule_of.hpp). emit() is called once; it adds shapes and layouts to the schedule,
//   and fills in the bill, the receives and the waits. rank_emitter.cpp has the steps of the program and what all
//   operations are made of, emit_messages.cpp the ends of messages and their prices, emit_offloaded.cpp what NICs
//   execute.
// Invariants: (1) Bill's parts add up to the time of the rank's computations.
// Threads: one owner. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "predict/program/schedule_of.hpp"

namespace spinloom::predict {

inline constexpr uint8_t host_cpu = 0;
inline constexpr uint8_t nic_cpu = 1;
// A CPU that is never busy: what a message costs a CPU is a computation of its own.
inline constexpr uint8_t message_cpu = 2;
// A delay of one message that holds up no other. Each takes one of these CPUs in turn, so that up to 61 messages of a
// rank are delayed at the same time.
inline constexpr uint8_t delay_cpu = 3;
inline constexpr uint8_t delay_cpus = 61;

// A tag of a Script has several of the schedule's: eager messages, and what a handshake consists of.
enum class Stage : uint8_t { eager, request, answer, data };  // answer: also that the data have been fetched
inline constexpr uint32_t stages = 4;
inline constexpr uint32_t tags_max = UINT32_MAX / stages - 1;
inline constexpr uint64_t request_bytes = 1;

// The schedule's numbers of a Script's layouts.
class LayoutNumbers {
 public:
  LayoutNumbers(const std::vector<layout::Blob>& layouts, schedule::Schedule& out) : layouts_(layouts), out_(out) {}

  schedule::TransferLayouts layouts_of(const Part& part) {
    if (part.type == trace::none || part.bytes == 0) return {};
    const auto [entry, is_new] = numbers_.try_emplace({part.type, part.count}, 0);
    if (is_new) {
      const auto bytes = layouts_[part.type].bytes();
      const std::string blob(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      entry->second = out_.intern_layout({blob, part.count, part.bytes});
    }
    return {entry->second, schedule::contiguous};
  }

 private:
  const std::vector<layout::Blob>& layouts_;
  schedule::Schedule& out_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> numbers_;
};

// A collective operation that a NIC executes.
struct NicExecution {
  const OffloadCosts& costs;
  Cursor posted;  // its receives have been posted
  Cursor returned;  // its call has returned: the CPU has done with the messages that had come before
};

class RankEmitter {
 public:
  RankEmitter(const RankScript& script, const Costs& costs, const std::vector<bool>* late, LayoutNumbers& layouts,
              schedule::Schedule& out, Bill& bill, std::vector<uint32_t>& receives, std::vector<Wait>& waits)
      : script_(script),
        costs_(costs),
        late_(late),
        layouts_(layouts),
        out_(out),
        bill_(bill),
        receives_(receives),
        waits_(waits),
        ends_(script.actions.size()) {
    receives_.assign(script.legs.size(), no_operation);
  }

  schedule::Program emit();

 private:
  [[nodiscard]] uint64_t scaled(uint64_t ns) const;
  void emit_compute(uint64_t time_ps);
  void emit_await(const Step& step);
  void add_to_cursor(const Cursor& ends);
  void emit_action(uint32_t number);
  Cursor emit_round(const ScriptRound& round, const Cursor& entry, Cursor& starts);
  // Returns one operation that waits for all of `entry`, in place of many, for several operations that wait for them.
  Cursor join(const Cursor& entry, uint8_t cpu = host_cpu);
  // CPU time of the host; `after` itself if there is none.
  Cursor add_work(uint64_t time_ps, const Cursor& after);
  // CPU time of an end of a message, in the bill of messages; `after` itself if there is none.
  uint32_t charge_cpu(uint64_t time_ps, uint32_t after);
  // A delay of one message, which keeps nothing else; `after` itself if there is none.
  uint32_t add_delay(uint64_t time_ps, uint32_t after);
  // The message waits for nic_ps; the NIC is busy for nic_busy_ps, whether that is more or less.
  Cursor pass_nic(const EndCost& end_cost, const Cursor& after);
  uint32_t add_computation(uint64_t time_ps, uint8_t cpu, const Cursor& after);
  uint32_t add_message(schedule::Kind kind, uint64_t bytes, const Leg& leg, Stage stage, const Cursor& after);
  uint32_t add_operation(const schedule::Shape& shape, uint32_t peer, const Cursor& after,
                         schedule::TransferLayouts layouts = {});

  [[nodiscard]] bool is_late(uint32_t leg) const;
  // True for messages that end only when they have matched. A message that asks first does so in any case.
  [[nodiscard]] bool is_synchronous(uint32_t leg) const;
  void receive(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& starts, Cursor& ends);
  // Returns the CPU times for a control message: a request or an answer.
  [[nodiscard]] MessageCost control_cost() const;
  [[nodiscard]] uint64_t answer_ps(bool is_late) const;
  // Returns the cost of a receive whose data lie where messages without a receive land.
  [[nodiscard]] EndCost late_receive_cost(const Leg& leg) const;
  void send(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& ends, bool by_host = true);
  // Sends a request and receives its answer. Returns the operation at whose end the CPU has read it.
  uint32_t request_answer(const Leg& leg, const Cursor& ready, uint64_t read_ps);
  [[nodiscard]] EndCost end_cost_of(const Leg& leg) const;
  [[nodiscard]] const PairCost* pair_cost_of(const Leg& leg) const;
  [[nodiscard]] uint64_t copy_ps(const Copy& copy) const;
  [[nodiscard]] uint64_t host_ps(const Part& part, Side side) const;

  // The call returns when the schedule is with the NIC and messages that were there before have been copied.
  void emit_offloaded(uint32_t number, const OffloadCosts& costs);
  // Adds the CPU time for messages and requests that came before their receives were posted to the bill, and returns
  // it.
  uint64_t late_ps(const Action& action);
  // Returns how many operations the CPU gives to the NIC: sends, receives, copies and reductions; of a schedule that
  // the NIC keeps only those that wait for nothing. Notes the schedule as kept.
  uint64_t operations_to_create(const Action& action, const OffloadCosts& costs);
  Cursor emit_round_by_nic(const ScriptRound& round, const Cursor& entry, const NicExecution& execution);
  // Adds a receive that a NIC executes. Returns the operation at whose end what waits for it begins.
  uint32_t receive_by_nic(const Leg& leg, uint32_t number, const NicExecution& execution);

  [[nodiscard]] bool asks_first(const Leg& leg) const { return leg.part.bytes > costs_.handshake_bytes; }
  static uint64_t time_of(const Rate& rate, uint64_t bytes) {
    return static_cast<uint64_t>(rate.time_of(Bytes{static_cast<int64_t>(bytes)}).ps);
  }

  const RankScript& script_;
  const Costs& costs_;
  const std::vector<bool>* late_;  // one for each leg: its receive is late; null: none is
  LayoutNumbers& layouts_;
  schedule::Schedule& out_;
  Bill& bill_;
  std::vector<uint32_t>& receives_;
  std::vector<Wait>& waits_;
  schedule::Builder builder_;
  Cursor cursor_;
  std::vector<Cursor> ends_;  // the operations with which each action has ended
  std::set<std::vector<uint64_t>> cached_schedules_;  // schedules that the NIC keeps
  uint32_t last_send_ = 0;  // the newest send or request; a call of a send returns when it starts
  uint32_t delays_ = 0;  // the number of delays that have been added
};

}  // namespace spinloom::predict
