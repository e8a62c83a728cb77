// Recorded - a call of the program, with its times and arguments written down.
//
// Contract: Recorded<"X", int(parameters)>::call<Call, form, Rule> stands in front of `next`: the layer's function or
//   the MPI's. A Rule sees the arguments before the call, and may replace them; after the call it fills in the
//   signature.
// Invariants: (1) what a rule throws ends in the Recorder, never in the program. Threads: any. Time: the call's own, in
//   ns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "mpi/abi/recorder.hpp"
#include "mpi/entry/front.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The name of a call as a template's argument, so that each has a `next` of its own.
template <size_t n>
struct Name {
  char letters[n]{};
  constexpr Name(const char (&text)[n]) { std::copy_n(text, n, letters); }
};

// The base of the rules. Of a call that failed only the error is recorded, unless `always` is set.
struct Rule {
  static constexpr bool always = false;
  void before(auto&...) {}
};

template <Name name, class Function>
struct Recorded;
template <Name name, class... Arguments>
struct Recorded<name, int(Arguments...)> {
  static inline int (*next)(Arguments...) = nullptr;

  template <trace::Call which, trace::CallForm form, class CallRule>
  static int call(Arguments... arguments) {
    if (!recorder.records(__builtin_return_address(0))) return next(arguments...);
    CallRule rule;
    if (!recorder.prepare([&] { rule.before(arguments...); })) return next(arguments...);
    const uint64_t begin_ns = Recorder::now_ns();
    recorder.enter(which, form, begin_ns);
    const int code = next(arguments...);
    recorder.note(which, form, begin_ns, code, [&](trace::Signature& signature) {
      if (CallRule::always || code == success) rule.after(signature, arguments...);
    });
    return code;
  }
  template <trace::Call which, trace::CallForm form, class CallRule>
  static RecordingHook hook() {
    return {name.letters, reinterpret_cast<void*>(&call<which, form, CallRule>), reinterpret_cast<void**>(&next)};
  }
};

// Notes the request that the call has made; blocking calls make none.
inline void note_request(trace::Signature&, bool) {}
inline void note_request(trace::Signature& signature, bool has_wildcard, Request* request) {
  if (*request == handles().request_null) return;
  const bool is_persistent = signature.form == trace::CallForm::persistent;
  signature.requests.push_back(recorder.slots().add(key_of(*request), is_persistent, has_wildcard));
}
inline void note_request(trace::Signature& signature, bool has_wildcard, Info, Request* request) {
  note_request(signature, has_wildcard, request);
}

// Returns the block of `count` elements at `buffer`, as the trace has it.
[[nodiscard]] inline trace::Block block_of(const void* buffer, int64_t count, Datatype type) {
  return {reinterpret_cast<uint64_t>(buffer), count, recorder.type(type)};
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
