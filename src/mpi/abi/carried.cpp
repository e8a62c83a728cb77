#include "mpi/abi/carried.hpp"

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Callback of a call's generalized request, which reports the call's error code.
int query_outcome(void* code, Status* status) {
  query_nothing(nullptr, status);
  return *static_cast<int*>(code);
}
int free_outcome(void* code) {
  delete static_cast<int*>(code);
  return success;
}

}  // namespace

int start(std::shared_ptr<CarriedCall> carried, Request* request) {
  const int code = carried->begin();
  return code == success ? follow(std::move(carried), request) : code;
}

int follow(std::shared_ptr<CarriedCall> carried, Request* request) {
  auto outcome = std::make_unique<int>(success);
  OngoingCall call{std::move(carried), {}, outcome.get()};
  const int code =
      real.Grequest_start(&query_outcome, &free_outcome, &cancel_nothing, outcome.get(), &call.program_request);
  if (code != success) {
    *request = handles().request_null;
    return call.carried->wait();
  }
  (void)outcome.release();
  *request = call.program_request;
  layer.add_ongoing(std::move(call));
  return success;
}

// Gives the program the request of a persistent send that never starts. Each start of the call has another request,
// which stands in for it. The send is not to MPI_PROC_NULL: once such a request is freed, persistent collectives of
// MPICH 4.0.2 itself may never end.
int persist(std::shared_ptr<CarriedCall> carried, Comm comm, Request* request) {
  constexpr int anybody = 0;
  const int code = real.Send_init(nullptr, 0, handles().byte, anybody, 0, layer.teams.comm(), request);
  if (code != success) return code;
  const Lock lock;
  auto* const tracked = new TrackedRequest{.place = {}, .is_receive = false, .is_persistent = true};
  tracked->place.comm = comm;
  tracked->carried = std::move(carried);
  layer.remember(*request, tracked);
  return success;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
