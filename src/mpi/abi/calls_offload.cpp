// Non-blocking and persistent collective calls where the job asks for the NIC: each is given to the NIC, or goes on to
// the layer's function or the MPI's.
#include "mpi/abi/calls.hpp"
#include "mpi/abi/recorded.hpp"
#include "mpi/abi/requested_offload.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

template <Name name, class Function>
struct OnNic;
template <Name name, class... Arguments>  // those of the blocking call; the last one is the communicator
struct OnNic<name, int(Arguments...)> {
  template <class... Last>
  struct Form {
    static inline int (*next)(Arguments..., Last...) = nullptr;
    static inline int (*the_mpis)(Arguments..., Last...) = nullptr;
  };
  using NonBlocking = Form<Request*>;
  using Persistent = Form<Info, Request*>;

  template <class By>
  [[gnu::noinline]] static std::optional<int> given(Lasts lasts, Request* request, Arguments... arguments) {
    try {
      const Comm comm = std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
      std::optional<int> code;
      {
        const Lock lock;
        RequestedOffload requested = By{}(arguments...);
        code = carry(name.letters, requested, lasts, request);
      }
      return code && *code != success ? raise(comm, *code) : code;
    } catch (...) {
      return raise(handles().comm_world, error_other);
    }
  }
  // Calls that the MPI makes itself are left alone.
  template <class By>
  static int non_blocking(Arguments... arguments, Request* request) {
    if (!layer.offload.is_on()) return NonBlocking::next(arguments..., request);
    if (layer.library->inside(__builtin_return_address(0))) return NonBlocking::the_mpis(arguments..., request);
    const std::optional<int> code = given<By>(Lasts::once, request, arguments...);
    return code ? *code : NonBlocking::next(arguments..., request);
  }
  template <class By>
  static int persistent(Arguments... arguments, Info info, Request* request) {
    if (!layer.offload.is_on()) return Persistent::next(arguments..., info, request);
    if (layer.library->inside(__builtin_return_address(0))) return Persistent::the_mpis(arguments..., info, request);
    const std::optional<int> code = given<By>(Lasts::persistent, request, arguments...);
    return code ? *code : Persistent::next(arguments..., info, request);
  }

  template <class By>
  static OffloadHook non_blocking_hook(const char* word) {
    return {word, reinterpret_cast<void*>(&non_blocking<By>), reinterpret_cast<void**>(&NonBlocking::next),
            reinterpret_cast<void**>(&NonBlocking::the_mpis)};
  }
  template <class By>
  static OffloadHook persistent_hook(const char* word) {
    return {word, reinterpret_cast<void*>(&persistent<By>), reinterpret_cast<void**>(&Persistent::next),
            reinterpret_cast<void**>(&Persistent::the_mpis)};
  }
};

#define SPINLOOM_ON_NIC(ending, name, iname, ...)                                                   \
  OnNic<"MPI_" #iname ending, int(__VA_ARGS__)>::non_blocking_hook<requested::name>(#iname ending), \
      OnNic<"MPI_" #name "_init" ending, int(__VA_ARGS__)>::persistent_hook<requested::name>(#name "_init" ending),
#define SPINLOOM_HOOK(name, iname, N, ...) SPINLOOM_ON_NIC("", name, iname, __VA_ARGS__)
#define SPINLOOM_HOOK_C(name, iname, N, ...) SPINLOOM_ON_NIC("_c", name, iname, __VA_ARGS__)

}  // namespace

namespace requested {
using Allreduce = Reduction<SPL_ALLREDUCE>;
using Reduce_scatter_block = Reduction<SPL_REDUCE_SCATTER_BLOCK>;
using Scan = Reduction<SPL_SCAN>;
using Exscan = Reduction<SPL_EXSCAN>;
}  // namespace requested

const OffloadHook* offload_hook(std::string_view word) {
  static const OffloadHook table[] = {
      SPINLOOM_ON_NIC("", Barrier, Ibarrier, Comm)  //
      SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK, int) SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK_C, Count)
          SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK, int) SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK_C, Count)};
  for (const OffloadHook& hook : table) {
    if (word == hook.name) return &hook;
  }
  return nullptr;
}

#undef SPINLOOM_HOOK
#undef SPINLOOM_HOOK_C
#undef SPINLOOM_ON_NIC

}  // namespace spinloom::mpi::SPINLOOM_ABI
