// Probes: a message that may be a record is taken out of the MPI, so that its true size can be told.
#include <sched.h>

#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// True if there was a claim; `status` then tells of it.
bool give_status_of_claim(int source, int tag, Comm comm, Status* status) {
  const Lock lock;
  layer.attend();
  if (layer.claims.empty()) return false;
  const Claim* const claim = layer.find_claim(source, tag, comm);
  if (claim != nullptr) give_status(claim->status, status);
  return claim != nullptr;
}

// Gives the program the status of a message that the MPI has just seen. False: the message has gone meanwhile.
bool give_status_of_message(const Status& seen, Comm comm, Status* status) {
  if (!Record::may_be(bytes_of(seen, real))) {
    give_status(seen, status);
    return true;
  }
  const Lock lock;
  if (!layer.claim_seen(seen, comm)) return false;
  give_status(layer.find_claim(seen.source, seen.tag, comm)->status, status);
  return true;
}

// Takes a message out of the claims for MPI_Mprobe and MPI_Improbe.
ClaimPointer take_claim(int source, int tag, Comm comm) {
  const Lock lock;
  layer.attend();
  return layer.claims.empty() ? nullptr : layer.take_claim(source, tag, comm);
}

int hand_out(ClaimPointer claim, MessageHandle* message, Status* status) {
  const Lock lock;
  give_status(claim->status, status);
  return layer.hand_out(std::move(claim), message);
}

// Gives the program the message that the MPI has just matched for it.
int give_message(MessageHandle matched, const Status& seen, Comm comm, MessageHandle* message, Status* status) {
  if (!Record::may_be(bytes_of(seen, real))) {
    *message = matched;
    give_status(seen, status);
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
  while (layer.is_threaded) {  // another thread may claim what this one waits for
    int flag = 0;
    const int code = Iprobe(source, tag, comm, &flag, status);
    if (code != success || flag != 0) return code;
    sched_yield();
  }
  for (;;) {
    if (give_status_of_claim(source, tag, comm, status)) return success;
    Status seen{};
    const int code = real.Probe(source, tag, comm, &seen);
    if (code != success || give_status_of_message(seen, comm, status)) return code;
  }
}

int Iprobe(int source, int tag, Comm comm, int* flag, Status* status) {
  const Lock lock;
  if (give_status_of_claim(source, tag, comm, status)) {
    *flag = 1;
    return success;
  }
  Status seen{};
  const int code = real.Iprobe(source, tag, comm, flag, &seen);
  if (code == success && *flag != 0 && !give_status_of_message(seen, comm, status)) *flag = 0;
  return code;
}

int Mprobe(int source, int tag, Comm comm, MessageHandle* message, Status* status) {
  while (layer.is_threaded) {
    int flag = 0;
    const int code = Improbe(source, tag, comm, &flag, message, status);
    if (code != success || flag != 0) return code;
    sched_yield();
  }
  if (ClaimPointer claim = take_claim(source, tag, comm)) return hand_out(std::move(claim), message, status);
  MessageHandle matched{};
  Status seen{};
  const int code = real.Mprobe(source, tag, comm, &matched, &seen);
  return code == success ? give_message(matched, seen, comm, message, status) : code;
}

int Improbe(int source, int tag, Comm comm, int* flag, MessageHandle* message, Status* status) {
  const Lock lock;
  if (ClaimPointer claim = take_claim(source, tag, comm)) {
    *flag = 1;
    return hand_out(std::move(claim), message, status);
  }
  MessageHandle matched{};
  Status seen{};
  const int code = real.Improbe(source, tag, comm, flag, &matched, &seen);
  if (code != success || *flag == 0) return code;
  return give_message(matched, seen, comm, message, status);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
