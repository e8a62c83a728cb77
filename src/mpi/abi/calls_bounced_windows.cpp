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
    open_.push_back({next_serial_++, std::move(access)});
    count_ = open_.size();
  }
  // Returns the number of accesses that have been made so far.
  [[nodiscard]] uint64_t accesses_so_far() {
    const std::lock_guard lock(mutex_);
    return next_serial_;
  }
  // Puts in place those of the first `accesses` accesses that went to `target`, in the order in which they were made.
  // All of them have ended.
  [[nodiscard]] int land_all(Win window, int target, uint64_t accesses) {
    const std::lock_guard lock(mutex_);
    std::list<Access> ended;
    for (auto access = open_.begin(); access != open_.end();) {
      const auto next = std::next(access);
      const bool is_to =
          access->serial < accesses && (target == all_targets || access->bounced.bounce.target == target);
      if (is_to && *access->bounced.bounce.window == window) ended.splice(ended.end(), open_, access);
      access = next;
    }
    int code = success;
    for (Access& access : ended) {
      if (const int landed = land(access.bounced, Status{}); landed != success) code = landed;
    }
    count_ = open_.size();  // this comes last: none() sends others away
    return code;
  }

 private:
  struct Access {
    uint64_t serial;
    BouncedRequest bounced;
  };
  std::recursive_mutex mutex_;  // an error handler may make calls
  uint64_t next_serial_ = 0;
  std::list<Access> open_;
  std::atomic<size_t> count_{0};
};

// A call after which accesses of a window have ended: those to one target, or all.
template <Name name, class... Arguments>
struct EpochEnd {
  using Hooked = HookedCall<name, Arguments...>;
  template <int (*target_of)(Arguments...)>
  static int call(Arguments... arguments) {
    if (Accesses::of_process().none()) return Hooked::next(arguments...);
    if (layer.library->contains(__builtin_return_address(0))) return Hooked::mpi_function(arguments...);
    const uint64_t accesses = Accesses::of_process().accesses_so_far();
    const int code = Hooked::next(arguments...);
    if (code != success) return code;
    const auto all_arguments = std::tie(arguments...);
    return Accesses::of_process().land_all(std::get<sizeof...(Arguments) - 1>(all_arguments), target_of(arguments...),
                                           accesses);
  }
  template <int (*target_of)(Arguments...)>
  static ForwardingHook hook() {
    return Hooked::hook(&call<target_of>);
  }
};
int every_target(Win) { return all_targets; }
int every_target_of_fence(int, Win) { return all_targets; }
int named_target(int target, Win) { return target; }

// True if `buffer` lies in memory of a device that a window cannot have: the MPI knows nothing of GPUs, or windows are
// on the NIC.
bool is_unusable(const void* buffer) {
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
enum class HandlerOwner : uint8_t { comm, window };
// A call that is refused if is_unusable() is true for argument `buffer_at`. `at`: the position of the object's handle.
template <Name name, class... Arguments>
struct RefusingCall {
  using Hooked = HookedCall<name, Arguments...>;
  template <size_t buffer_at, HandlerOwner owner_kind, size_t at>
  static int call(Arguments... arguments) {
    const auto all_arguments = std::tie(arguments...);
    if (!is_unusable(std::get<buffer_at>(all_arguments))) return Hooked::next(arguments...);
    BounceBuffers bounce;
    if constexpr (owner_kind == HandlerOwner::comm)
      bounce.comm = std::get<at>(all_arguments);
    else
      bounce.window = std::get<at>(all_arguments);
    return bounce.raise(code_of_refusal(name.letters));
  }
  template <size_t buffer_at, HandlerOwner owner_kind, size_t at>
  static ForwardingHook hook() {
    return Hooked::hook(&call<buffer_at, owner_kind, at>);
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
      RefusingCall<"Win_create" ending, void*, Aint, N, Info, Comm, Win*>::hook<0, HandlerOwner::comm, 4>()

}  // namespace

void keep_access(BounceBuffers&& bounce) { Accesses::of_process().keep(std::move(bounce)); }

std::span<const ForwardingHook> bounced_accesses() {
  using Fetch = Bounced<"Fetch_and_op", int(const void*, void*, Datatype, int, Aint, Op, Win)>;
  using Swap = Bounced<"Compare_and_swap", int(const void*, const void*, void*, Datatype, int, Aint, Win)>;
  static const ForwardingHook table[] = {
      SPINLOOM_BOUNCED_ACCESSES("", int),
      SPINLOOM_BOUNCED_ACCESSES("_c", Count),
      Fetch::hook<bounce_rules::Fetch_and_op, Ending::epoch>(),
      Swap::hook<bounce_rules::Compare_and_swap, Ending::epoch>(),
      EpochEnd<"Win_fence", int, Win>::hook<&every_target_of_fence>(),
      EpochEnd<"Win_complete", Win>::hook<&every_target>(),
      EpochEnd<"Win_unlock", int, Win>::hook<&named_target>(),
      EpochEnd<"Win_unlock_all", Win>::hook<&every_target>(),
      EpochEnd<"Win_flush", int, Win>::hook<&named_target>(),
      EpochEnd<"Win_flush_all", Win>::hook<&every_target>(),
      EpochEnd<"Win_flush_local", int, Win>::hook<&named_target>(),
      EpochEnd<"Win_flush_local_all", Win>::hook<&every_target>(),
      RefusingCall<"Win_attach", Win, void*, Aint>::hook<1, HandlerOwner::window, 0>()};
  return table;
}

#undef SPINLOOM_BOUNCED
#undef SPINLOOM_BOUNCED_ACCESSES

}  // namespace spinloom::mpi::SPINLOOM_ABI
