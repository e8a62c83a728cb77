// Bounced - calls whose buffers may lie in a GPU's memory.
//
// Contract: Bounced<"X", int(parameters)>::hook<Rule, ending>() makes a function that stands in front of the layer's.
//   Without a driver of a GPU in the process it costs one look at the loader (some 7 ns). With one, it looks at each
//   buffer; where all are the host's, the call goes on as it is. Buffers of a device are replaced where the MPI does
//   not take them as they are (bounce_buffers.hpp). What has arrived is put in place before a blocking call returns,
//   and for the others when they are completed: by their request, their second half (split calls on files), or the end
//   of their epoch or a flush (accesses to windows). A part of a partitioned message may land earlier (MPI_Parrived).
// Invariants: (1) calls that the MPI makes itself are left alone; (2) nothing is thrown through the program's C.
// Threads: any; a request is one thread's at a time. Time: none.
#pragma once

#include <memory>
#include <span>
#include <tuple>

#include "mpi/abi/bounced_requests.hpp"
#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// Forgets, at the end of a call, what foresee_layers_way() has noted in it.
struct ForeseenScope {
  ForeseenScope() = default;
  ForeseenScope(const ForeseenScope&) = delete;
  ForeseenScope& operator=(const ForeseenScope&) = delete;
  ~ForeseenScope() { forget_foreseen(); }
};

enum class Ending : uint8_t { blocking, non_blocking, persistent, partitioned, split, epoch };

// True if a buffer may lie in a GPU's memory, and the layer may replace it.
[[nodiscard]] inline bool may_replace() { return !DeviceWatch::of_process().has_no_driver() && layer.is_pack_on; }

// True under MPICH's interface: MPICH 4.0 copies what a rank sends to itself in a persistent collective call when the
// call is made, so the bounce buffer must be filled by then.
[[nodiscard]] inline bool reads_at_init() { return layer.library->abi() == Abi::mpich; }

// Called in each call with buffers of a device: shows memory of the device to the other ranks, looks for theirs, and
// lets no send, receive or pack bypass the layer from now on.
void meet_devices(const BounceBuffers& bounce);
// Offers what the call sends to its receiver where it lies, for the call to announce. False: the bounce buffer has to
// be filled. `waits`: the call returns when the receiver has the bytes, and does nothing else before.
[[nodiscard]] bool offer_bounced(const BounceBuffers& bounce, bool waits);
// Drops the offer that a call has not announced, because it failed.
void drop_offer(const BounceBuffers& bounce);

// Keeps the buffers of the first half of a split collective call on a file for the second (calls_bounced_files.cpp).
void keep_split(BounceBuffers&& bounce);
// Keeps the buffer of a partitioned message, which is moved by parts, for its request (calls_bounced_parts.cpp).
void keep_parts(Request request, BounceBuffers&& bounce, int count, bool is_sent);
void forget_parts(Request request);
// Keeps the buffers of an access to a window until its epoch, or a flush, has ended (calls_bounced_windows.cpp).
void keep_access(BounceBuffers&& bounce);

// A call with a function in front of it: that function calls `next`, or `mpi_function` for a call of the MPI itself.
template <Name name, class... Arguments>
struct HookedCall {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*mpi_function)(Arguments...) = nullptr;
  static ForwardingHook hook(int (*function)(Arguments...)) {
    return {name.letters, reinterpret_cast<void*>(function), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&mpi_function)};
  }
};

