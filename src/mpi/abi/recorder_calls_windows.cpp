// The recorded calls of windows, with ints and with large counts.
#include "mpi/abi/recorder_calls.hpp"
#include "mpi/abi/recorder_windows.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using trace::Call;
using trace::CallForm;

#define SPINLOOM_PLAIN(name, call, rule, parameters) \
  Recorded<#name, int parameters>::hook<Call::call, CallForm::blocking, rules::rule>()
#define SPINLOOM_AS(ending, N, name, call, form, rule, ...) \
  Recorded<#name ending, int(__VA_ARGS__)>::template hook<Call::call, CallForm::form, rules::rule>()
#define SPINLOOM_FORMS_OF(ending, N)                                                                                   \
  SPINLOOM_AS(ending, N, Win_create, Win_make, blocking, Win_create, void*, Aint, N, Info, Comm, Win*),                \
      SPINLOOM_AS(ending, N, Win_allocate, Win_make, blocking, Win_allocate, Aint, N, Info, Comm, void*, Win*),        \
      SPINLOOM_AS(ending, N, Win_allocate_shared, Win_make, blocking, Win_allocate_shared, Aint, N, Info, Comm, void*, \
                  Win*),                                                                                               \
      SPINLOOM_AS(ending, N, Put, Put, blocking, Put, const void*, N, Datatype, int, Aint, N, Datatype, Win),          \
      SPINLOOM_AS(ending, N, Get, Get, blocking, Get, void*, N, Datatype, int, Aint, N, Datatype, Win),                \
      SPINLOOM_AS(ending, N, Rput, Put, nonblocking, Put, const void*, N, Datatype, int, Aint, N, Datatype, Win,       \
                  Request*),                                                                                           \
      SPINLOOM_AS(ending, N, Rget, Get, nonblocking, Get, void*, N, Datatype, int, Aint, N, Datatype, Win, Request*),  \
      SPINLOOM_AS(ending, N, Accumulate, Accumulate, blocking, Put, const void*, N, Datatype, int, Aint, N, Datatype,  \
                  Op, Win),                                                                                            \
      SPINLOOM_AS(ending, N, Raccumulate, Accumulate, nonblocking, Put, const void*, N, Datatype, int, Aint, N,        \
                  Datatype, Op, Win, Request*),                                                                        \
      SPINLOOM_AS(ending, N, Get_accumulate, Get_accumulate, blocking, GetAccumulate, const void*, N, Datatype, void*, \
                  N, Datatype, int, Aint, N, Datatype, Op, Win),                                                       \
      SPINLOOM_AS(ending, N, Rget_accumulate, Get_accumulate, nonblocking, GetAccumulate, const void*, N, Datatype,    \
                  void*, N, Datatype, int, Aint, N, Datatype, Op, Win, Request*)

}  // namespace

std::span<const RecordingHook> window_calls() {
  static const RecordingHook table[] = {
      SPINLOOM_FORMS_OF("", int),
      SPINLOOM_FORMS_OF("_c", Count),
      SPINLOOM_PLAIN(Win_create_dynamic, Win_make, Win_create_dynamic, (Info, Comm, Win*)),
      SPINLOOM_PLAIN(Win_free, Win_free, Win_free, (Win*)),
      SPINLOOM_PLAIN(Win_fence, Win_fence, WindowCall, (int, Win)),
      SPINLOOM_PLAIN(Win_start, Win_start, WindowCall, (Group, int, Win)),
      SPINLOOM_PLAIN(Win_complete, Win_complete, WindowCall, (Win)),
      SPINLOOM_PLAIN(Win_post, Win_post, WindowCall, (Group, int, Win)),
      SPINLOOM_PLAIN(Win_wait, Win_wait, WindowCall, (Win)),
      SPINLOOM_PLAIN(Win_test, Win_wait, Win_test, (Win, int*)),
      SPINLOOM_PLAIN(Win_lock, Win_lock, Win_lock, (int, int, int, Win)),
      SPINLOOM_PLAIN(Win_unlock, Win_unlock, TargetCall, (int, Win)),
      SPINLOOM_PLAIN(Win_lock_all, Win_lock_all, WindowCall, (int, Win)),
      SPINLOOM_PLAIN(Win_unlock_all, Win_unlock_all, WindowCall, (Win)),
      SPINLOOM_PLAIN(Win_flush, Win_flush, TargetCall, (int, Win)),
      SPINLOOM_PLAIN(Win_flush_local, Win_flush, TargetCall, (int, Win)),
      SPINLOOM_PLAIN(Win_flush_all, Win_flush, WindowCall, (Win)),
      SPINLOOM_PLAIN(Win_flush_local_all, Win_flush, WindowCall, (Win)),
      SPINLOOM_PLAIN(Fetch_and_op, Fetch_and_op, FetchAndOp, (const void*, void*, Datatype, int, Aint, Op, Win)),
      SPINLOOM_PLAIN(Compare_and_swap, Compare_and_swap, CompareAndSwap,
                     (const void*, const void*, void*, Datatype, int, Aint, Win)),
  };
  return table;
}

#undef SPINLOOM_PLAIN
#undef SPINLOOM_AS
#undef SPINLOOM_FORMS_OF

}  // namespace spinloom::mpi::SPINLOOM_ABI
