// Probes: a message that may be a record is taken out of the MPI, so that its true size can be told.
#include <sched.h>

#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// True if there was a claim; `status` then tells of it.
bool found_claim(int source, int tag, Comm comm, Status* status) {
  const Lock lock;
  layer.attend();
  if (layer.claims.empty()) return false;
  const Claim* const claim = layer.see_claim(source, tag, comm);
  if (claim != nullptr) tell_of(claim->status, status);
  return claim != nullptr;
}

// Gives the program the status of a message that the MPI has just seen. False: the message has gone meanwhile.
bool tell(const Status& seen, Comm comm, Status* status) {
  if (!Record::may_be(bytes_of(seen, real))) {
    tell_of(seen, status);
    return true;
  }
  const Lock lock;
  if (!layer.claim_seen(seen, comm)) return false;
  tell_of(layer.see_claim(seen.source, seen.tag, comm)->status, status);
  return true;
}

// Takes a message out of the claims for MPI_Mprobe and MPI_Improbe.
ClaimPointer take(int source, int tag, Comm comm) {
  const Lock lock;
  layer.attend();
  return layer.claims.empty() ? nullptr : layer.take_claim(source, tag, comm);
}

int hand_out(ClaimPointer claim, MessageHandle* message, Status* status) {
  const Lock lock;
  tell_of(claim->status, status);
  return layer.hand_out(std::move(claim), message);
}

// Gives the program the message that the MPI has just matched for it.
int pass_on(MessageHandle matched, const Status& seen, Comm comm, MessageHandle* message, Status* status) {
  if (!Record::may_be(bytes_of(seen, real))) {
    *message = matched;
    tell_of(seen, status);
    return success;
  }
  ClaimPointer claim;
  {
    const Lock lock;
    claim = layer.claim_message(matched, seen, comm);
  }
  return hand_out(std::move(claim), message, status);
}

}  // namespace

int Probe(int source, int tag, Comm comm, Status* status) {
  while (layer.threaded) {  // another thread may claim what this one waits for
    int flag = 0;
    const int code = Iprobe(source, tag, comm, &flag, status);
    if (code != success || flag != 0) return code;
    sched_yield();
  }
  for (;;) {
    if (found_claim(source, tag, comm, status)) return success;
    Status seen{};
    const int code = real.Probe(source, tag, comm, &seen);
    if (code != success || tell(seen, comm, status)) return code;
  }
}

int Iprobe(int source, int tag, Comm comm, int* flag, Status* status) {
  const Lock lock;
  if (found_claim(source, tag, comm, status)) {
    *flag = 1;
    return success;
  }
  Status seen{};
  const int code = real.Iprobe(source, tag, comm, flag, &seen);
  if (code == success && *flag != 0 && !tell(seen, comm, status)) *flag = 0;
  return code;
}

int Mprobe(int source, int tag, Comm comm, MessageHandle* message, Status* status) {
  while (layer.threaded) {
    int flag = 0;
    const int code = Improbe(source, tag, comm, &flag, message, status);
    if (code != success || flag != 0) return code;
    sched_yield();
  }
  if (ClaimPointer claim = take(source, tag, comm)) return hand_out(std::move(claim), message, status);
  MessageHandle matched{};
  Status seen{};
  const int code = real.Mprobe(source, tag, comm, &matched, &seen);
  return code == success ? pass_on(matched, seen, comm, message, status) : code;
}

int Improbe(int source, int tag, Comm comm, int* flag, MessageHandle* message, Status* status) {
  const Lock lock;
  if (ClaimPointer claim = take(source, tag, comm)) {
    *flag = 1;
    return hand_out(std::move(claim), message, status);
  }
  MessageHandle matched{};
  Status seen{};
  const int code = real.Improbe(source, tag, comm, flag, &matched, &seen);
  if (code != success || *flag == 0) return code;
  return pass_on(matched, seen, comm, message, status);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
