// Calls of windows on mapped memory or on the NIC: each is a call of an RmaWindow, or goes on to the layer's function
// or the MPI's.
#include <algorithm>
#include <atomic>
#include <tuple>

#include "mpi/abi/calls.hpp"
#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

int raise_on_window(Win window, int code) {
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
struct MpiCalls {
  Refuse refuse;
  Ask ask;
};

// A call on a window that exists. Rule()(window, mpi, arguments...) does it.
template <Name name, class Function>
struct WindowHook;
template <Name name, class... Arguments>
struct WindowHook<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*mpi_function)(Arguments...) = nullptr;

  // The MPI's own function; where the MPI has none for large counts, the one that stands in for it.
  static int call_mpi(Arguments... arguments) { return (mpi_function != nullptr ? mpi_function : next)(arguments...); }

  template <class Rule, size_t window_at>
  static int ask_mpi(Arguments... arguments) {
    std::tuple<Arguments...> changed(arguments...);
    std::get<window_at>(changed) = layer.rma.arguments().window();
    std::get<Rule::target>(changed) = proc_null;
    constexpr size_t last = sizeof...(Arguments) - 1;
    if constexpr (window_at == last) {
      return std::apply(&call_mpi, changed);
    } else {
      Request request = handles().request_null;
      std::get<last>(changed) = &request;
      const int code = std::apply(&call_mpi, changed);
      return code == success ? real.Wait(&request, status_ignore) : code;
    }
  }

  template <class Rule, size_t window_at>
  static int call(Arguments... arguments) {
    if (!layer.is_on || !layer.rma.is_on()) return next(arguments...);
    if (layer.library->contains(__builtin_return_address(0))) return call_mpi(arguments...);
    const Win handle = std::get<window_at>(std::tuple(arguments...));
    RmaWindow* const window = layer.rma.find(handle);
    if (window == nullptr) return next(arguments...);
    try {
      const auto refuse = [&] { return call_mpi(arguments...); };
      const auto ask = [&] {
        if constexpr (requires { Rule::target; }) return ask_mpi<Rule, window_at>(arguments...);
        return success;
      };
      // The calls that end or begin epochs, and flushes, order the bytes that accesses have moved. Locks order memory
      // by themselves.
      constexpr bool needs_fence = !requires { Rule::target; } && !requires { Rule::is_ordered; };
      if constexpr (needs_fence) std::atomic_thread_fence(std::memory_order_seq_cst);
      const auto [code, is_raised] = Rule{}(*window, MpiCalls{refuse, ask}, arguments...);
      if constexpr (needs_fence && !requires { Rule::only_ends; }) std::atomic_thread_fence(std::memory_order_seq_cst);
      return code == success || is_raised ? code : raise_on_window(handle, code);
    } catch (...) {
      return raise_on_window(handle, error_other);
    }
  }
  template <class Rule, size_t window_at = place_of_window<Arguments...>()>
  static ForwardingHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<Rule, window_at>), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&mpi_function)};
  }
};

struct Outcome {
  int code = success;
  bool is_raised = false;  // the program's error handler has been called
};

// The memory of a new window. Rule()(arguments...) makes it from the arguments of the call that makes the window.
struct NewWindow {
  void* base;
  int64_t bytes;
  int64_t unit;
  Comm comm;
  Win* window;
};
template <Name name, class Function>
struct CreationHook;
template <Name name, class... Arguments>
struct CreationHook<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*mpi_function)(Arguments...) = nullptr;

  template <class Rule>
  static int call(Arguments... arguments) {
    if (!layer.is_on || !layer.rma.is_on()) return next(arguments...);
    if (layer.library->contains(__builtin_return_address(0))) return mpi_function(arguments...);
    const int code = next(arguments...);
    if (code != success) return code;
    try {
      const NewWindow created = Rule{}(arguments...);
      layer.rma.add(*created.window, created.comm, created.base, created.bytes, created.unit);
      return success;
    } catch (...) {
      return raise_on_window(*std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...)), error_other);
    }
  }
  template <class Rule>
  static ForwardingHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<Rule>), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&mpi_function)};
  }
};

