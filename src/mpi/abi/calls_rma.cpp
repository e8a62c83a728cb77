// Calls of windows where the job asks for the NIC: each is a call of an RmaWindow, or goes on to the layer's function
// or the MPI's.
#include <atomic>
#include <tuple>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

int raise_of(Win window, int code) {
  const int answer = real.Win_call_errhandler(window, code);
  return answer == success ? code : answer;
}

// The position of the window among the arguments: last, or in front of a request. Its type would not tell, because in
// some MPIs handles and counts are both ints.
template <class... Arguments>
constexpr size_t place_of_window() {
  constexpr bool asks_request =
      std::is_same_v<std::tuple_element_t<sizeof...(Arguments) - 1, std::tuple<Arguments...>>, Request*>;
  return sizeof...(Arguments) - (asks_request ? 2 : 1);
}

// The MPI's own functions for the arguments of a call. refuse() is the call itself, which is made where the MPI must
// find an error; ask() is the same access to MPI_PROC_NULL, on the window of RmaArguments, and changes nothing.
template <class Refuse, class Ask>
struct Mpi {
  Refuse refuse;
  Ask ask;
};

// A call on a window that exists. By()(window, mpi, arguments...) does it.
template <Name name, class Function>
struct OnWindow;
template <Name name, class... Arguments>
struct OnWindow<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*the_mpis)(Arguments...) = nullptr;

  // The MPI's own function; where the MPI has none for large counts, the one that stands in for it.
  static int real_one(Arguments... arguments) { return (the_mpis != nullptr ? the_mpis : next)(arguments...); }

  template <class By, size_t place>
  static int asked(Arguments... arguments) {
    std::tuple<Arguments...> changed(arguments...);
    std::get<place>(changed) = layer.rma.arguments().window();
    std::get<By::target>(changed) = proc_null;
    constexpr size_t last = sizeof...(Arguments) - 1;
    if constexpr (place == last) {
      return std::apply(&real_one, changed);
    } else {
      Request own = handles().request_null;
      std::get<last>(changed) = &own;
      const int code = std::apply(&real_one, changed);
      return code == success ? real.Wait(&own, status_ignore) : code;
    }
  }

  template <class By, size_t place>
  static int call(Arguments... arguments) {
    if (!layer.on || !layer.rma.is_on()) return next(arguments...);
    if (layer.library->inside(__builtin_return_address(0))) return real_one(arguments...);
    const Win handle = std::get<place>(std::tuple(arguments...));
    RmaWindow* const window = layer.rma.find(handle);
    if (window == nullptr) return next(arguments...);
    try {
      const auto refuse = [&] { return real_one(arguments...); };
      const auto ask = [&] {
        if constexpr (requires { By::target; }) return asked<By, place>(arguments...);
        return success;
      };
      std::atomic_thread_fence(std::memory_order_seq_cst);
      const auto [code, is_raised] = By{}(*window, Mpi{refuse, ask}, arguments...);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      return code == success || is_raised ? code : raise_of(handle, code);
    } catch (...) {
      return raise_of(handle, error_other);
    }
  }
  template <class By, size_t place = place_of_window<Arguments...>()>
  static OffloadHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<By, place>), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&the_mpis)};
  }
};

struct Outcome {
  int code = success;
  bool is_raised = false;  // the program's error handler has been called
};

// The memory of a new window. By()(arguments...) makes it from the arguments of the call that makes the window.
struct Made {
  void* base;
  int64_t bytes;
  int64_t unit;
  Comm comm;
  Win* window;
};
template <Name name, class Function>
struct OnCreation;
template <Name name, class... Arguments>
struct OnCreation<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*the_mpis)(Arguments...) = nullptr;

  template <class By>
  static int call(Arguments... arguments) {
    if (!layer.on || !layer.rma.is_on()) return next(arguments...);
    if (layer.library->inside(__builtin_return_address(0))) return the_mpis(arguments...);
    const int code = next(arguments...);
    if (code != success) return code;
    try {
      const Made made = By{}(arguments...);
      layer.rma.add(*made.window, made.comm, made.base, made.bytes, made.unit);
      return success;
    } catch (...) {
      return raise_of(*std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)), error_other);
    }
  }
  template <class By>
  static OffloadHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<By>), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&the_mpis)};
  }
};

