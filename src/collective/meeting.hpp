// Meeting - all ranks of a job find out that all have opened their portal table entry.
//
// Contract: step() goes on with what can go on, and is true when every rank has begun its Meeting. It need be called
//   again after a while if nothing comes: a message to a rank that has not begun is dropped, which its acknowledgement
//   tells, and is sent again.
// Invariants: (1) by dissemination: in round k a rank tells the one 2^k places further on, when it has heard from those
//   of the rounds before; (2) messages are empty, and an entry takes one.
// Threads: the owner of the Interface. Time: none.
#pragma once

#include <functional>

#include "portals/interface.hpp"

namespace spinloom::collective {

class Meeting {
 public:
  // Of `ranks` ranks of the job; messages go to the portal table entry `portal`.
  [[nodiscard]] static Result<Meeting> begin(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks,
                                             std::function<void()> call);
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] Status end();

 private:
  Meeting(portals::Interface& interface, nic::PortalIndex portal, uint32_t ranks, std::function<void()> call)
      : interface_(&interface), portal_(portal), ranks_(ranks), call_(std::move(call)) {}
  [[nodiscard]] Status open_round();
  [[nodiscard]] Status tell();

  portals::Interface* interface_;
  nic::PortalIndex portal_;
  uint32_t ranks_;
  std::function<void()> call_;
  uint32_t round_ = 0;
  uint64_t refused_ = 0;  // messages of this rank
  nic::CounterId heard_;
  nic::CounterId told_;
};

}  // namespace spinloom::collective
