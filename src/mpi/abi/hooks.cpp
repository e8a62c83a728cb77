// The layer's functions by the names of MPI's calls, for the front.
#include <iterator>

#include "mpi/abi/calls.hpp"
#include "mpi/front.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

Hook table[] = {
#define SPINLOOM_HOOK(name) {#name, address(&SPINLOOM_ABI::name)},
    SPINLOOM_HOOK(Init) SPINLOOM_HOOK(Init_thread) SPINLOOM_HOOK(Finalize) SPINLOOM_HOOK(Start) SPINLOOM_HOOK(Startall)
        SPINLOOM_HOOK(Wait) SPINLOOM_HOOK(Waitall) SPINLOOM_HOOK(Waitany) SPINLOOM_HOOK(Waitsome) SPINLOOM_HOOK(Test)
            SPINLOOM_HOOK(Testall) SPINLOOM_HOOK(Testany) SPINLOOM_HOOK(Testsome) SPINLOOM_HOOK(Request_get_status)
                SPINLOOM_HOOK(Request_get_status_all) SPINLOOM_HOOK(Request_get_status_any)
                    SPINLOOM_HOOK(Request_get_status_some) SPINLOOM_HOOK(Request_free) SPINLOOM_HOOK(Cancel)
                        SPINLOOM_HOOK(Probe) SPINLOOM_HOOK(Iprobe) SPINLOOM_HOOK(Mprobe) SPINLOOM_HOOK(Improbe)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOK(name, M, parameters) {#name, address<int parameters>(&SPINLOOM_ABI::name<M>)},
                            SPINLOOM_COUNTED_CALLS(SPINLOOM_HOOK, int) SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_HOOK, int)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOK(name, M, parameters) {#name "_c", address<int parameters>(&SPINLOOM_ABI::name<M>)},
                                SPINLOOM_COUNTED_CALLS(SPINLOOM_HOOK, Count)
                                    SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_HOOK, Count)
#undef SPINLOOM_HOOK
};

}  // namespace

Hooks hooks() {
  static const std::string missing = real.load();
  if (!missing.empty()) return {nullptr, 0};  // an MPI before 3.0: every call goes straight to it
  return {table, std::size(table)};
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