struct OfCreate {
  template <class N>
  Made operator()(void* base, Aint bytes, N unit, Info, Comm comm, Win* window) const {
    return {base, bytes, unit, comm, window};
  }
};
struct OfAllocate {
  template <class N>
  Made operator()(Aint bytes, N unit, Info, Comm comm, void* base, Win* window) const {
    return {*static_cast<void**>(base), bytes, unit, comm, window};
  }
};

using Buffer = RmaWindow::Buffer;
using There = RmaWindow::There;

void* memory(const void* buffer) { return const_cast<void*>(buffer); }

template <class... Buffers>
RmaArguments::Call call_of(const char* name, const Buffers&... buffers) {
  RmaArguments::Call made{name};
  size_t at = 0;
  const auto add = [&](int64_t count, Datatype type) {
    made.filled |= count == 0 ? 0 : 1U << at;
    made.handles[at++] = key_of(type);
  };
  (add(buffers.count, buffers.type), ...);
  return made;
}
template <class... Buffers>
RmaArguments::Call call_with(Op op, const char* name, const Buffers&... buffers) {
  RmaArguments::Call made = call_of(name, buffers...);
  made.handles.back() = key_of(op);
  return made;
}

// Finds out whether the MPI takes a call's types and operation, unless it has taken them before. Returns the MPI's
// code.
template <class Ask>
int judged(const RmaArguments::Call& call, const Ask& ask) {
  RmaArguments& known = layer.rma.arguments();
  {
    const Lock lock;
    if (!known.asks() || known.has_taken(call)) return success;
  }
  const int code = ask();
  const Lock lock;
  if (code == success) known.add(call);
  return code;
}

// Has the MPI raise the error where an argument is wrong; else does the access, and makes its request.
template <class MpisOwn, class Access>
Outcome access(RmaWindow& window, const There& there, const MpisOwn& mpi, const RmaArguments::Call& call, Access does,
               Request* request = nullptr) {
  if (window.is_wrong(there)) {
    const int code = mpi.refuse();
    if (code != success) return {code, true};
    return {there.target == proc_null ? success : error_other};
  }
  int code = judged(call, mpi.ask);
  if (code == success) code = does();
  if (code == success && request != nullptr) code = window.request_of(there.target, request);
  return {code};
}

struct Puts {
  static constexpr size_t target = 3;  // among the arguments
  template <class MpisOwn, class N>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, const void* from, N count, Datatype type, int to,
                     Aint place, N count_there, Datatype type_there, Win, Request* request = nullptr) const {
    const There there{to, place, count_there, type_there};
    const Buffer own{memory(from), count, type};
    return access(window, there, mpi, call_of("Put", own, there), [&] { return window.put(own, there); }, request);
  }
};
struct Gets {
  static constexpr size_t target = 3;
  template <class MpisOwn, class N>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, void* into, N count, Datatype type, int from, Aint place,
                     N count_there, Datatype type_there, Win, Request* request = nullptr) const {
    const There there{from, place, count_there, type_there};
    const Buffer own{into, count, type};
    return access(window, there, mpi, call_of("Get", own, there), [&] { return window.get(own, there); }, request);
  }
};
struct Accumulates {
  static constexpr size_t target = 3;
  template <class MpisOwn, class N>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, const void* from, N count, Datatype type, int to,
                     Aint place, N count_there, Datatype type_there, Op op, Win, Request* request = nullptr) const {
    const There there{to, place, count_there, type_there};
    const Buffer own{memory(from), count, type};
    const auto does = [&] { return window.accumulate(own, nullptr, there, op); };
    return access(window, there, mpi, call_with(op, "Accumulate", own, there), does, request);
  }
};
struct GetAccumulates {
  static constexpr size_t target = 6;
  template <class MpisOwn, class N>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, const void* from, N count, Datatype type, void* result,
                     N result_count, Datatype result_type, int to, Aint place, N count_there, Datatype type_there,
                     Op op, Win, Request* request = nullptr) const {
    const There there{to, place, count_there, type_there};
    const Buffer own{memory(from), count, type};
    const Buffer into{result, result_count, result_type};
    const auto does = [&] { return window.accumulate(own, &into, there, op); };
    return access(window, there, mpi, call_with(op, "Get_accumulate", own, into, there), does, request);
  }
};
struct FetchesAndOps {
  static constexpr size_t target = 3;
  template <class MpisOwn>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, const void* from, void* result, Datatype type, int to,
                     Aint place, Op op, Win) const {
    const There there{to, place, 1, type};
    const Buffer into{result, 1, type};
    const auto does = [&] { return window.accumulate({memory(from), 1, type}, &into, there, op); };
    return access(window, there, mpi, call_with(op, "Fetch_and_op", there), does);
  }
};
struct ComparesAndSwaps {
  static constexpr size_t target = 4;
  template <class MpisOwn>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, const void* value, const void* compare, void* result,
                     Datatype type, int to, Aint place, Win) const {
    const There there{to, place, 1, type};
    const auto does = [&] { return window.compare_and_swap(value, compare, result, there); };
    return access(window, there, mpi, call_of("Compare_and_swap", there), does);
  }
};

