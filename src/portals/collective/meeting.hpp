// Meeting - all ranks of a job find out that all have come to the same place.
//
// Contract: step() goes on with what can go on, and is true when every rank has begun its Meeting of this `number`. It
//   need be called again after a while if nothing comes: a message to a rank that has not begun is dropped, or lands in
//   the overflow list, which its answer tells, and is sent again. A rank that waits asks the others in turn whether
//   they are still there. One that is gone is an Error only if it still owes this rank a message or cannot take this
//   rank's; otherwise it had finished the Meeting.
// Invariants: (1) by dissemination: in round k a rank tells the one 2^k places further on, when it has heard from those
//   of the rounds before; (2) messages are empty, an entry takes one, and only these entries take them: what comes too
//   early is dropped, so that a Meeting never hears of an earlier one.
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
                                             uint32_t number, std::function<void()> call);
  [[nodiscard]] Result<bool> step();
  // The Error of a rank that never comes.
  [[nodiscard]] static Error gone(uint32_t rank);
  // Takes back what a Meeting has that ended early, too.
  void end();

 private:
  Meeting(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks, uint32_t number,
          std::function<void()> call)
      : interface_(&interface), portal_(portal), ranks_(ranks), number_(number), call_(std::move(call)) {}
  [[nodiscard]] uint32_t rounds() const { return static_cast<uint32_t>(heard_.size()); }
  [[nodiscard]] uint64_t bits_of(uint32_t round) const;
  [[nodiscard]] Status expect(uint32_t round);
  [[nodiscard]] Status say(uint32_t round);
  [[nodiscard]] Status take_answers();
  [[nodiscard]] Status ask_the_next();
  [[nodiscard]] bool waits_for(uint32_t rank) const;
  [[nodiscard]] Status put(uint32_t rank, uint64_t bits);

  portals::Interface* interface_;
  nic::PortalIndex portal_;
  uint32_t ranks_;
  uint32_t number_;
  std::function<void()> call_;
  nic::QueueId answers_;
  std::vector<nic::CounterId> heard_;  // by round
  std::vector<nic::EntryId> entries_;
  uint32_t round_ = 0;
  bool said_ = false;  // the message of this round is under way
  bool is_told_ = false;  // and its target has it
  uint32_t idle_ = 0;  // calls of step() that found nothing
  uint32_t asked_ = 0;  // the rank that was asked last, counted from this one
  bool asks_ = false;  // its answer is to come
};

}  // namespace spinloom::collective
