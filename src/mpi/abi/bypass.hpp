// Bypass - whether a call of the program goes to the MPI at once, because it needs nothing of the layer.
//
// Contract: bypasses<&X> takes the arguments of MPI_X. Each call that the layer has a function for tries it first,
//   which costs a few loads. False: the layer's function decides.
// Invariants: (1) where it is true, the layer's function would do nothing but call the MPI's.
// Threads: never true where the MPI has granted MPI_THREAD_MULTIPLE. Time: none.
#pragma once

#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

template <auto call>
inline constexpr auto bypasses = [](const auto&...) { return false; };

namespace bypass {

inline constexpr auto send = [](const void*, auto count, Datatype type, const auto&...) {
  return layer.types.bypasses_send(type, count);
};
// MPI_Issend bypasses the layer only where the MPI can cancel sends; elsewhere MPI_Cancel must know its request.
inline constexpr auto synchronous = [](const void*, auto count, Datatype type, const auto&...) {
  return may_cancel_sends && layer.types.bypasses_send(type, count);
};
inline constexpr auto receive = [](void*, auto count, Datatype type, const auto&...) {
  return layer.bypasses_receive(type, count);
};
inline constexpr auto match = [](const auto&...) { return layer.bypasses_match(); };
inline constexpr auto both = [](const void*, auto out, Datatype out_type, int, int, void*, auto in, Datatype in_type,
                                const auto&...) {
  return layer.types.bypasses_send(out_type, out) && layer.bypasses_receive(in_type, in);
};
inline constexpr auto replace = [](void*, auto count, Datatype type, const auto&...) {
  return layer.types.bypasses_send(type, count) && layer.bypasses_receive(type, count);
};
// The send of MPI_Isendrecv is always left to the MPI.
inline constexpr auto receive_of_both = [](const void*, auto, Datatype, int, int, void*, auto count, Datatype type,
                                           const auto&...) { return layer.bypasses_receive(type, count); };
inline constexpr auto pack = [](const void*, auto count, Datatype type, const auto&...) {
  return layer.types.bypasses_pack(type, count);
};
inline constexpr auto unpack = [](const void*, auto, auto*, void*, auto count, Datatype type, Comm) {
  return layer.types.bypasses_pack(type, count);
};
inline constexpr auto request = [](Request* handle, const auto&...) { return layer.bypasses_requests(handle); };
inline constexpr auto requests = [](const auto&...) { return layer.bypasses_requests(); };

inline constexpr auto window = [](const auto&...) { return layer.bypasses_windows(); };

}  // namespace bypass

#define SPINLOOM_BYPASSES(call, rule)                        \
  template <>                                                \
  inline constexpr auto bypasses<&call<int>> = bypass::rule; \
  template <>                                                \
  inline constexpr auto bypasses<&call<Count>> = bypass::rule;
SPINLOOM_BYPASSES(Send, send)
SPINLOOM_BYPASSES(Ssend, send)
SPINLOOM_BYPASSES(Rsend, send)
SPINLOOM_BYPASSES(Isend, send)
SPINLOOM_BYPASSES(Issend, synchronous)
SPINLOOM_BYPASSES(Irsend, send)
SPINLOOM_BYPASSES(Send_init, send)
SPINLOOM_BYPASSES(Ssend_init, send)
SPINLOOM_BYPASSES(Rsend_init, send)
SPINLOOM_BYPASSES(Recv, receive)
SPINLOOM_BYPASSES(Irecv, receive)
SPINLOOM_BYPASSES(Mrecv, match)
SPINLOOM_BYPASSES(Imrecv, match)
SPINLOOM_BYPASSES(Sendrecv, both)
SPINLOOM_BYPASSES(Sendrecv_replace, replace)
SPINLOOM_BYPASSES(Isendrecv, receive_of_both)
SPINLOOM_BYPASSES(Isendrecv_replace, receive)
SPINLOOM_BYPASSES(Put, window)
SPINLOOM_BYPASSES(Get, window)
SPINLOOM_BYPASSES(Rput, window)
SPINLOOM_BYPASSES(Rget, window)
SPINLOOM_BYPASSES(Pack, pack)
SPINLOOM_BYPASSES(Unpack, unpack)
#undef SPINLOOM_BYPASSES

#define SPINLOOM_BYPASSES(call, rule) \
  template <>                         \
  inline constexpr auto bypasses<&call> = bypass::rule;
SPINLOOM_BYPASSES(Start, requests)
SPINLOOM_BYPASSES(Startall, requests)
SPINLOOM_BYPASSES(Wait, request)
SPINLOOM_BYPASSES(Waitall, requests)
SPINLOOM_BYPASSES(Waitany, requests)
SPINLOOM_BYPASSES(Waitsome, requests)
SPINLOOM_BYPASSES(Test, request)
SPINLOOM_BYPASSES(Testall, requests)
SPINLOOM_BYPASSES(Testany, requests)
SPINLOOM_BYPASSES(Testsome, requests)
SPINLOOM_BYPASSES(Request_get_status, requests)
SPINLOOM_BYPASSES(Request_get_status_all, requests)
SPINLOOM_BYPASSES(Request_get_status_any, requests)
SPINLOOM_BYPASSES(Request_get_status_some, requests)
SPINLOOM_BYPASSES(Request_free, requests)
SPINLOOM_BYPASSES(Cancel, requests)
SPINLOOM_BYPASSES(Win_free, window)
SPINLOOM_BYPASSES(Win_fence, window)
SPINLOOM_BYPASSES(Win_post, window)
SPINLOOM_BYPASSES(Win_start, window)
SPINLOOM_BYPASSES(Win_complete, window)
SPINLOOM_BYPASSES(Win_wait, window)
SPINLOOM_BYPASSES(Win_test, window)
SPINLOOM_BYPASSES(Win_lock, window)
SPINLOOM_BYPASSES(Win_unlock, window)
SPINLOOM_BYPASSES(Win_lock_all, window)
SPINLOOM_BYPASSES(Win_unlock_all, window)
#undef SPINLOOM_BYPASSES

}  // namespace spinloom::mpi::SPINLOOM_ABI
