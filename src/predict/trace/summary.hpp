// Summary - what a rank's calls add up to.
//
// Contract: calls_of() counts by call and form, in the order of their first events. Bytes are those that the program
//   named: of the buffers that it sent from and received into, each peer's counted where the call has one for each.
//   Calls that failed have none. Bytes of persistent requests count for the call that starts them. full_name() is the
//   name of the MPI call without "MPI_"; Comm_make and Win_make stand for all calls that make these.
// Threads: pure. Time: host time of the calls, in ns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

[[nodiscard]] std::string full_name(Call call, CallForm form);  // "Isend"

struct Traffic {
  int64_t sent_bytes = 0;
  int64_t received_bytes = 0;
};
[[nodiscard]] Traffic traffic_of(const RankTrace& trace, const Signature& signature);

struct CallSum {
  Call call = Call::Init;
  CallForm form = CallForm::blocking;
  uint64_t count = 0;  // calls, without polls in vain
  uint64_t polls = 0;
  uint64_t errors = 0;
  uint64_t time_ns = 0;
  Traffic traffic;
};
[[nodiscard]] std::vector<CallSum> calls_of(const RankTrace& trace);

}  // namespace spinloom::trace