struct FromCreate {
  template <class N>
  NewWindow operator()(void* base, Aint bytes, N unit, Info, Comm comm, Win* window) const {
    return {base, bytes, unit, comm, window};
  }
};
struct FromAllocate {
  template <class N>
  NewWindow operator()(Aint bytes, N unit, Info, Comm comm, void* base, Win* window) const {
    return {*static_cast<void**>(base), bytes, unit, comm, window};
  }
};

using Buffer = RmaWindow::Buffer;
using RemoteBuffer = RmaWindow::RemoteBuffer;

void* without_const(const void* buffer) { return const_cast<void*>(buffer); }

template <class... Buffers>
RmaArguments::Call call_of(const char* name, const Buffers&... buffers) {
  RmaArguments::Call call{name};
  size_t at = 0;
  const auto add = [&](int64_t count, Datatype type) {
    call.has_elements |= count == 0 ? 0 : 1U << at;
    call.handles[at++] = key_of(type);
  };
  (add(buffers.count, buffers.type), ...);
  return call;
}
template <class... Buffers>
RmaArguments::Call call_with(Op op, const char* name, const Buffers&... buffers) {
  RmaArguments::Call call = call_of(name, buffers...);
  call.handles.back() = key_of(op);
  return call;
}

// Finds out whether the MPI takes a call's types and operation, unless it has taken them before. Returns the MPI's
// code.
template <class Ask>
int check_by_mpi(const RmaArguments::Call& call, const Ask& ask) {
  RmaArguments& arguments = layer.rma.arguments();
  {
    const Lock lock;
    if (!arguments.can_ask() || arguments.was_accepted(call)) return success;
  }
  const int code = ask();
  const Lock lock;
  if (code == success) arguments.add(call);
  return code;
}

// True for a basic type of numbers, of which any MPI takes a put or a get of as many as there are at the other end.
bool is_number(Datatype type) {
  // The types asked about last: one of numbers, and one that is none. The handle of a basic type never names another.
  static std::atomic<uint64_t> latest{0};
  static std::atomic<uint64_t> latest_other{0};
  const uint64_t key = key_of(type);
  if (latest.load(std::memory_order_relaxed) == key) return true;
  if (latest_other.load(std::memory_order_relaxed) == key) return false;
  const bool is_known = std::ranges::any_of(numbers(), [type](const auto& entry) { return entry.handle == type; });
  (is_known ? latest : latest_other).store(key, std::memory_order_relaxed);
  return is_known;
}

Outcome with_request(RmaWindow& window, int target, int code, Request* request) {
  return {code == success && request != nullptr ? window.request_of(target, request) : code};
}

// Has the MPI raise the error where an argument is wrong; else does the access, and makes its request.
template <class MpiFunctions, class Access>
Outcome access(RmaWindow& window, const RemoteBuffer& remote, const MpiFunctions& mpi, const RmaArguments::Call& call,
               Access do_access, Request* request = nullptr) {
  if (window.is_wrong(remote)) {
    const int code = mpi.refuse();
    if (code != success) return {code, true};
    return {remote.target == proc_null ? success : error_other};
  }
  int code = check_by_mpi(call, mpi.ask);
  if (code == success) code = do_access();
  return with_request(window, remote.target, code, request);
}

bool is_plain(const RmaWindow& window, const Buffer& own, const RemoteBuffer& remote) {
  return own.type == remote.type && own.count == remote.count && !window.is_wrong(remote) && is_number(own.type);
}

