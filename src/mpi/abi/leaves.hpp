// Leaves - whether a call of the program goes to the MPI at once, because it needs nothing of the layer.
//
// Contract: leaves<&X> takes the arguments of MPI_X. It is asked first in every call, and costs a few loads. False: the
//   layer's function finds out.
// Invariants: (1) where it is true, the layer's function would do nothing but call the MPI's.
// Threads: never true where the program has asked for MPI_THREAD_MULTIPLE. Time: none.
#pragma once

#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

template <auto call>
inline constexpr auto leaves = [](const auto&...) { return false; };

namespace leaving {

inline constexpr auto send = [](const void*, auto count, Datatype type, const auto&...) {
  return layer.types.leaves_send(type, count);
};
// MPI_Cancel wants to know such sends where the MPI must not be asked.
inline constexpr auto synchronous = [](const void*, auto count, Datatype type, const auto&...) {
  return may_cancel_sends && layer.types.leaves_send(type, count);
};
inline constexpr auto receive = [](void*, auto count, Datatype type, const auto&...) {
  return layer.leaves_receive(type, count);
};
inline constexpr auto match = [](const auto&...) { return layer.leaves_match(); };
inline constexpr auto both = [](const void*, auto out, Datatype out_type, int, int, void*, auto in, Datatype in_type,
                                const auto&...) {
  return layer.types.leaves_send(out_type, out) && layer.leaves_receive(in_type, in);
};
inline constexpr auto replace = [](void*, auto count, Datatype type, const auto&...) {
  return layer.types.leaves_send(type, count) && layer.leaves_receive(type, count);
};
// What such calls send is always left to the MPI.
inline constexpr auto receive_of_both = [](const void*, auto, Datatype, int, int, void*, auto count, Datatype type,
                                           const auto&...) { return layer.leaves_receive(type, count); };
inline constexpr auto pack = [](const void*, auto count, Datatype type, const auto&...) {
  return layer.types.leaves_pack(type, count);
};
inline constexpr auto unpack = [](const void*, auto, auto*, void*, auto count, Datatype type, Comm) {
  return layer.types.leaves_pack(type, count);
};
inline constexpr auto request = [](Request* one, const auto&...) { return layer.rests(one); };
inline constexpr auto requests = [](const auto&...) { return layer.rests(); };

inline constexpr auto window = [](const auto&...) { return layer.leaves_windows(); };

}  // namespace leaving

#define SPINLOOM_LEAVES(call, rule)                         \
  template <>                                               \
  inline constexpr auto leaves<&call<int>> = leaving::rule; \
  template <>                                               \
  inline constexpr auto leaves<&call<Count>> = leaving::rule;
SPINLOOM_LEAVES(Send, send)
SPINLOOM_LEAVES(Ssend, send)
SPINLOOM_LEAVES(Rsend, send)
SPINLOOM_LEAVES(Isend, send)
SPINLOOM_LEAVES(Issend, synchronous)
SPINLOOM_LEAVES(Irsend, send)
SPINLOOM_LEAVES(Send_init, send)
SPINLOOM_LEAVES(Ssend_init, send)
SPINLOOM_LEAVES(Rsend_init, send)
SPINLOOM_LEAVES(Recv, receive)
SPINLOOM_LEAVES(Irecv, receive)
SPINLOOM_LEAVES(Mrecv, match)
SPINLOOM_LEAVES(Imrecv, match)
SPINLOOM_LEAVES(Sendrecv, both)
SPINLOOM_LEAVES(Sendrecv_replace, replace)
SPINLOOM_LEAVES(Isendrecv, receive_of_both)
SPINLOOM_LEAVES(Isendrecv_replace, receive)
SPINLOOM_LEAVES(Put, window)
SPINLOOM_LEAVES(Get, window)
SPINLOOM_LEAVES(Rput, window)
SPINLOOM_LEAVES(Rget, window)
SPINLOOM_LEAVES(Pack, pack)
SPINLOOM_LEAVES(Unpack, unpack)
#undef SPINLOOM_LEAVES

#define SPINLOOM_LEAVES(call, rule) \
  template <>                       \
  inline constexpr auto leaves<&call> = leaving::rule;
SPINLOOM_LEAVES(Start, requests)
SPINLOOM_LEAVES(Startall, requests)
SPINLOOM_LEAVES(Wait, request)
SPINLOOM_LEAVES(Waitall, requests)
SPINLOOM_LEAVES(Waitany, requests)
SPINLOOM_LEAVES(Waitsome, requests)
SPINLOOM_LEAVES(Test, request)
SPINLOOM_LEAVES(Testall, requests)
SPINLOOM_LEAVES(Testany, requests)
SPINLOOM_LEAVES(Testsome, requests)
SPINLOOM_LEAVES(Request_get_status, requests)
SPINLOOM_LEAVES(Request_get_status_all, requests)
SPINLOOM_LEAVES(Request_get_status_any, requests)
SPINLOOM_LEAVES(Request_get_status_some, requests)
SPINLOOM_LEAVES(Request_free, requests)
SPINLOOM_LEAVES(Cancel, requests)
SPINLOOM_LEAVES(Win_free, window)
SPINLOOM_LEAVES(Win_fence, window)
SPINLOOM_LEAVES(Win_post, window)
SPINLOOM_LEAVES(Win_start, window)
SPINLOOM_LEAVES(Win_complete, window)
SPINLOOM_LEAVES(Win_wait, window)
SPINLOOM_LEAVES(Win_test, window)
SPINLOOM_LEAVES(Win_lock, window)
SPINLOOM_LEAVES(Win_unlock, window)
SPINLOOM_LEAVES(Win_lock_all, window)
SPINLOOM_LEAVES(Win_unlock_all, window)
#undef SPINLOOM_LEAVES

}  // namespace spinloom::mpi::SPINLOOM_ABI
