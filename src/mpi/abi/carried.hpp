// CarriedCall - a call that the layer carries, and the request that the program has for it: a non-blocking or
//   persistent collective call, or an access to a window on the NIC.
//
// Contract: begin() starts it; test() says whether it has ended, after which it may begin again; wait() ends it.
//   start() begins it and makes the program's request, a generalized one; follow() makes the request of a call that has
//   begun. Where the MPI refuses that request, the call is waited for, and the program gets MPI_REQUEST_NULL. persist()
//   makes a persistent request, each start of which begins the call.
// Threads: one at a time for each. test() is called with the lock, begin() and wait() with or without it; the functions
//   below take it themselves. Time: none.
#pragma once

#include <memory>

#include "mpi/abi/abi.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class CarriedCall {
 public:
  CarriedCall() = default;
  CarriedCall(const CarriedCall&) = delete;
  CarriedCall& operator=(const CarriedCall&) = delete;
  virtual ~CarriedCall() = default;
  [[nodiscard]] virtual int begin() = 0;
  // True if the call has ended, with error code `code`. Never waits.
  [[nodiscard]] virtual bool test(int& code) = 0;
  [[nodiscard]] virtual int wait() = 0;
};

[[nodiscard]] int start(std::shared_ptr<CarriedCall> carried, Request* request);
[[nodiscard]] int follow(std::shared_ptr<CarriedCall> carried, Request* request);
// `comm`: the communicator whose error handler is called.
[[nodiscard]] int persist(std::shared_ptr<CarriedCall> carried, Comm comm, Request* request);

}  // namespace spinloom::mpi::SPINLOOM_ABI
