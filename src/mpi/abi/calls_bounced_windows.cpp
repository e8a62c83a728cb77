// Accesses to windows with buffers in a GPU's memory: what is put is packed into memory of the host before the MPI
// takes it; that memory stays until the access has ended at this rank, and what was got lands then. Calls that would
// give memory of a device to a window are refused, if the MPI knows nothing of GPUs or windows are on the NIC.
#include <list>
#include <mutex>

#include "mpi/abi/bounce_rules.hpp"
#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

constexpr int all_targets = -1;

// The accesses that have not ended. Threads may share a window: a call ends only accesses that were made before it
// began, and the next caller waits until those are in place.
class Accesses {
 public:
  static Accesses& of_process() {
    static auto* const accesses = new Accesses;
    return *accesses;
  }
  [[nodiscard]] bool none() const { return count_.load(std::memory_order_relaxed) == 0; }
  void keep(BounceBuffers&& bounce) {
    BouncedRequest access;
    access.bounce = std::move(bounce);
    const std::lock_guard lock(mutex_);
    open_.push_back({made_++, std::move(access)});
    count_ = open_.size();
  }
  // Returns the number of accesses that have been made so far.
  [[nodiscard]] uint64_t made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  // Puts in place those of the first `made` accesses that went to `target`, in the order in which they were made. All
  // of them have ended.
  [[nodiscard]] int land_all(Win window, int target, uint64_t made) {
    const std::lock_guard lock(mutex_);
    std::list<Access> ended;
    for (auto access = open_.begin(); access != open_.end();) {
      const auto next = std::next(access);
      const bool is_to = access->serial < made && (target == all_targets || access->bounced.bounce.target == target);
      if (is_to && *access->bounced.bounce.window == window) ended.splice(ended.end(), open_, access);
      access = next;
    }
    int code = success;
    for (Access& access : ended) {
      if (const int landed = land(access.bounced, Status{}); landed != success) code = landed;
    }
    count_ = open_.size();  // not before: none() sends others away
    return code;
  }

 private:
  struct Access {
    uint64_t serial;
    BouncedRequest bounced;
  };
  std::recursive_mutex mutex_;  // an error handler may make calls
  uint64_t made_ = 0;
  std::list<Access> open_;
  std::atomic<size_t> count_{0};
};

// A call after which accesses of a window have ended: those to one target, or all.
template <Name name, class... Arguments>
struct Closing {
  using To = Next<name, Arguments...>;
  template <int (*target_of)(Arguments...)>
  static int call(Arguments... arguments) {
    if (Accesses::of_process().none()) return To::next(arguments...);
    if (layer.library->inside(__builtin_return_address(0))) return To::the_mpis(arguments...);
    const uint64_t made = Accesses::of_process().made();
    const int code = To::next(arguments...);
    if (code != success) return code;
    const auto all = std::tie(arguments...);
    return Accesses::of_process().land_all(std::get<sizeof...(Arguments) - 1>(all), target_of(arguments...), made);
  }
  template <int (*target_of)(Arguments...)>
  static OffloadHook hook() {
    return To::hook(&call<target_of>);
  }
};
int whole(Win) { return all_targets; }
int fenced(int, Win) { return all_targets; }
int one(int target, Win) { return target; }