struct Puts {
  static constexpr size_t target = 3;  // the place among the arguments
  template <class MpiFunctions, class N>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, const void* from, N count, Datatype type, int to,
                     Aint target_disp, N target_count, Datatype target_type, Win, Request* request = nullptr) const {
    const RemoteBuffer remote{to, target_disp, target_count, target_type};
    const Buffer own{without_const(from), count, type};
    if (is_plain(window, own, remote)) return with_request(window, to, window.put(own, remote), request);
    return access(window, remote, mpi, call_of("Put", own, remote), [&] { return window.put(own, remote); }, request);
  }
};
struct Gets {
  static constexpr size_t target = 3;
  template <class MpiFunctions, class N>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, void* into, N count, Datatype type, int from,
                     Aint target_disp, N target_count, Datatype target_type, Win, Request* request = nullptr) const {
    const RemoteBuffer remote{from, target_disp, target_count, target_type};
    const Buffer own{into, count, type};
    if (is_plain(window, own, remote)) return with_request(window, from, window.get(own, remote), request);
    return access(window, remote, mpi, call_of("Get", own, remote), [&] { return window.get(own, remote); }, request);
  }
};
struct Accumulates {
  static constexpr size_t target = 3;
  template <class MpiFunctions, class N>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, const void* from, N count, Datatype type, int to,
                     Aint target_disp, N target_count, Datatype target_type, Op op, Win,
                     Request* request = nullptr) const {
    const RemoteBuffer remote{to, target_disp, target_count, target_type};
    const Buffer own{without_const(from), count, type};
    const auto do_access = [&] { return window.accumulate(own, nullptr, remote, op); };
    return access(window, remote, mpi, call_with(op, "Accumulate", own, remote), do_access, request);
  }
};
struct GetAccumulates {
  static constexpr size_t target = 6;
  template <class MpiFunctions, class N>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, const void* from, N count, Datatype type, void* result,
                     N result_count, Datatype result_type, int to, Aint target_disp, N target_count,
                     Datatype target_type, Op op, Win, Request* request = nullptr) const {
    const RemoteBuffer remote{to, target_disp, target_count, target_type};
    const Buffer own{without_const(from), count, type};
    const Buffer into{result, result_count, result_type};
    const auto do_access = [&] { return window.accumulate(own, &into, remote, op); };
    return access(window, remote, mpi, call_with(op, "Get_accumulate", own, into, remote), do_access, request);
  }
};
struct FetchesAndOps {
  static constexpr size_t target = 3;
  template <class MpiFunctions>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, const void* from, void* result, Datatype type, int to,
                     Aint target_disp, Op op, Win) const {
    const RemoteBuffer remote{to, target_disp, 1, type};
    const Buffer into{result, 1, type};
    const auto do_access = [&] { return window.accumulate({without_const(from), 1, type}, &into, remote, op); };
    return access(window, remote, mpi, call_with(op, "Fetch_and_op", remote), do_access);
  }
};
struct ComparesAndSwaps {
  static constexpr size_t target = 4;
  template <class MpiFunctions>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, const void* value, const void* compare, void* result,
                     Datatype type, int to, Aint target_disp, Win) const {
    const RemoteBuffer remote{to, target_disp, 1, type};
    const auto do_access = [&] { return window.compare_and_swap(value, compare, result, remote); };
    return access(window, remote, mpi, call_of("Compare_and_swap", remote), do_access);
  }
};

// Calls that begin and end epochs.
template <auto does>
struct Epoch {
  template <class MpiFunctions, class... Arguments>
  Outcome operator()(RmaWindow& window, const MpiFunctions&, Arguments... arguments) const {
    return {does(window, arguments...)};
  }
};
// Epoch for calls with a rank, argument `rank_at`, which the window may not have.
template <auto does, size_t rank_at>
struct EpochAt {
  template <class MpiFunctions, class... Arguments>
  Outcome operator()(RmaWindow& window, const MpiFunctions& mpi, Arguments... arguments) const {
    const int target = std::get<rank_at>(std::tuple(arguments...));
    if (window.is_wrong({target, 0, 1, handles().byte})) {
      const int code = mpi.refuse();
      return {code == success ? error_other : code, code != success};
    }
    return {does(window, arguments...)};
  }
};

// Calls after which nothing is read that another rank has written because of them.
template <auto does, size_t rank_at>
struct FlushAt : EpochAt<does, rank_at> {
  static constexpr bool only_ends = true;
};

template <class Call>
struct Ordered : Call {
  static constexpr bool is_ordered = true;
};

