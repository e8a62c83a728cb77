// Non-blocking and persistent collective calls where the job asks for the NIC: each is given to the NIC, or goes on to
// the layer's function or the MPI's.
#include "mpi/abi/calls.hpp"
#include "mpi/abi/recorded.hpp"
#include "mpi/abi/requested_offload.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

template <Name name, class Function>
struct OffloadedCall;
template <Name name, class... Arguments>  // those of the blocking call; the last one is the communicator
struct OffloadedCall<name, int(Arguments...)> {
  template <class... Last>
  struct CallForm {
    static inline int (*next)(Arguments..., Last...) = nullptr;
    static inline int (*mpi_function)(Arguments..., Last...) = nullptr;
  };
  using NonBlocking = CallForm<Request*>;
  using Persistent = CallForm<Info, Request*>;

  template <class Requested>
  [[gnu::noinline]] static std::optional<int> try_offload(Lifetime lifetime, Request* request, Arguments... arguments) {
    try {
      const Comm comm = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
      std::optional<int> code;
      {
        const Lock lock;
        RequestedOffload requested = Requested{}(arguments...);
        code = carry(name.letters, requested, lifetime, request);
      }
      return code && *code != success ? raise(comm, *code) : code;
    } catch (...) {
      return raise(handles().comm_world, error_other);
    }
  }
  // Calls that the MPI makes itself are left alone.
  template <class Requested>
  static int non_blocking(Arguments... arguments, Request* request) {
    if (!layer.offload.is_on()) return NonBlocking::next(arguments..., request);
    if (layer.library->contains(__builtin_return_address(0))) return NonBlocking::mpi_function(arguments..., request);
    const std::optional<int> code = try_offload<Requested>(Lifetime::once, request, arguments...);
    return code ? *code : NonBlocking::next(arguments..., request);
  }
  template <class Requested>
  static int persistent(Arguments... arguments, Info info, Request* request) {
    if (!layer.offload.is_on()) return Persistent::next(arguments..., info, request);
    if (layer.library->contains(__builtin_return_address(0)))
      return Persistent::mpi_function(arguments..., info, request);
    const std::optional<int> code = try_offload<Requested>(Lifetime::persistent, request, arguments...);
    return code ? *code : Persistent::next(arguments..., info, request);
  }

  template <class Requested>
  static ForwardingHook non_blocking_hook(const char* call_name) {
    return {call_name, reinterpret_cast<void*>(&non_blocking<Requested>), reinterpret_cast<void**>(&NonBlocking::next),
            reinterpret_cast<void**>(&NonBlocking::mpi_function)};
  }
  template <class Requested>
  static ForwardingHook persistent_hook(const char* call_name) {
    return {call_name, reinterpret_cast<void*>(&persistent<Requested>), reinterpret_cast<void**>(&Persistent::next),
            reinterpret_cast<void**>(&Persistent::mpi_function)};
  }
};

#define SPINLOOM_ON_NIC(ending, name, iname, ...)                                                           \
  OffloadedCall<"MPI_" #iname ending, int(__VA_ARGS__)>::non_blocking_hook<requested::name>(#iname ending), \
      OffloadedCall<"MPI_" #name "_init" ending, int(__VA_ARGS__)>::persistent_hook<requested::name>(#name  \
                                                                                                     "_init" ending),
#define SPINLOOM_HOOK(name, iname, N, ...) SPINLOOM_ON_NIC("", name, iname, __VA_ARGS__)
#define SPINLOOM_HOOK_C(name, iname, N, ...) SPINLOOM_ON_NIC("_c", name, iname, __VA_ARGS__)

}  // namespace

namespace requested {
using Allreduce = Reduction<SPL_ALLREDUCE>;
using Reduce_scatter_block = Reduction<SPL_REDUCE_SCATTER_BLOCK>;
using Scan = Reduction<SPL_SCAN>;
using Exscan = Reduction<SPL_EXSCAN>;
}  // namespace requested

const ForwardingHook* offload_hook(std::string_view name) {
  static const ForwardingHook table[] = {
      SPINLOOM_ON_NIC("", Barrier, Ibarrier, Comm)  //
      SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK, int) SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK_C, Count)
          SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK, int) SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK_C, Count)};
  for (const ForwardingHook& hook : table) {
    if (name == hook.name) return &hook;
  }
  return nullptr;
}

#undef SPINLOOM_HOOK
#undef SPINLOOM_HOOK_C
#undef SPINLOOM_ON_NIC

}  // namespace spinloom::mpi::SPINLOOM_ABI
