// Collective calls with buffers in a GPU's memory, in all their forms.
#include "mpi/abi/lent.hpp"
#include "mpi/abi/loan_rules.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

#define SPINLOOM_LENT(ending, name, iname, N, ...)                                                  \
  Lent<#name ending, int(__VA_ARGS__)>::hook<lending::name, Ending::blocking>(),                    \
      Lent<#iname ending, int(__VA_ARGS__, Request*)>::hook<lending::name, Ending::non_blocking>(), \
      Lent<#name "_init" ending, int(__VA_ARGS__, Info, Request*)>::hook<lending::name, Ending::persistent>(),
#define SPINLOOM_LENT_INT(...) SPINLOOM_LENT("", __VA_ARGS__)
#define SPINLOOM_LENT_LARGE(...) SPINLOOM_LENT("_c", __VA_ARGS__)

}  // namespace

std::span<const OffloadHook> lent_collectives() {
  static const OffloadHook table[] = {SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_LENT_INT, int)
                                          SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_LENT_LARGE, Count)};
  return table;
}
std::span<const OffloadHook> lent_reductions() {
  static const OffloadHook table[] = {SPINLOOM_REDUCTION_CALLS(SPINLOOM_LENT_INT, int)
                                          SPINLOOM_REDUCTION_CALLS(SPINLOOM_LENT_LARGE, Count)};
  return table;
}

#undef SPINLOOM_LENT
#undef SPINLOOM_LENT_INT
#undef SPINLOOM_LENT_LARGE

}  // namespace spinloom::mpi::SPINLOOM_ABI
