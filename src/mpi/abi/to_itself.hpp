// ToItself - a collective call on a communicator of one rank: what it sends to itself, and where it receives that.
//
// Contract: a pattern names its messages. copies() is true if all can be copied here, and if that is worth it: some
//   have gaps, and they are long enough. Then copy() copies them. Threads: the caller's lock. Time: none.
#pragma once

#include <vector>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class ToItself {
 public:
  explicit ToItself(Comm comm) : comm_(comm) {}
  void send(int, const void* buffer, int64_t count, Datatype type) { add(sends_, buffer, count, type); }
  void receive(int, const void* buffer, int64_t count, Datatype type) { add(receives_, buffer, count, type); }

  [[nodiscard]] bool copies() const;
  // `call`: its name, for the report.
  void copy(const char* call);
  // Used in place of copy() where the MPI does the call: counts the messages with gaps for the report.
  void pass(const char* call, const char* why);

 private:
  void add(std::vector<Place>& places, const void* buffer, int64_t count, Datatype type);

  Comm comm_;
  bool is_wrong_ = false;  // the call is wrong, or left to the MPI for another reason
  bool has_gaps_ = false;
  int64_t bytes_ = 0;
  std::vector<Place> sends_, receives_;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