template <Name name, class Function>
struct Bounced;
template <Name name, class... Arguments>
struct Bounced<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*mpi_function)(Arguments...) = nullptr;

  template <class Rule, Ending ending>
  static int call(Arguments... arguments) {
    if (!may_replace()) return next(arguments...);
    if (layer.library->contains(__builtin_return_address(0))) return mpi_function(arguments...);
    const int code = bounced<Rule, ending>(arguments...);
    if (bounced_requests.has_orphans()) bounced_requests.look_at_orphans(false);
    return code;
  }
  template <class Rule, Ending ending>
  static ForwardingHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<Rule, ending>), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&mpi_function)};
  }

 private:
  template <class Rule, Ending ending>
  [[gnu::noinline]] static int bounced(Arguments... arguments) {
    const ForeseenScope foreseen;
    BounceBuffers bounce;
    bounce.call = {Rule::kind, ending == Ending::blocking, name.letters};
    try {
      Rule{}(bounce, arguments...);
      if (bounce.empty()) return next(arguments...);
      meet_devices(bounce);
      constexpr bool starts_later = ending == Ending::persistent || ending == Ending::partitioned;
      const bool reads_now = !starts_later || (Rule::is_collective && reads_at_init());
      if (reads_now) {
        const bool waits = ending == Ending::blocking && !Rule::has_bytes_in_status;
        bounce.fill(offer_bounced(bounce, waits) ? bounce.sent_buffer() : nullptr);
      }
      if constexpr (ending == Ending::blocking)
        return finish<Rule>(bounce, arguments...);
      else if constexpr (ending == Ending::split)
        return split(bounce, arguments...);
      else if constexpr (ending == Ending::partitioned)
        return partition<Rule>(bounce, arguments...);
      else if constexpr (ending == Ending::epoch)
        return access(bounce, arguments...);
      else
        return follow<Rule, ending>(bounce, arguments...);
    } catch (const Refused& refused) {
      return bounce.raise(code_of(refused.error));
    } catch (...) {
      return bounce.raise(error_other);
    }
  }
  template <class Rule>
  static int finish(BounceBuffers& bounce, Arguments... arguments) {
    Status own_status{};
    Status* status = &own_status;
    if constexpr (Rule::has_bytes_in_status) {
      auto all_arguments = std::tie(arguments...);
      Status*& program_status = std::get<sizeof...(Arguments) - 1>(all_arguments);
      if (program_status == status_ignore) program_status = &own_status;
      status = program_status;
    }
    const int code = next(arguments...);
    if (code != success) drop_offer(bounce);
    if (code == success) bounce.land(Rule::has_bytes_in_status ? bytes_of(*status, real) : -1);
    return code;
  }
  static int split(BounceBuffers& bounce, Arguments... arguments) {
    const int code = next(arguments...);
    if (code == success) keep_split(std::move(bounce));
    return code;
  }
  template <class Rule>
  static int partition(BounceBuffers& bounce, Arguments... arguments) {
    const int code = next(arguments...);
    const auto all_arguments = std::tie(arguments...);
    if (code == success)
      keep_parts(*std::get<sizeof...(Arguments) - 1>(all_arguments), std::move(bounce), std::get<1>(all_arguments),
                 Rule::is_sent);
    return code;
  }
  static int access(BounceBuffers& bounce, Arguments... arguments) {
    const int code = next(arguments...);
    if (code == success) keep_access(std::move(bounce));
    return code;
  }
  template <class Rule, Ending ending>
  static int follow(BounceBuffers& bounce, Arguments... arguments) {
    auto request = std::make_shared<BouncedRequest>();
    request->bounce = std::move(bounce);
    request->has_bytes_in_status =
        Rule::has_bytes_in_status && !Rule::sends_too;  // statuses of MPI_Isendrecv are not always the receive's
    request->is_persistent = ending == Ending::persistent;
    request->is_active = !request->is_persistent;
    const int code = next(arguments...);
    if (code != success) {
      drop_offer(request->bounce);
      return code;
    }
    if (!request->is_persistent && request->bounce.is_untouched()) return code;
    auto all_arguments = std::tie(arguments...);
    const Request handle = *std::get<sizeof...(Arguments) - 1>(all_arguments);
    // A request that has ended already lands now, because MPIs give several such requests the same handle. Requests are
    // not tested if the number of bytes comes from the status, nor those of files: after that MPI_Test fails in MPICH
    // 5, and Open MPI 4.1 says yes before the bytes are there.
    if (request->is_active && !request->has_bytes_in_status && !request->bounce.file && has_ended(handle)) {
      request->bounce.land(-1);
      return success;
    }
    bounced_requests.keep(handle, std::move(request));
    return code;
  }
};

[[nodiscard]] std::span<const ForwardingHook> bounced_messages();
[[nodiscard]] std::span<const ForwardingHook> bounced_collectives();
[[nodiscard]] std::span<const ForwardingHook> bounced_reductions();
[[nodiscard]] std::span<const ForwardingHook> bounced_local();
[[nodiscard]] std::span<const ForwardingHook> bounced_files();
[[nodiscard]] std::span<const ForwardingHook> bounced_accesses();
[[nodiscard]] std::span<const ForwardingHook> bounced_parts();

}  // namespace spinloom::mpi::SPINLOOM_ABI
