// RmaArguments - whether the MPI takes the types and the operation of an access to a window, asked of the MPI itself.
//
// Contract: begin() makes a window of this process alone, whose epoch lasts until end(). The MPI's own access on it, to
//   no rank, moves nothing, and tells what it thinks of the arguments. has_taken() says whether it was asked about such
//   a call before, and took it.
// Invariants: (1) its answers hold while no datatype has been freed; (2) without the window nothing is asked: asks() is
//   false.
// Threads: the caller's lock, but for window(). Time: none.
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
    std::array<uint64_t, 4> handles{};  // of its datatypes and its operation
    uint32_t filled = 0;  // a bit for each datatype of which there are elements
    friend bool operator==(const Call&, const Call&) = default;
  };
  void begin();
  void end();
  [[nodiscard]] bool asks() const { return asks_; }
  [[nodiscard]] Win window() const { return window_; }
  [[nodiscard]] bool has_taken(const Call& call);
  void add(const Call& call);

 private:
  static constexpr size_t most = 64;
  bool asks_ = false;
  Win window_{};
  std::vector<Call> taken_;  // the ones used last are in front
  uint64_t changes_ = 0;  // of Types
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
