// Point-to-point calls and MPI_Pack with buffers in a GPU's memory, by their names.
#include "mpi/abi/bounce_rules.hpp"
#include "mpi/abi/bounced.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

#define SPINLOOM_BOUNCED(ending, name, N, rule, form, ...) \
  Bounced<#name ending, int(__VA_ARGS__)>::hook<bounce_rules::rule, Ending::form>(),
#define SPINLOOM_SENDS(ending, N)                                                                                     \
  SPINLOOM_BOUNCED(ending, Send, N, Send, blocking, const void*, N, Datatype, int, int, Comm)                         \
  SPINLOOM_BOUNCED(ending, Ssend, N, Send, blocking, const void*, N, Datatype, int, int, Comm)                        \
  SPINLOOM_BOUNCED(ending, Rsend, N, Send, blocking, const void*, N, Datatype, int, int, Comm)                        \
  SPINLOOM_BOUNCED(ending, Bsend, N, BufferedSend, blocking, const void*, N, Datatype, int, int, Comm)                \
  SPINLOOM_BOUNCED(ending, Isend, N, Send, non_blocking, const void*, N, Datatype, int, int, Comm, Request*)          \
  SPINLOOM_BOUNCED(ending, Issend, N, Send, non_blocking, const void*, N, Datatype, int, int, Comm, Request*)         \
  SPINLOOM_BOUNCED(ending, Irsend, N, Send, non_blocking, const void*, N, Datatype, int, int, Comm, Request*)         \
  SPINLOOM_BOUNCED(ending, Ibsend, N, BufferedSend, non_blocking, const void*, N, Datatype, int, int, Comm, Request*) \
  SPINLOOM_BOUNCED(ending, Send_init, N, Send, persistent, const void*, N, Datatype, int, int, Comm, Request*)        \
  SPINLOOM_BOUNCED(ending, Ssend_init, N, Send, persistent, const void*, N, Datatype, int, int, Comm, Request*)       \
  SPINLOOM_BOUNCED(ending, Rsend_init, N, Send, persistent, const void*, N, Datatype, int, int, Comm, Request*)       \
  SPINLOOM_BOUNCED(ending, Bsend_init, N, BufferedSend, persistent, const void*, N, Datatype, int, int, Comm, Request*)
#define SPINLOOM_RECEIVES(ending, N)                                                                                   \
  SPINLOOM_BOUNCED(ending, Recv, N, Receive, blocking, void*, N, Datatype, int, int, Comm, Status*)                    \
  SPINLOOM_BOUNCED(ending, Irecv, N, Receive, non_blocking, void*, N, Datatype, int, int, Comm, Request*)              \
  SPINLOOM_BOUNCED(ending, Recv_init, N, Receive, persistent, void*, N, Datatype, int, int, Comm, Request*)            \
  SPINLOOM_BOUNCED(ending, Mrecv, N, ReceiveMatched, blocking, void*, N, Datatype, MessageHandle*, Status*)            \
  SPINLOOM_BOUNCED(ending, Imrecv, N, ReceiveMatched, non_blocking, void*, N, Datatype, MessageHandle*, Request*)      \
  SPINLOOM_BOUNCED(ending, Sendrecv, N, SendReceive, blocking, const void*, N, Datatype, int, int, void*, N, Datatype, \
                   int, int, Comm, Status*)                                                                            \
  SPINLOOM_BOUNCED(ending, Isendrecv, N, BeginSendReceive, non_blocking, const void*, N, Datatype, int, int, void*, N, \
                   Datatype, int, int, Comm, Request*)                                                                 \
  SPINLOOM_BOUNCED(ending, Sendrecv_replace, N, Replace, blocking, void*, N, Datatype, int, int, int, int, Comm,       \
                   Status*)                                                                                            \
  SPINLOOM_BOUNCED(ending, Isendrecv_replace, N, Replace, non_blocking, void*, N, Datatype, int, int, int, int, Comm,  \
                   Request*)                                                                                           \
  SPINLOOM_BOUNCED(ending, Pack, N, Pack, blocking, const void*, N, Datatype, void*, N, N*, Comm)                      \
  SPINLOOM_BOUNCED(ending, Unpack, N, Unpack, blocking, const void*, N, N*, void*, N, Datatype, Comm)

}  // namespace

std::span<const ForwardingHook> bounced_messages() {
  static const ForwardingHook table[] = {SPINLOOM_SENDS("", int) SPINLOOM_SENDS("_c", Count) SPINLOOM_RECEIVES("", int)
                                             SPINLOOM_RECEIVES("_c", Count)};
  return table;
}

#undef SPINLOOM_BOUNCED
#undef SPINLOOM_SENDS
#undef SPINLOOM_RECEIVES

}  // namespace spinloom::mpi::SPINLOOM_ABI
