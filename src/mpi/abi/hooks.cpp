// The layer's functions by the names of MPI's calls, for the front.
#include <iterator>

#include "mpi/abi/bypass.hpp"
#include "mpi/abi/int_counts.hpp"
#include "mpi/abi/int_counts_files.hpp"
#include "mpi/entry/front.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// Calls for which peers need not have the layer, because what the layer does in them concerns this rank only. They are
// the layer's where `is_pack_on` is true, also while `is_on` is false.
template <auto function>
inline constexpr bool needs_no_peers = false;
#define SPINLOOM_NEEDS_NO_PEERS(call)                                    \
  template <>                                                            \
  inline constexpr bool needs_no_peers<&SPINLOOM_ABI::call<int>> = true; \
  template <>                                                            \
  inline constexpr bool needs_no_peers<&SPINLOOM_ABI::call<Count>> = true;
SPINLOOM_NEEDS_NO_PEERS(Pack)
SPINLOOM_NEEDS_NO_PEERS(Unpack)
SPINLOOM_NEEDS_NO_PEERS(Alltoallw)
SPINLOOM_NEEDS_NO_PEERS(Neighbor_alltoallv)
SPINLOOM_NEEDS_NO_PEERS(Neighbor_alltoallw)
#undef SPINLOOM_NEEDS_NO_PEERS
template <>
inline constexpr bool needs_no_peers<&SPINLOOM_ABI::Type_free> = true;
template <auto function>
[[nodiscard]] bool is_on() {
  return needs_no_peers<function> ? layer.is_pack_on : layer.is_on;
}

// The layer's function as the program calls it. Calls that need nothing of the layer, those that the MPI makes itself,
// and those for which the layer is off (is_on()) go to the MPI by a jump. No exception leaves through the program's C:
// it becomes an error of MPI.
template <class Call>
struct Guarded;
template <class... Arguments>
struct Guarded<int(Arguments...)> {
  template <int (*function)(Arguments...)>
  static int timed(Arguments... arguments) {
    const int64_t begin_ticks = ticks();
    const int code = function(arguments...);
    layer.in_calls_ticks.fetch_add(ticks() - begin_ticks, std::memory_order_relaxed);
    return code;
  }
  template <int (*function)(Arguments...)>
  [[gnu::noinline]] static int run_layer(Arguments... arguments) {
    try {
      if (layer.tally) [[unlikely]]
        return timed<function>(arguments...);
      return function(arguments...);
    } catch (...) {
      return raise(handles().comm_world, error_other);
    }
  }
  template <int (*function)(Arguments...), auto mpi_function>
  static int call(Arguments... arguments) {
    if (bypasses<function>(arguments...)) return mpi_function()(arguments...);
    if (!is_on<function>() || layer.library->contains(__builtin_return_address(0))) [[unlikely]]
      return mpi_function()(arguments...);
    return run_layer<function>(arguments...);
  }
};

#define SPINLOOM_HOOKED_CALLS(X)                                         \
  X(Start, (Request*))                                                   \
  X(Startall, (int, Request*))                                           \
  X(Wait, (Request*, Status*))                                           \
  X(Waitall, (int, Request*, Status*))                                   \
  X(Waitany, (int, Request*, int*, Status*))                             \
  X(Waitsome, (int, Request*, int*, int*, Status*))                      \
  X(Test, (Request*, int*, Status*))                                     \
  X(Testall, (int, Request*, int*, Status*))                             \
  X(Testany, (int, Request*, int*, int*, Status*))                       \
  X(Testsome, (int, Request*, int*, int*, Status*))                      \
  X(Request_get_status, (Request, int*, Status*))                        \
  X(Request_get_status_all, (int, const Request*, int*, Status*))        \
  X(Request_get_status_any, (int, const Request*, int*, int*, Status*))  \
  X(Request_get_status_some, (int, const Request*, int*, int*, Status*)) \
  X(Request_free, (Request*))                                            \
  X(Cancel, (Request*))                                                  \
  X(Comm_idup, (Comm, Comm*, Request*))                                  \
  X(Type_free, (Datatype*))                                              \
  X(Comm_free, (Comm*))                                                  \
  X(Comm_disconnect, (Comm*))                                            \
  X(Probe, (int, int, Comm, Status*))                                    \
  X(Iprobe, (int, int, Comm, int*, Status*))                             \
  X(Mprobe, (int, int, Comm, MessageHandle*, Status*))                   \
  X(Improbe, (int, int, Comm, int*, MessageHandle*, Status*))
#define SPINLOOM_GUARDED(name, parameters) \
  reinterpret_cast<void*>(&Guarded<int parameters>::call<&SPINLOOM_ABI::name, [] { return real.name; }>)
#define SPINLOOM_GUARDED_COUNTED(name, M, parameters) \
  reinterpret_cast<void*>(&Guarded<int parameters>::call<&SPINLOOM_ABI::name<M>, [] { return real.counted<M>().name; }>)

// Called in place of a call that the MPI does not have.
int refuse() { return raise(handles().comm_world, error_other); }

