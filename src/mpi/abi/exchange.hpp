// Exchange - one collective call, as messages between pairs of ranks on a communicator of the layer's own.
//
// Contract: send() and receive() say what goes to and comes from each rank of Teams::comm(); begin() starts it, and
//   wait() or test() end it, after which it may begin again. What a rank sends to itself is copied.
// Invariants: (1) messages between two ranks meet in the order in which both have named them.
// Threads: one at a time. Time: none.
#pragma once

#include <vector>

#include "mpi/abi/packing.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Exchange {
 public:
  // `call`: its name, for the report.
  Exchange(const char* call, int tag) : call_(call), tag_(tag) {}

  void send(int rank, const void* buffer, int64_t count, Datatype type) {
    add(sends_, {const_cast<void*>(buffer), count, type, rank});
  }
  void receive(int rank, void* buffer, int64_t count, Datatype type) { add(receives_, {buffer, count, type, rank}); }
  // For calls that begin after the program may have freed its types.
  void keep_types();

  [[nodiscard]] int begin();
  // In place of that: the MPI carries the call by `request`, as packed bytes.
  void begin(Request request, std::shared_ptr<const Packing> packing);
  [[nodiscard]] int wait();
  // Whether it has ended; never waits.
  [[nodiscard]] bool test(int& code);

 private:
  struct Part {
    void* buffer;
    int64_t count;
    Datatype type;
    int rank;
  };
  static void add(std::vector<Part>& parts, const Part& part);
  [[nodiscard]] int begin_all();
  [[nodiscard]] int post(const Part& part, bool sends);
  [[nodiscard]] int copy_to_self();
  [[nodiscard]] int end(int code);

  const char* call_;
  int tag_;
  std::vector<Part> sends_, receives_;
  std::vector<std::unique_ptr<KeptType>> kept_;
  std::shared_ptr<const Packing> packing_;
  std::vector<Request> requests_;
  std::vector<Status> statuses_;
};

// Starts it, and makes the program's request.
[[nodiscard]] int start(std::shared_ptr<Exchange> exchange, Request* request);
// The same for one that has begun.
[[nodiscard]] int follow(std::shared_ptr<Exchange> exchange, Request* request);

}  // namespace spinloom::mpi::SPINLOOM_ABI