// Calls that begin and end epochs.
template <auto does>
struct Epoch {
  template <class MpisOwn, class... Arguments>
  Outcome operator()(RmaWindow& window, const MpisOwn&, Arguments... arguments) const {
    return {does(window, arguments...)};
  }
};
// Epoch for calls with a rank, argument `place`, which the window may not have.
template <auto does, size_t place>
struct EpochAt {
  template <class MpisOwn, class... Arguments>
  Outcome operator()(RmaWindow& window, const MpisOwn& mpi, Arguments... arguments) const {
    const int target = std::get<place>(std::tuple(arguments...));
    if (window.is_wrong({target, 0, 1, handles().byte})) {
      const int code = mpi.refuse();
      return {code == success ? error_other : code, code != success};
    }
    return {does(window, arguments...)};
  }
};

constexpr auto fences = [](RmaWindow& window, int assert, Win) { return window.fence(assert); };
constexpr auto posts = [](RmaWindow& window, Group group, int, Win handle) {
  return window.post(ranks_in(group, handle));
};
constexpr auto starts = [](RmaWindow& window, Group group, int, Win handle) {
  return window.start(ranks_in(group, handle));
};
constexpr auto completes = [](RmaWindow& window, Win) { return window.complete(); };
constexpr auto waits = [](RmaWindow& window, Win) { return window.wait(); };
constexpr auto tests = [](RmaWindow& window, Win, int* flag) { return window.test(flag); };
constexpr auto locks = [](RmaWindow& window, int kind, int target, int assert, Win) {
  return window.lock(kind, target, assert);
};
constexpr auto unlocks = [](RmaWindow& window, int target, Win) { return window.unlock(target); };
constexpr auto locks_all = [](RmaWindow& window, int assert, Win) { return window.lock_all(assert); };
constexpr auto unlocks_all = [](RmaWindow& window, Win) { return window.unlock_all(); };
constexpr auto flushes = [](RmaWindow& window, int target, Win) { return window.flush(target); };
constexpr auto flushes_all = [](RmaWindow& window, Win) { return window.flush_all(); };
constexpr auto does_nothing = [](RmaWindow&, Win) { return success; };

// MPI_Win_free: the MPI's own window ends after ours.
struct OnFree {
  static inline int (*next)(Win*) = nullptr;
  static inline int (*the_mpis)(Win*) = nullptr;
  static int call(Win* handle) {
    if (!layer.on || !layer.rma.is_on()) return next(handle);
    if (layer.library->inside(__builtin_return_address(0))) return the_mpis(handle);
    if (RmaWindow* const window = layer.rma.find(*handle)) {
      const int code = layer.rma.free(*window);
      if (code != success) return raise_of(*handle, code);
    }
    return next(handle);
  }
};

}  // namespace

