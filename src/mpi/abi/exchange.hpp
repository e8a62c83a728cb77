// Exchange - one collective call, as messages between pairs of ranks on a communicator of the layer's own.
//
// Contract: send() and receive() say what goes to and comes from each rank of Teams::comm(); begin() starts it, and
//   wait() or test() end it, after which it may begin again. run() does a blocking call, by hatches where they are open, else by
//   the MPI's messages. What a rank sends to itself is copied.
// Invariants: (1) messages between two ranks meet in the order in which both have named them.
// Threads: one at a time. Time: none.
#pragma once

#include <vector>

#include "mpi/abi/packing.hpp"
#include "mpi/hatches.hpp"

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
  [[nodiscard]] int run(Hatches& hatches);

 private:
  struct Part {
    void* buffer;
    int64_t count;
    Datatype type;
    int rank;
    uint64_t message = 0;  // its number, by hatches
    uint64_t parcel = 0;  // the serial of what its receiver copies; 0: nothing
    bool is_over = false;
  };
  static void add(std::vector<Part>& parts, const Part& part);
  [[nodiscard]] static Place place_of(const Part& part);
  [[nodiscard]] int begin_all();
  [[nodiscard]] int post(const Part& part, bool sends);
  [[nodiscard]] int post_to_mpi(const Part& part);
  [[nodiscard]] int pass(Hatches& hatches);
  void number(Hatches& hatches);
  // Whether anything has moved. The first error becomes `code`.
  [[nodiscard]] bool step(Hatches& hatches, int& code);
  [[nodiscard]] bool hand_out(Hatches& hatches, Part& part, int& code);
  [[nodiscard]] bool take_in(Hatches& hatches, Part& part, int& code);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool waits_for_the_dead(const Hatches& hatches) const;
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