Hook table[] = {
    {"refuse", reinterpret_cast<void*>(&refuse)},
    {"Init", reinterpret_cast<void*>(&SPINLOOM_ABI::Init)},
    {"Init_thread", reinterpret_cast<void*>(&SPINLOOM_ABI::Init_thread)},
    {"Finalize", reinterpret_cast<void*>(&SPINLOOM_ABI::Finalize)},
    {"MPIX_Type_commit_comm", reinterpret_cast<void*>(&SPINLOOM_ABI::Type_commit_comm)},
    {"MPIX_Type_free_comm", reinterpret_cast<void*>(&SPINLOOM_ABI::Type_free_comm)},
    {"MPIX_TYPE_COMMIT_COMM", reinterpret_cast<void*>(&SPINLOOM_ABI::Type_commit_comm_fortran)},
    {"MPIX_TYPE_FREE_COMM", reinterpret_cast<void*>(&SPINLOOM_ABI::Type_free_comm_fortran)},
#define SPINLOOM_HOOK(name, parameters) {#name, SPINLOOM_GUARDED(name, parameters)},
    SPINLOOM_HOOKED_CALLS(SPINLOOM_HOOK) SPINLOOM_COMM_CALLS(SPINLOOM_HOOK) SPINLOOM_EPOCH_CALLS(SPINLOOM_HOOK)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOK(name, M, parameters) {#name, SPINLOOM_GUARDED_COUNTED(name, M, parameters)},
        SPINLOOM_COUNTED_CALLS(SPINLOOM_HOOK, int) SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_HOOK, int)
            SPINLOOM_WINDOW_CALLS(SPINLOOM_HOOK, int)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOK(name, M, parameters) {#name "_c", SPINLOOM_GUARDED_COUNTED(name, M, parameters)},
                SPINLOOM_COUNTED_CALLS(SPINLOOM_HOOK, Count) SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_HOOK, Count)
                    SPINLOOM_WINDOW_CALLS(SPINLOOM_HOOK, Count)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOKS(ending, name, iname, M, ...)                                 \
  {#name ending, SPINLOOM_GUARDED_COUNTED(name, M, (__VA_ARGS__))},                 \
      {#iname ending, SPINLOOM_GUARDED_COUNTED(iname, M, (__VA_ARGS__, Request*))}, \
      {#name "_init" ending, SPINLOOM_GUARDED_COUNTED(name##_init, M, (__VA_ARGS__, Info, Request*))},
#define SPINLOOM_HOOK(...) SPINLOOM_HOOKS("", __VA_ARGS__)
                        SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK, int)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOK(...) SPINLOOM_HOOKS("_c", __VA_ARGS__)
                            SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_HOOK, Count)
#undef SPINLOOM_HOOK
};

// A call with large counts, done by the MPI's call with ints where the MPI has no other.
template <class Function>
struct StandIn;
template <class... Arguments>
struct StandIn<int(Arguments...)> {
  template <auto member>
  static int call(Arguments... arguments) {
    return (real.wide.*member)(arguments...);
  }
};
#define SPINLOOM_STAND_IN(name, parameters) \
  {#name "_c", reinterpret_cast<void*>(&StandIn<int parameters>::call<&Counted<Count>::name>)}
Hook large_table[] = {{"Reduce_local_c", reinterpret_cast<void*>(&int_counts::reduce_local)},
                      {"Pack_external_c", reinterpret_cast<void*>(&int_counts::pack_external)},
                      {"Unpack_external_c", reinterpret_cast<void*>(&int_counts::unpack_external)},
                      {"Buffer_attach_c", reinterpret_cast<void*>(&int_counts::buffer_attach)},
                      {"Buffer_detach_c", reinterpret_cast<void*>(&int_counts::buffer_detach)},
                      SPINLOOM_INT_COUNT_FILES(read, file_call, void*),
                      SPINLOOM_INT_COUNT_FILES(read_at, file_call_at, void*),
                      SPINLOOM_INT_COUNT_SHARED_FILES(read, void*),
                      SPINLOOM_INT_COUNT_FILES(write, file_call, const void*),
                      SPINLOOM_INT_COUNT_FILES(write_at, file_call_at, const void*),
                      SPINLOOM_INT_COUNT_SHARED_FILES(write, const void*),
#define SPINLOOM_HOOK(name, M, parameters) SPINLOOM_STAND_IN(name, parameters),
                      SPINLOOM_BUFFERED_CALLS(SPINLOOM_HOOK, Count) SPINLOOM_ACCUMULATE_CALLS(SPINLOOM_HOOK, Count)
#undef SPINLOOM_HOOK
#define SPINLOOM_HOOK(name, iname, M, ...)                                                   \
  SPINLOOM_STAND_IN(name, (__VA_ARGS__)), SPINLOOM_STAND_IN(iname, (__VA_ARGS__, Request*)), \
      {#name "_init_c",                                                                      \
       reinterpret_cast<void*>(&StandIn<int(__VA_ARGS__, Info, Request*)>::call<&Counted<Count>::name##_init>)},
                          SPINLOOM_REDUCTION_CALLS(SPINLOOM_HOOK, Count)
#undef SPINLOOM_HOOK
};

bool is_loaded() {
  static const std::string missing = real.load();
  return missing.empty();
}

}  // namespace

// If a function is missing, as in an MPI before 3.0, there are no hooks: every call goes straight to the MPI.
Hooks hooks() { return is_loaded() ? Hooks{table, std::size(table)} : Hooks{nullptr, 0}; }

Hooks stand_ins() { return is_loaded() ? Hooks{large_table, std::size(large_table)} : Hooks{nullptr, 0}; }

}  // namespace spinloom::mpi::SPINLOOM_ABI