const OffloadHook* rma_hook(std::string_view word) {
#define SPINLOOM_MADE(word, By, N, ...) OnCreation<word, int(__VA_ARGS__)>::hook<By>(),
#define SPINLOOM_ON(word, By, ...) OnWindow<word, int(__VA_ARGS__)>::hook<By>(),
#define SPINLOOM_ACCESSES(ending, N)                                                                                  \
  SPINLOOM_MADE("Win_create" ending, OfCreate, N, void*, Aint, N, Info, Comm, Win*)                                   \
  SPINLOOM_MADE("Win_allocate" ending, OfAllocate, N, Aint, N, Info, Comm, void*, Win*)                               \
  SPINLOOM_MADE("Win_allocate_shared" ending, OfAllocate, N, Aint, N, Info, Comm, void*, Win*)                        \
  SPINLOOM_ON("Put" ending, Puts, const void*, N, Datatype, int, Aint, N, Datatype, Win)                              \
  SPINLOOM_ON("Rput" ending, Puts, const void*, N, Datatype, int, Aint, N, Datatype, Win, Request*)                   \
  SPINLOOM_ON("Get" ending, Gets, void*, N, Datatype, int, Aint, N, Datatype, Win)                                    \
  SPINLOOM_ON("Rget" ending, Gets, void*, N, Datatype, int, Aint, N, Datatype, Win, Request*)                         \
  SPINLOOM_ON("Accumulate" ending, Accumulates, const void*, N, Datatype, int, Aint, N, Datatype, Op, Win)            \
  SPINLOOM_ON("Raccumulate" ending, Accumulates, const void*, N, Datatype, int, Aint, N, Datatype, Op, Win, Request*) \
  SPINLOOM_ON("Get_accumulate" ending, GetAccumulates, const void*, N, Datatype, void*, N, Datatype, int, Aint, N,    \
              Datatype, Op, Win)                                                                                      \
  SPINLOOM_ON("Rget_accumulate" ending, GetAccumulates, const void*, N, Datatype, void*, N, Datatype, int, Aint, N,   \
              Datatype, Op, Win, Request*)
  static const OffloadHook table[] = {
      SPINLOOM_ACCESSES("", int) SPINLOOM_ACCESSES("_c", Count)  //
      SPINLOOM_ON("Fetch_and_op", FetchesAndOps, const void*, void*, Datatype, int, Aint, Op, Win)
          SPINLOOM_ON("Compare_and_swap", ComparesAndSwaps, const void*, const void*, void*, Datatype, int, Aint, Win)
              SPINLOOM_ON("Win_fence", Epoch<fences>, int, Win) SPINLOOM_ON("Win_post", Epoch<posts>, Group, int, Win)
                  SPINLOOM_ON("Win_start", Epoch<starts>, Group, int, Win)
                      SPINLOOM_ON("Win_complete", Epoch<completes>, Win) SPINLOOM_ON("Win_wait", Epoch<waits>, Win)
                          OnWindow<"Win_test", int(Win, int*)>::hook<Epoch<tests>, 0>(),
      SPINLOOM_ON("Win_unlock_all", Epoch<unlocks_all>, Win) SPINLOOM_ON("Win_lock_all", Epoch<locks_all>, int, Win)
          SPINLOOM_ON("Win_flush_all", Epoch<flushes_all>, Win) SPINLOOM_ON(
              "Win_flush_local_all", Epoch<flushes_all>, Win) SPINLOOM_ON("Win_sync", Epoch<does_nothing>, Win)
              OnWindow<"Win_lock", int(int, int, int, Win)>::hook<EpochAt<locks, 1>>(),
      OnWindow<"Win_unlock", int(int, Win)>::hook<EpochAt<unlocks, 0>>(),
      OnWindow<"Win_flush", int(int, Win)>::hook<EpochAt<flushes, 0>>(),
      OnWindow<"Win_flush_local", int(int, Win)>::hook<EpochAt<flushes, 0>>(),
      {"Win_free", reinterpret_cast<void*>(&OnFree::call), reinterpret_cast<void**>(&OnFree::next),
       reinterpret_cast<void**>(&OnFree::the_mpis)}};
#undef SPINLOOM_ACCESSES
#undef SPINLOOM_ON
#undef SPINLOOM_MADE
  for (const OffloadHook& hook : table) {
    if (word == hook.name) return &hook;
  }
  return nullptr;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
