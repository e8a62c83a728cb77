// Meeting - all ranks of a job find out that all have come to the same place.
//
// Contract: step() does what can be done now, and returns true when every rank has begun its Meeting of this `number`.
//   The caller must call it again after a while even if no message comes: a message to a rank that has not begun is
//   dropped, or lands in the overflow list, as its answer says, and is sent again. A rank that waits asks the others in
//   turn whether they are still there. A rank that is gone is an Error only if it still owes this rank a message or
//   cannot take this rank's message; otherwise it had finished the Meeting.
// Invariants: (1) the messages are a dissemination: in round k a rank sends one to the rank 2^k places further on, when
//   it has heard from the ranks of the rounds before; (2) messages are empty, an entry takes one, and only these
//   entries take them: a message that comes too early is dropped, so that a Meeting never hears of an earlier one.
// Threads: the owner of the Interface. Time: none.
#pragma once

#include <functional>
#include <vector>

#include "portals/interface/interface.hpp"

namespace spinloom::collective {

class Meeting {
 public:
  // Begins a meeting of `ranks` ranks of the job. Its messages go to portal table entry `portal`. Numbers are below
  // 256.
  [[nodiscard]] static Result<Meeting> begin(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks,
                                             uint32_t number, std::function<void()> spend_call_time);
  [[nodiscard]] Result<bool> step();
  // The Error of a rank that never comes.
  [[nodiscard]] static Error error_of_gone(uint32_t rank);
  // Frees the resources of the Meeting, even if it has not finished.
  void end();

 private:
  Meeting(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks, uint32_t number,
          std::function<void()> spend_call_time)
      : interface_(&interface),
        portal_(portal),
        ranks_(ranks),
        number_(number),
        spend_call_time_(std::move(spend_call_time)) {}
  [[nodiscard]] uint32_t rounds() const { return static_cast<uint32_t>(heard_counters_.size()); }
  [[nodiscard]] uint64_t bits_of(uint32_t round) const;
  [[nodiscard]] Status append_entry(uint32_t round);
  [[nodiscard]] Status send_message(uint32_t round);
  [[nodiscard]] Status take_answers();
  [[nodiscard]] Status ask_next_rank();
  [[nodiscard]] bool waits_for(uint32_t rank) const;
  [[nodiscard]] Status put(uint32_t rank, uint64_t bits);

  portals::Interface* interface_;
  nic::PortalIndex portal_;
  uint32_t ranks_;
  uint32_t number_;
  std::function<void()> spend_call_time_;
  nic::QueueId answer_queue_;
  std::vector<nic::CounterId> heard_counters_;  // one for each round
  std::vector<nic::EntryId> entries_;
  uint32_t round_ = 0;
  bool is_sent_ = false;  // the message of this round is under way
  bool is_acknowledged_ = false;  // the target has the message of this round
  uint32_t idle_steps_ = 0;  // calls of step() that found nothing
  uint32_t asked_distance_ = 0;  // the distance from this rank to the one that was asked last
  bool is_asking_ = false;  // the answer to the last question is still to come
};

}  // namespace spinloom::collective
