#include "simulated/job/place.hpp"

#include <ucontext.h>

#include <cstdio>

namespace spinloom::job {
namespace {

uintptr_t program_counter(const void* context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#endif
}

}  // namespace

PlaceText place_of(const Job& job, const Rank& rank, const void* context) {
  PlaceText place;
  const uintptr_t offset = program_counter(context) - rank.copy().base;
  const char* const function = offset < job.program().size() ? job.program().function_at(offset) : "";
  if (*function != 0) std::snprintf(place.text, sizeof place.text, ", in %s()", function);
  return place;
}

const char* last_call_of(const Rank& rank) {
  return *rank.process().latest_call == 0 ? "none" : rank.process().latest_call;
}

}  // namespace spinloom::job
