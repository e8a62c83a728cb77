// RmaArguments - finds out from the MPI itself whether it takes the types and the operation of an access to a window.
//
// Contract: begin() makes a window of this process alone, whose epoch lasts until end(). The MPI's own access on that
//   window, to MPI_PROC_NULL, moves nothing, and returns an error if the arguments are wrong. The caller makes it, and
//   add()s a call that the MPI has taken; was_accepted() is true for such a call.
// Invariants: (1) what was added holds while no datatype has been freed; (2) can_ask() is false if begin() could not
//   make the window: then no such access is made.
// Threads: the caller's lock, but for begin(), end() and window(). Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class RmaArguments {
 public:
  // All that the answer may depend on.
  struct Call {
    const char* name = "";  // one address for each
    std::array<uint64_t, 4> handles{};  // the handles of its datatypes, in order, and last that of its operation
    uint32_t has_elements = 0;  // a bit for each datatype of which there are elements
    friend bool operator==(const Call&, const Call&) = default;
  };
  void begin();
  void end();
  [[nodiscard]] bool can_ask() const { return can_ask_; }
  [[nodiscard]] Win window() const { return window_; }
  [[nodiscard]] bool was_accepted(const Call& call);
  void add(const Call& call);

 private:
  static constexpr size_t most = 64;
  bool can_ask_ = false;
  Win window_{};
  std::vector<Call> accepted_;  // the ones used last are in front
  uint64_t changes_ = 0;  // Types::changes() when `accepted_` was last empty or used
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
