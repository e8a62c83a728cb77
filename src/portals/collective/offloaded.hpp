// Offloaded - the Graph of one rank on its NIC: counters, triggered operations, entries.
//
// Contract: post() brings the operations to the NIC, start() lets them go, test() says whether all have ended. Then a
//   cached schedule may be started again, any number of times. start() begins the operations that wait for no other,
//   and posts receives. withdraw() takes back what is under way; if it succeeds, nothing reads or writes memory of the
//   Graph after it.
//   A failed operation (a peer that is gone, an entry that does not allow it) is an Error of test().
// Invariants: (1) no rank waits for another in post() and start(); (2) after start() the CPU is needed only for what
//   Endpoint::progress() does; (3) messages of a later start at a peer never meet a receive of an earlier one: entries
//   take one message, and messages between two ranks stay in order.
// Threads: the owner of the Interface. Time: that of its port.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "portals/collective/endpoint.hpp"
#include "portals/collective/plan.hpp"

namespace spinloom::collective {

class Offloaded {
 public:
  ~Offloaded();
  Offloaded(const Offloaded&) = delete;
  Offloaded& operator=(const Offloaded&) = delete;

  [[nodiscard]] Status post();
  [[nodiscard]] Status start();
  // While it is under way, every 64th call reads all counters for failures; with `with_failures` each call does.
  [[nodiscard]] Result<bool> test(bool with_failures = false);
  [[nodiscard]] Status wait();
  // Waits for operations that have begun, at most Endpoint::patience; after that time it returns an Error, and may be
  // called again. The schedule cannot be started again, unless it had ended.
  [[nodiscard]] Status withdraw();

  enum class State : uint8_t { created, posted, active, executed };
  // These name operations by their original numbers, those that they had before long messages became several.
  // `executed`: the operation has begun, and perhaps ended.
  [[nodiscard]] State state(uint32_t original) const;
  [[nodiscard]] Status enable(uint32_t original);
  // Keeps the operation from beginning. True if it had not begun.
  [[nodiscard]] Result<bool> disable(uint32_t original);

  [[nodiscard]] bool is_cached() const { return cached_; }
  [[nodiscard]] bool is_under_way() const { return under_way_; }
  [[nodiscard]] bool is_posted() const { return is_posted_; }
  [[nodiscard]] NicResources resources() const { return resources_; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  // The number of operations before long messages became several.
  [[nodiscard]] size_t original_count() const { return graph_.number_of.size(); }
  // The counter and the value at which all has ended, for reports.
  [[nodiscard]] nic::CounterId done_counter() const {
    return is_posted_ ? counters_[counter_done].id : nic::CounterId{};
  }
  [[nodiscard]] uint64_t done_value() const {
    return is_posted_ ? counters_[counter_done].base + starts_ * plan_.growth[counter_done] : 0;
  }

 private:
  friend class Endpoint;
  // A piece of a local computation.
  struct Step {
    uint8_t* from = nullptr;
    uint8_t* to = nullptr;
    uint64_t bytes = 0;
  };

  Offloaded(Endpoint& endpoint, const Endpoint::Team& team, uint32_t number, Graph graph, bool cached,
            std::unique_ptr<uint8_t[]> memory);
  void cut_into_steps();
  [[nodiscard]] Status bring_to_nic();
  void leave_nic(bool counters_are_known);
  [[nodiscard]] Result<bool> may_start_now();
  [[nodiscard]] Status start_now();
  [[nodiscard]] Status append(uint32_t number);
  [[nodiscard]] Status issue(uint32_t number, const std::optional<nic::Trigger>& trigger);
  [[nodiscard]] Status issue_steps(uint32_t number, const std::optional<nic::Trigger>& trigger);
  [[nodiscard]] Status begin_by_cpu();
  [[nodiscard]] Status take_early(uint32_t number, const nic::Event& event);
  [[nodiscard]] bool is_met(const Wait& wait) const;
  [[nodiscard]] std::optional<nic::Trigger> trigger_of(const Wait& wait) const;
  [[nodiscard]] nic::CounterId counter_of(uint32_t number) const { return counters_[number].id; }
  [[nodiscard]] uint64_t bits_of(const Vertex& operation) const;
  [[nodiscard]] uint32_t beginning_of(uint32_t original) const;
  [[nodiscard]] Result<bool> check_end(bool with_failures);
  // The schedule has ended with an error, which test() tells from now on.
  Error fail_with(const Error& error);
  [[nodiscard]] bool unlink_receives();
  [[nodiscard]] bool try_to_quiesce();

  Endpoint& endpoint_;
  portals::Interface& interface_;
  const std::vector<uint32_t> ranks_;
  const uint32_t team_;
  const uint64_t schedule_bits_;  // the match bits of its messages, without a message's own
  const bool cached_;
  Graph graph_;
  std::unique_ptr<uint8_t[]> memory_;
  std::vector<std::vector<Step>> steps_;  // one list for each operation
  std::vector<uint32_t> entry_operations_;  // operations that are entries, in the order of their appends
  std::vector<uint32_t> cpu_dependent_operations_;  // their numbers
  Plan plan_;
  NicResources resources_;
  uint64_t number_ = 0;  // this schedule's number at the Endpoint, in user pointers of events
  std::vector<Counter> counters_;  // one for each counter of the plan; empty while not posted
  nic::DescriptorRef contiguous_descriptor_;  // counts the operations under way whose memory is in one piece
  std::vector<nic::DescriptorRef> descriptors_;  // one for each operation: its memory, if that is in several pieces
  std::vector<nic::EntryId> receives_;  // each operation's entry of the latest start
  std::vector<bool> enabled_;  // one for each operation: spl_enable() was called since the latest start
  // One for each operation, then one for each relay: it has begun; used if the CPU begins them.
  std::vector<bool> begun_;
  std::map<uint32_t, uint64_t> early_sends_;  // the number of early messages that a start sends to each rank
  std::set<uint32_t> partners_;  // ranks with which it exchanges messages
  std::list<Offloaded*>::iterator resident_place_;  // the place in the Endpoint's resident_schedules_
  uint64_t starts_ = 0;  // starts since post()
  uint64_t all_starts_ = 0;  // starts since the schedule was made
  uint64_t looks_ = 0;  // calls of has_ended() that found it under way
  bool is_posted_ = false;
  bool is_over_ = false;  // the schedule is not cached, and has been started
  bool under_way_ = false;
  bool waits_for_peer_ = false;
  std::optional<Error> failure_;
};

}  // namespace spinloom::collective
