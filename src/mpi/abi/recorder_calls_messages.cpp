// The recorded point-to-point calls, with ints and with large counts.
#include "mpi/abi/recorder_calls.hpp"
#include "mpi/abi/recorder_messages.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

using trace::Call;
using trace::CallForm;

// For the function `name`: the call, the form and the rule by which it is recorded.
#define SPINLOOM_AS(name, which, how, rule_of)      \
  struct As_##name {                                \
    static constexpr Call call = Call::which;       \
    static constexpr CallForm form = CallForm::how; \
    using CallRule = rules::rule_of;                \
  };
SPINLOOM_AS(Send, Send, blocking, Send)
SPINLOOM_AS(Ssend, Ssend, blocking, Send)
SPINLOOM_AS(Rsend, Rsend, blocking, Send)
SPINLOOM_AS(Bsend, Bsend, blocking, Send)
SPINLOOM_AS(Isend, Send, nonblocking, Send)
SPINLOOM_AS(Issend, Ssend, nonblocking, Send)
SPINLOOM_AS(Irsend, Rsend, nonblocking, Send)
SPINLOOM_AS(Ibsend, Bsend, nonblocking, Send)
SPINLOOM_AS(Send_init, Send, persistent, Send)
SPINLOOM_AS(Ssend_init, Ssend, persistent, Send)
SPINLOOM_AS(Rsend_init, Rsend, persistent, Send)
SPINLOOM_AS(Bsend_init, Bsend, persistent, Send)
SPINLOOM_AS(Recv, Recv, blocking, Receive)
SPINLOOM_AS(Irecv, Recv, nonblocking, ReceiveLater)
SPINLOOM_AS(Recv_init, Recv, persistent, ReceiveLater)
SPINLOOM_AS(Mrecv, Mrecv, blocking, ReceiveMatched)
SPINLOOM_AS(Imrecv, Mrecv, nonblocking, ReceiveMatchedLater)
SPINLOOM_AS(Sendrecv, Sendrecv, blocking, SendReceive)
SPINLOOM_AS(Isendrecv, Sendrecv, nonblocking, SendReceive)
SPINLOOM_AS(Sendrecv_replace, Sendrecv_replace, blocking, Replace)
SPINLOOM_AS(Isendrecv_replace, Sendrecv_replace, nonblocking, Replace)
#undef SPINLOOM_AS
struct NotRecorded;  // calls that move nothing between ranks have this
using As_Pack = NotRecorded;
using As_Unpack = NotRecorded;

template <Name name, class As, class Function>
RecordingHook hook_of() {
  if constexpr (std::is_same_v<As, NotRecorded>) {
    return {"", nullptr, nullptr};
  } else {
    return Recorded<name, Function>::template hook<As::call, As::form, typename As::CallRule>();
  }
}

#define SPINLOOM_HOOK(name, N, parameters) hook_of<#name, As_##name, int parameters>(),
#define SPINLOOM_HOOK_C(name, N, parameters) hook_of<#name "_c", As_##name, int parameters>(),

}  // namespace

std::span<const RecordingHook> message_calls() {
  static const RecordingHook table[] = {
      SPINLOOM_COUNTED_CALLS(SPINLOOM_HOOK, int) SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_HOOK, int)
          SPINLOOM_BUFFERED_CALLS(SPINLOOM_HOOK, int) SPINLOOM_COUNTED_CALLS(SPINLOOM_HOOK_C, Count)
              SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_HOOK_C, Count) SPINLOOM_BUFFERED_CALLS(SPINLOOM_HOOK_C, Count)};
  return table;
}

#undef SPINLOOM_HOOK
#undef SPINLOOM_HOOK_C

}  // namespace spinloom::mpi::SPINLOOM_ABI