// True if `buffer` lies in memory of a device that a window cannot have: the MPI knows nothing of GPUs, or windows are
// on the NIC.
bool is_beyond(const void* buffer) {
  if (!may_replace() || (mpi_knows_gpus() && !layer.settings.rma)) return false;
  const auto owner = DeviceWatch::of_process().owner(buffer);
  return owner && owner->ordinal >= 0;
}
int code_of_refusal(const char* name) {
  const char* const why =
      layer.settings.rma
          ? "which windows on the NIC (--rma) cannot have: give it memory of the host"
          : "which this MPI knows nothing of: give it memory of the host, or use an MPI that was built for GPUs";
  return code_of({Code::unsupported, text("MPI_", name, " got memory of a GPU, ", why)});
}
// The kind of object whose error handler is called.
enum class Told : uint8_t { comm, window };
// A call that is refused if argument `buffer_at` is beyond. `at`: the position of the object's handle.
template <Name name, class... Arguments>
struct Refusing {
  using To = Next<name, Arguments...>;
  template <size_t buffer_at, Told told, size_t at>
  static int call(Arguments... arguments) {
    const auto all = std::tie(arguments...);
    if (!is_beyond(std::get<buffer_at>(all))) return To::next(arguments...);
    BounceBuffers bounce;
    if constexpr (told == Told::comm)
      bounce.comm = std::get<at>(all);
    else
      bounce.window = std::get<at>(all);
    return bounce.raise(code_of_refusal(name.letters));
  }
  template <size_t buffer_at, Told told, size_t at>
  static OffloadHook hook() {
    return To::hook(&call<buffer_at, told, at>);
  }
};
// An access without a request ends with its epoch.
#define SPINLOOM_BOUNCED(ending, name, rname, ...)                                         \
  Bounced<#name ending, int(__VA_ARGS__, Win)>::hook<bounce_rules::name, Ending::epoch>(), \
      Bounced<#rname ending, int(__VA_ARGS__, Win, Request*)>::hook<bounce_rules::name, Ending::non_blocking>()
#define SPINLOOM_BOUNCED_ACCESSES(ending, N)                                                                       \
  SPINLOOM_BOUNCED(ending, Put, Rput, const void*, N, Datatype, int, Aint, N, Datatype),                           \
      SPINLOOM_BOUNCED(ending, Get, Rget, void*, N, Datatype, int, Aint, N, Datatype),                             \
      SPINLOOM_BOUNCED(ending, Accumulate, Raccumulate, const void*, N, Datatype, int, Aint, N, Datatype, Op),     \
      SPINLOOM_BOUNCED(ending, Get_accumulate, Rget_accumulate, const void*, N, Datatype, void*, N, Datatype, int, \
                       Aint, N, Datatype, Op),                                                                     \
      Refusing<"Win_create" ending, void*, Aint, N, Info, Comm, Win*>::hook<0, Told::comm, 4>()

}  // namespace

void keep_access(BounceBuffers&& bounce) { Accesses::of_process().keep(std::move(bounce)); }

std::span<const OffloadHook> bounced_accesses() {
  using Fetch = Bounced<"Fetch_and_op", int(const void*, void*, Datatype, int, Aint, Op, Win)>;
  using Swap = Bounced<"Compare_and_swap", int(const void*, const void*, void*, Datatype, int, Aint, Win)>;
  static const OffloadHook table[] = {SPINLOOM_BOUNCED_ACCESSES("", int),
                                      SPINLOOM_BOUNCED_ACCESSES("_c", Count),
                                      Fetch::hook<bounce_rules::Fetch_and_op, Ending::epoch>(),
                                      Swap::hook<bounce_rules::Compare_and_swap, Ending::epoch>(),
                                      Closing<"Win_fence", int, Win>::hook<&fenced>(),
                                      Closing<"Win_complete", Win>::hook<&whole>(),
                                      Closing<"Win_unlock", int, Win>::hook<&one>(),
                                      Closing<"Win_unlock_all", Win>::hook<&whole>(),
                                      Closing<"Win_flush", int, Win>::hook<&one>(),
                                      Closing<"Win_flush_all", Win>::hook<&whole>(),
                                      Closing<"Win_flush_local", int, Win>::hook<&one>(),
                                      Closing<"Win_flush_local_all", Win>::hook<&whole>(),
                                      Refusing<"Win_attach", Win, void*, Aint>::hook<1, Told::window, 0>()};
  return table;
}

#undef SPINLOOM_BOUNCED
#undef SPINLOOM_BOUNCED_ACCESSES

}  // namespace spinloom::mpi::SPINLOOM_ABI
