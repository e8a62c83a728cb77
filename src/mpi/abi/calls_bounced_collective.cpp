// Collective calls with buffers in a GPU's memory, in all their forms.
#include "mpi/abi/bounce_rules.hpp"
#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

#define SPINLOOM_BOUNCED(ending, name, iname, N, ...)                                                       \
  Bounced<#name ending, int(__VA_ARGS__)>::hook<bounce_rules::name, Ending::blocking>(),                    \
      Bounced<#iname ending, int(__VA_ARGS__, Request*)>::hook<bounce_rules::name, Ending::non_blocking>(), \
      Bounced<#name "_init" ending, int(__VA_ARGS__, Info, Request*)>::hook<bounce_rules::name, Ending::persistent>(),
#define SPINLOOM_BOUNCED_INT(...) SPINLOOM_BOUNCED("", __VA_ARGS__)
#define SPINLOOM_BOUNCED_LARGE(...) SPINLOOM_BOUNCED("_c", __VA_ARGS__)

}  // namespace

std::span<const ForwardingHook> bounced_collectives() {
  static const ForwardingHook table[] = {SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_BOUNCED_INT, int)
                                             SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_BOUNCED_LARGE, Count)};
  return table;
}
std::span<const ForwardingHook> bounced_reductions() {
  static const ForwardingHook table[] = {SPINLOOM_REDUCTION_CALLS(SPINLOOM_BOUNCED_INT, int)
                                             SPINLOOM_REDUCTION_CALLS(SPINLOOM_BOUNCED_LARGE, Count)};
  return table;
}

#undef SPINLOOM_BOUNCED
#undef SPINLOOM_BOUNCED_INT
#undef SPINLOOM_BOUNCED_LARGE

}  // namespace spinloom::mpi::SPINLOOM_ABI
