// Lent - calls whose buffers may lie in a GPU's memory.
//
// Contract: Lent<"X", int(parameters)>::hook<Rule, ending>() stands in front of the layer's function. Without a driver
//   of a GPU in the process a call costs one question to the loader more (some 7 ns). With one,
//   each buffer is looked at; where all are the host's, the call goes on as it is. A call that has some of a device
//   gets other memory in their place, where the MPI does not take them as they are (loan.hpp): a blocking one puts what
//   has come in place before it returns, others when they are completed.
// Invariants: (1) calls that the MPI makes itself are left alone; (2) nothing is thrown through the program's C.
// Threads: any; a request is one thread's at a time. Time: none.
#pragma once

#include <memory>
#include <span>
#include <tuple>

#include "mpi/abi/lent_requests.hpp"
#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// Nothing that is foreseen in a call outlives it.
struct Foreseen {
  Foreseen() = default;
  Foreseen(const Foreseen&) = delete;
  Foreseen& operator=(const Foreseen&) = delete;
  ~Foreseen() { forget_foreseen(); }
};

enum class Ending : uint8_t { blocking, non_blocking, persistent, partitioned, split, epoch };

[[nodiscard]] inline bool may_lend() { return !DeviceWatch::of_process().none() && layer.pack_on; }

// MPICH 4.0 copies what a rank sends itself in persistent collective calls when they are made.
[[nodiscard]] inline bool reads_at_init() { return layer.library->abi() == Abi::mpich; }

// The first calls with buffers of a device: ranks find out whose device memory they can map.
void meet_devices(const Loan& loan);
// Offers what the call sends to its receiver where it lies, for the call to announce. False: the host is to have the
// bytes. `waits`: the call returns when the receiver has them, and does nothing else before.
[[nodiscard]] bool offer_lent(const Loan& loan, bool waits);
// What the call has not announced, because it failed.
void drop_offer(const Loan& loan);

// The first half of a collective call on a file: its loan is kept for the second (calls_lent_files.cpp).
void keep_split(Loan&& loan);
// A partitioned message: its request's loan moves by parts (calls_lent_parts.cpp).
void keep_parts(Request request, Loan&& loan, int count, bool is_sent);
void forget_parts(Request request);
// An access to a window: its loan is kept until its epoch, or a flush, has ended (calls_lent_windows.cpp).
void keep_access(Loan&& loan);

// A call that a function of the layer's stands in front of.
template <Name name, class... Arguments>
struct Next {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*the_mpis)(Arguments...) = nullptr;
  static OffloadHook hook(int (*function)(Arguments...)) {
    return {name.letters, reinterpret_cast<void*>(function), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&the_mpis)};
  }
};

template <Name name, class Function>
struct Lent;
template <Name name, class... Arguments>
struct Lent<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;
  static inline int (*the_mpis)(Arguments...) = nullptr;

  template <class Rule, Ending ending>
  static int call(Arguments... arguments) {
    if (!may_lend()) return next(arguments...);
    if (layer.library->inside(__builtin_return_address(0))) return the_mpis(arguments...);
    const int code = lent<Rule, ending>(arguments...);
    if (lent_requests.has_orphans()) lent_requests.look_at_orphans(false);
    return code;
  }
  template <class Rule, Ending ending>
  static OffloadHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<Rule, ending>), reinterpret_cast<void**>(&next),
            reinterpret_cast<void**>(&the_mpis)};
  }

 private:
  template <class Rule, Ending ending>
  [[gnu::noinline]] static int lent(Arguments... arguments) {
    const Foreseen foreseen;
    Loan loan;
    loan.call = {Rule::takes, ending == Ending::blocking, name.letters};
    try {
      Rule{}(loan, arguments...);
      if (loan.empty()) return next(arguments...);
      meet_devices(loan);
      constexpr bool starts_later = ending == Ending::persistent || ending == Ending::partitioned;
      const bool reads_now = !starts_later || (Rule::is_collective && reads_at_init());
      if (reads_now) {
        const bool waits = ending == Ending::blocking && !Rule::by_status;
        loan.fill(offer_lent(loan, waits) ? loan.sent() : nullptr);
      }
      if constexpr (ending == Ending::blocking)
        return finish<Rule>(loan, arguments...);
      else if constexpr (ending == Ending::split)
        return split(loan, arguments...);
      else if constexpr (ending == Ending::partitioned)
        return partition<Rule>(loan, arguments...);
      else if constexpr (ending == Ending::epoch)
        return access(loan, arguments...);
      else
        return follow<Rule, ending>(loan, arguments...);
    } catch (const Refused& refused) {
      return loan.raise(code_of(refused.error));
    } catch (...) {
      return loan.raise(error_other);
    }
  }
  template <class Rule>
  static int finish(Loan& loan, Arguments... arguments) {
    Status own{};
    Status* status = &own;
    if constexpr (Rule::by_status) {
      auto all = std::tie(arguments...);
      Status*& theirs = std::get<sizeof...(Arguments) - 1>(all);
      if (theirs == status_ignore) theirs = &own;
      status = theirs;
    }
    const int code = next(arguments...);
    if (code != success) drop_offer(loan);
    if (code == success) loan.land(Rule::by_status ? bytes_of(*status, real) : -1);
    return code;
  }
  static int split(Loan& loan, Arguments... arguments) {
    const int code = next(arguments...);
    if (code == success) keep_split(std::move(loan));
    return code;
  }
  template <class Rule>
  static int partition(Loan& loan, Arguments... arguments) {
    const int code = next(arguments...);
    const auto all = std::tie(arguments...);
    if (code == success)
      keep_parts(*std::get<sizeof...(Arguments) - 1>(all), std::move(loan), std::get<1>(all), Rule::is_sent);
    return code;
  }
  static int access(Loan& loan, Arguments... arguments) {
    const int code = next(arguments...);
    if (code == success) keep_access(std::move(loan));
    return code;
  }
  template <class Rule, Ending ending>
  static int follow(Loan& loan, Arguments... arguments) {
    auto request = std::make_shared<LentRequest>();
    request->loan = std::move(loan);
    request->by_status = Rule::by_status && !Rule::sends_too;  // statuses of MPI_Isendrecv are not always the receive's
    request->is_persistent = ending == Ending::persistent;
    request->is_active = !request->is_persistent;
    const int code = next(arguments...);
    if (code != success) {
      drop_offer(request->loan);
      return code;
    }
    if (!request->is_persistent && request->loan.is_untouched()) return code;
    auto all = std::tie(arguments...);
    const Request made = *std::get<sizeof...(Arguments) - 1>(all);
    // What has ended at once lands at once: MPIs give several such requests the same handle. A file's request is not
    // asked: after the question MPI_Test fails in MPICH 5, and the answer of Open MPI 4.1 comes before the bytes.
    if (request->is_active && !request->by_status && !request->loan.file && has_ended(made)) {
      request->loan.land(-1);
      return success;
    }
    lent_requests.keep(made, std::move(request));
    return code;
  }
};

[[nodiscard]] std::span<const OffloadHook> lent_messages();
[[nodiscard]] std::span<const OffloadHook> lent_collectives();
[[nodiscard]] std::span<const OffloadHook> lent_reductions();
[[nodiscard]] std::span<const OffloadHook> lent_local();
[[nodiscard]] std::span<const OffloadHook> lent_files();
[[nodiscard]] std::span<const OffloadHook> lent_accesses();
[[nodiscard]] std::span<const OffloadHook> lent_parts();

}  // namespace spinloom::mpi::SPINLOOM_ABI
