// The recorded collective calls in all their forms, with ints and with large counts.
#include "mpi/abi/recorder_calls.hpp"
#include "mpi/abi/recorder_collectives.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using trace::Call;
using trace::CallForm;

// Blocking, non-blocking and persistent.
#define SPINLOOM_HOOKS(ending, name, iname, N, ...)                                                                \
  Recorded<#name ending, int(__VA_ARGS__)>::hook<Call::name, CallForm::blocking, rules::name>(),                   \
      Recorded<#iname ending, int(__VA_ARGS__, Request*)>::hook<Call::name, CallForm::nonblocking, rules::name>(), \
      Recorded<#name "_init" ending, int(__VA_ARGS__, Info, Request*)>::hook<Call::name, CallForm::persistent,     \
                                                                             rules::name>(),
#define SPINLOOM_HOOK(...) SPINLOOM_HOOKS("", __VA_ARGS__)
#define SPINLOOM_HOOK_C(...) SPINLOOM_HOOKS("_c", __VA_ARGS__)

}  // namespace

std::span<const RecordingHook> collective_calls() {
  static const RecordingHook table[] = {SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK, int)
                                            SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK_C, Count)};
  return table;
}

std::span<const RecordingHook> reduction_calls() {
  static const RecordingHook table[] = {SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK, int)
                                            SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK_C, Count)};
  return table;
}

#undef SPINLOOM_HOOK
#undef SPINLOOM_HOOK_C
#undef SPINLOOM_HOOKS

}  // namespace spinloom::mpi::SPINLOOM_ABI
