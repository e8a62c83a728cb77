// Point-to-point calls and MPI_Pack with buffers in a GPU's memory, by their names.
#include "mpi/abi/lent.hpp"
#include "mpi/abi/loan_rules.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

#define SPINLOOM_LENT(ending, name, N, rule, form, ...) \
  Lent<#name ending, int(__VA_ARGS__)>::hook<lending::rule, Ending::form>(),
#define SPINLOOM_SENDS(ending, N)                                                                                  \
  SPINLOOM_LENT(ending, Send, N, Send, blocking, const void*, N, Datatype, int, int, Comm)                         \
  SPINLOOM_LENT(ending, Ssend, N, Send, blocking, const void*, N, Datatype, int, int, Comm)                        \
  SPINLOOM_LENT(ending, Rsend, N, Send, blocking, const void*, N, Datatype, int, int, Comm)                        \
  SPINLOOM_LENT(ending, Bsend, N, BufferedSend, blocking, const void*, N, Datatype, int, int, Comm)                \
  SPINLOOM_LENT(ending, Isend, N, Send, non_blocking, const void*, N, Datatype, int, int, Comm, Request*)          \
  SPINLOOM_LENT(ending, Issend, N, Send, non_blocking, const void*, N, Datatype, int, int, Comm, Request*)         \
  SPINLOOM_LENT(ending, Irsend, N, Send, non_blocking, const void*, N, Datatype, int, int, Comm, Request*)         \
  SPINLOOM_LENT(ending, Ibsend, N, BufferedSend, non_blocking, const void*, N, Datatype, int, int, Comm, Request*) \
  SPINLOOM_LENT(ending, Send_init, N, Send, persistent, const void*, N, Datatype, int, int, Comm, Request*)        \
  SPINLOOM_LENT(ending, Ssend_init, N, Send, persistent, const void*, N, Datatype, int, int, Comm, Request*)       \
  SPINLOOM_LENT(ending, Rsend_init, N, Send, persistent, const void*, N, Datatype, int, int, Comm, Request*)       \
  SPINLOOM_LENT(ending, Bsend_init, N, BufferedSend, persistent, const void*, N, Datatype, int, int, Comm, Request*)
#define SPINLOOM_RECEIVES(ending, N)                                                                                   \
  SPINLOOM_LENT(ending, Recv, N, Receive, blocking, void*, N, Datatype, int, int, Comm, Status*)                       \
  SPINLOOM_LENT(ending, Irecv, N, Receive, non_blocking, void*, N, Datatype, int, int, Comm, Request*)                 \
  SPINLOOM_LENT(ending, Recv_init, N, Receive, persistent, void*, N, Datatype, int, int, Comm, Request*)               \
  SPINLOOM_LENT(ending, Mrecv, N, ReceiveMatched, blocking, void*, N, Datatype, MessageHandle*, Status*)               \
  SPINLOOM_LENT(ending, Imrecv, N, ReceiveMatched, non_blocking, void*, N, Datatype, MessageHandle*, Request*)         \
  SPINLOOM_LENT(ending, Sendrecv, N, SendReceive, blocking, const void*, N, Datatype, int, int, void*, N, Datatype,    \
                int, int, Comm, Status*)                                                                               \
  SPINLOOM_LENT(ending, Isendrecv, N, BeginSendReceive, non_blocking, const void*, N, Datatype, int, int, void*, N,    \
                Datatype, int, int, Comm, Request*)                                                                    \
  SPINLOOM_LENT(ending, Sendrecv_replace, N, Replace, blocking, void*, N, Datatype, int, int, int, int, Comm, Status*) \
  SPINLOOM_LENT(ending, Isendrecv_replace, N, Replace, non_blocking, void*, N, Datatype, int, int, int, int, Comm,     \
                Request*)                                                                                              \
  SPINLOOM_LENT(ending, Pack, N, Pack, blocking, const void*, N, Datatype, void*, N, N*, Comm)                         \
  SPINLOOM_LENT(ending, Unpack, N, Unpack, blocking, const void*, N, N*, void*, N, Datatype, Comm)

}  // namespace

std::span<const OffloadHook> lent_messages() {
  static const OffloadHook table[] = {SPINLOOM_SENDS("", int) SPINLOOM_SENDS("_c", Count) SPINLOOM_RECEIVES("", int)
                                          SPINLOOM_RECEIVES("_c", Count)};
  return table;
}

#undef SPINLOOM_LENT
#undef SPINLOOM_SENDS
#undef SPINLOOM_RECEIVES

}  // namespace spinloom::mpi::SPINLOOM_ABI
