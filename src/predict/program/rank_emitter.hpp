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
inline constexpr uint8_t message_cpu = 2;  // is never busy: what a message costs a CPU is a computation of its own
// A delay of one message that holds up no other. Each takes one of these CPUs in turn, so that up to 61 messages of a
// rank are delayed at the same time.
inline constexpr uint8_t delay_cpu = 3;
inline constexpr uint8_t delay_cpus = 61;

// A tag of a Script has several of the schedule's: eager messages, and what a handshake consists of.
enum class Stage : uint8_t { eager, request, answer, data };  // answer: also that the data have been fetched
inline constexpr uint32_t stages = 4;
inline constexpr uint32_t tags_most = UINT32_MAX / stages - 1;
inline constexpr uint64_t request_bytes = 1;

// The schedule's numbers of a Script's layouts.
class LayoutNumbers {
 public:
  LayoutNumbers(const std::vector<layout::Blob>& layouts, schedule::Schedule& out) : layouts_(layouts), out_(out) {}

  schedule::Ends of(const Part& part) {
    if (part.type == trace::none || part.bytes == 0) return {};
    const auto [found, is_new] = numbers_.try_emplace({part.type, part.count}, 0);
    if (is_new) {
      const auto bytes = layouts_[part.type].bytes();
      const std::string blob(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      found->second = out_.number_of_layout({blob, part.count, part.bytes});
    }
    return {found->second, schedule::contiguous};
  }

 private:
  const std::vector<layout::Blob>& layouts_;
  schedule::Schedule& out_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> numbers_;
};

// A collective operation that a NIC executes.
struct Execution {
  const Offloaded& how;
  Cursor posted;  // all of its receives
  Cursor returned;  // its call, after the CPU has done with what had come before
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
  void compute(uint64_t time_ps);
  void await(const Step& step);
  void wait(const Cursor& ends);
  void act(uint32_t number);
  Cursor play(const ScriptRound& round, const Cursor& entry, Cursor& starts);
  // Several operations that wait for the same many others wait for one joint in their place.
  Cursor joined(const Cursor& entry, uint8_t cpu = host_cpu);
  Cursor work(uint64_t time_ps, const Cursor& after);
  // CPU time of an end of a message after an operation; the operation itself if there is none.
  uint32_t charged(uint64_t time_ps, uint32_t after);
  uint32_t delayed(uint64_t time_ps, uint32_t after);
  // The message waits for nic_ps; the NIC is busy for nic_busy_ps, whether that is more or less.
  Cursor through_nic(const Price& price, const Cursor& after);
  uint32_t computation(uint64_t time_ps, uint8_t cpu, const Cursor& after);
  uint32_t message(schedule::Kind kind, uint64_t bytes, const Leg& leg, Stage stage, const Cursor& after);
  uint32_t add(const schedule::Shape& shape, uint32_t peer, const Cursor& after, schedule::Ends its_ends = {});

  [[nodiscard]] bool is_late(uint32_t leg) const;
  // True for messages that end only when they have matched. A message that asks first does so in any case.
  [[nodiscard]] bool is_synchronous(uint32_t leg) const;
  void receive(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& starts, Cursor& ends);
  // Returns the CPU times for a request or an answer.
  [[nodiscard]] MessageCost small() const;
  [[nodiscard]] uint64_t answer_ps(bool is_late) const;
  // Returns the price of a receive whose data lie where messages without a receive land.
  [[nodiscard]] Price unexpected_price_of(const Leg& leg) const;
  void send(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& ends, bool by_host = true);
  // Returns the end of the answer to a request, when the CPU has read it.
  uint32_t asked(const Leg& leg, const Cursor& ready, uint64_t read_ps);
  [[nodiscard]] Price price_of(const Leg& leg) const;
  [[nodiscard]] const PairPrice* pair_price_of(const Leg& leg) const;
  [[nodiscard]] uint64_t copy_ps(const Copy& copy) const;
  [[nodiscard]] uint64_t host_ps(const Part& part, Side side) const;

  // The call returns when the schedule is with the NIC and messages that were there before have been copied.
  void offload(uint32_t number, const Offloaded& how);
  // Returns the CPU time for messages and requests that came before they were posted.
  uint64_t late_ps(const Action& action);
  // Sends and receives, copies and reductions; of a schedule that is with the NIC those that wait for nothing.
  uint64_t operations_to_give(const Action& action, const Offloaded& how);
  Cursor execute(const ScriptRound& round, const Cursor& entry, const Execution& by_nic);
  // A receive that a NIC executes: the operation at whose end what waits for it begins.
  uint32_t land(const Leg& leg, uint32_t number, const Execution& by_nic);

  [[nodiscard]] bool asks_first(const Leg& leg) const { return leg.part.bytes > costs_.handshake_bytes; }
  static uint64_t time_of(const Rate& rate, uint64_t bytes) {
    return static_cast<uint64_t>(rate.time_of(Bytes{static_cast<int64_t>(bytes)}).ps);
  }

  const RankScript& script_;
  const Costs& costs_;
  const std::vector<bool>* late_;
  LayoutNumbers& layouts_;
  schedule::Schedule& out_;
  Bill& bill_;
  std::vector<uint32_t>& receives_;
  std::vector<Wait>& waits_;
  schedule::Builder builder_;
  Cursor cursor_;
  std::vector<Cursor> ends_;  // of actions
  std::set<std::vector<uint64_t>> given_;  // schedules that are with the NIC
  uint32_t last_send_ = 0;  // whose start is the end of the call
  uint32_t delays_ = 0;
};

}  // namespace spinloom::predict