constexpr auto fences = [](RmaWindow& window, int assert, Win) { return window.fence(assert); };
constexpr auto posts = [](RmaWindow& window, Group group, int, Win) { return window.post(window.ranks_of(group)); };
constexpr auto starts = [](RmaWindow& window, Group group, int, Win) { return window.start(window.ranks_of(group)); };
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
struct FreeHook {
  static inline int (*next)(Win*) = nullptr;
  static inline int (*mpi_function)(Win*) = nullptr;
  static int call(Win* handle) {
    if (!layer.is_on || !layer.rma.is_on()) return next(handle);
    if (layer.library->contains(__builtin_return_address(0))) return mpi_function(handle);
    if (RmaWindow* const window = layer.rma.find(*handle)) {
      const int code = layer.rma.free(*window);
      if (code != success) return raise_on_window(*handle, code);
    }
    return next(handle);
  }
};

}  // namespace

const ForwardingHook* rma_hook(std::string_view name) {
#define SPINLOOM_MADE(word, Rule, N, ...) CreationHook<word, int(__VA_ARGS__)>::hook<Rule>(),
#define SPINLOOM_ON(word, Rule, ...) WindowHook<word, int(__VA_ARGS__)>::hook<Rule>(),
#define SPINLOOM_ACCESSES(ending, N)                                                                                  \
  SPINLOOM_MADE("Win_create" ending, FromCreate, N, void*, Aint, N, Info, Comm, Win*)                                 \
  SPINLOOM_MADE("Win_allocate" ending, FromAllocate, N, Aint, N, Info, Comm, void*, Win*)                             \
  SPINLOOM_MADE("Win_allocate_shared" ending, FromAllocate, N, Aint, N, Info, Comm, void*, Win*)                      \
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
  static const ForwardingHook table[] = {
      SPINLOOM_ACCESSES("", int) SPINLOOM_ACCESSES("_c", Count)  //
      SPINLOOM_ON("Fetch_and_op", FetchesAndOps, const void*, void*, Datatype, int, Aint, Op, Win)
          SPINLOOM_ON("Compare_and_swap", ComparesAndSwaps, const void*, const void*, void*, Datatype, int, Aint, Win)
              SPINLOOM_ON("Win_fence", Epoch<fences>, int, Win) SPINLOOM_ON("Win_post", Epoch<posts>, Group, int, Win)
                  SPINLOOM_ON("Win_start", Epoch<starts>, Group, int, Win)
                      SPINLOOM_ON("Win_complete", Epoch<completes>, Win) SPINLOOM_ON("Win_wait", Epoch<waits>, Win)
                          WindowHook<"Win_test", int(Win, int*)>::hook<Epoch<tests>, 0>(),
      SPINLOOM_ON("Win_unlock_all", Ordered<Epoch<unlocks_all>>, Win) SPINLOOM_ON(
          "Win_lock_all", Ordered<Epoch<locks_all>>, int, Win) SPINLOOM_ON("Win_flush_all", Epoch<flushes_all>, Win)
          SPINLOOM_ON("Win_flush_local_all", Epoch<flushes_all>, Win) SPINLOOM_ON("Win_sync", Epoch<does_nothing>, Win)
              WindowHook<"Win_lock", int(int, int, int, Win)>::hook<Ordered<EpochAt<locks, 1>>>(),
      WindowHook<"Win_unlock", int(int, Win)>::hook<Ordered<EpochAt<unlocks, 0>>>(),
      WindowHook<"Win_flush", int(int, Win)>::hook<FlushAt<flushes, 0>>(),
      WindowHook<"Win_flush_local", int(int, Win)>::hook<FlushAt<flushes, 0>>(),
      {"Win_free", reinterpret_cast<void*>(&FreeHook::call), reinterpret_cast<void**>(&FreeHook::next),
       reinterpret_cast<void**>(&FreeHook::mpi_function)}};
#undef SPINLOOM_ACCESSES
#undef SPINLOOM_ON
#undef SPINLOOM_MADE
  for (const ForwardingHook& hook : table) {
    if (name == hook.name) return &hook;
  }
  return nullptr;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
