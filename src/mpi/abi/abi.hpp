// Abi - one binary interface of MPI: its handles and numbers, and the functions of the MPI that is loaded.
//
// Every source in this folder is compiled once for each interface, into a namespace of its own (SPINLOOM_ABI).
//
// Contract: load() fills `real` with the MPI's PMPI functions. A function that not every MPI has is null where it is
//   missing: those of MPI 4 and later, and those of files.
// Invariants: (1) nothing here includes an mpi.h. Threads: one thread calls load(), before all others. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

// handles_openmpi.hpp, handles_mpich.hpp or handles_standard.hpp
#include SPINLOOM_HANDLES

namespace spinloom::mpi::SPINLOOM_ABI {

using Aint = intptr_t;
using Offset = int64_t;
// MPI_File is a pointer in every interface.
using File = struct FileOfTheMpi*;
using Count = int64_t;
using CommCopy = int(Comm, int, void*, void*, void*, int*);
using CommDelete = int(Comm, int, void*, void*);
using TypeCopy = int(Datatype, int, void*, void*, void*, int*);
using TypeDelete = int(Datatype, int, void*, void*);
using GrequestQuery = int(void*, Status*);
using GrequestFree = int(void*);
using GrequestCancel = int(void*, int);

// X(name, parameters). Calls that the layer also needs in their form with large counts (MPI 4) are in the lists below
// whose counts have the type N.
#define SPINLOOM_REAL_CALLS(X)                                                         \
  X(Init, (int*, char***))                                                             \
  X(Init_thread, (int*, char***, int, int*))                                           \
  X(Finalize, ())                                                                      \
  X(Query_thread, (int*))                                                              \
  X(Start, (Request*))                                                                 \
  X(Startall, (int, Request*))                                                         \
  X(Wait, (Request*, Status*))                                                         \
  X(Waitall, (int, Request*, Status*))                                                 \
  X(Waitany, (int, Request*, int*, Status*))                                           \
  X(Waitsome, (int, Request*, int*, int*, Status*))                                    \
  X(Test, (Request*, int*, Status*))                                                   \
  X(Testall, (int, Request*, int*, Status*))                                           \
  X(Testany, (int, Request*, int*, int*, Status*))                                     \
  X(Testsome, (int, Request*, int*, int*, Status*))                                    \
  X(Request_get_status, (Request, int*, Status*))                                      \
  X(Request_free, (Request*))                                                          \
  X(Cancel, (Request*))                                                                \
  X(Test_cancelled, (const Status*, int*))                                             \
  X(Probe, (int, int, Comm, Status*))                                                  \
  X(Iprobe, (int, int, Comm, int*, Status*))                                           \
  X(Mprobe, (int, int, Comm, MessageHandle*, Status*))                                 \
  X(Improbe, (int, int, Comm, int*, MessageHandle*, Status*))                          \
  X(Get_elements_x, (const Status*, Datatype, Count*))                                 \
  X(Status_set_elements_x, (Status*, Datatype, Count))                                 \
  X(Status_set_cancelled, (Status*, int))                                              \
  X(Grequest_start, (GrequestQuery*, GrequestFree*, GrequestCancel*, void*, Request*)) \
  X(Grequest_complete, (Request))                                                      \
  X(Comm_rank, (Comm, int*))                                                           \
  X(Comm_size, (Comm, int*))                                                           \
  X(Comm_remote_size, (Comm, int*))                                                    \
  X(Comm_free, (Comm*))                                                                \
  X(Comm_disconnect, (Comm*))                                                          \
  X(Comm_group, (Comm, Group*))                                                        \
  X(Comm_remote_group, (Comm, Group*))                                                 \
  X(Comm_idup, (Comm, Comm*, Request*))                                                \
  X(Comm_test_inter, (Comm, int*))                                                     \
  X(Comm_get_parent, (Comm*))                                                          \
  X(Comm_call_errhandler, (Comm, int))                                                 \
  X(Comm_create_keyval, (CommCopy*, CommDelete*, int*, void*))                         \
  X(Comm_set_attr, (Comm, int, void*))                                                 \
  X(Comm_get_attr, (Comm, int, void*, int*))                                           \
  X(Comm_delete_attr, (Comm, int))                                                     \
  X(Comm_set_errhandler, (Comm, Errhandler))                                           \
  X(Group_incl, (Group, int, const int*, Group*))                                      \
  X(Group_size, (Group, int*))                                                         \
  X(Group_translate_ranks, (Group, int, const int*, Group, int*))                      \
  X(Group_free, (Group*))                                                              \
  X(Topo_test, (Comm, int*))                                                           \
  X(Cartdim_get, (Comm, int*))                                                         \
  X(Cart_get, (Comm, int, int*, int*, int*))                                           \
  X(Cart_shift, (Comm, int, int, int*, int*))                                          \
  X(Graph_neighbors_count, (Comm, int, int*))                                          \
  X(Graph_neighbors, (Comm, int, int, int*))                                           \
  X(Dist_graph_neighbors_count, (Comm, int*, int*, int*))                              \
  X(Dist_graph_neighbors, (Comm, int, int*, int*, int, int*, int*))                    \
  X(Type_create_keyval, (TypeCopy*, TypeDelete*, int*, void*))                         \
  X(Type_set_attr, (Datatype, int, void*))                                             \
  X(Type_delete_attr, (Datatype, int))                                                 \
  X(Type_commit, (Datatype*))                                                          \
  X(Barrier, (Comm))                                                                   \
  X(Reduce_local, (const void*, void*, int, Datatype, Op))                             \
  X(Pack_external, (const char*, const void*, int, Datatype, void*, Aint, Aint*))      \
  X(Unpack_external, (const char*, const void*, Aint, Aint*, void*, int, Datatype))    \
  X(Buffer_attach, (void*, int))                                                       \
  X(Buffer_detach, (void*, int*))                                                      \
  X(Type_contiguous, (int, Datatype, Datatype*))                                       \
  X(Type_create_struct, (int, const int*, const Aint*, const Datatype*, Datatype*))    \
  X(Type_create_resized, (Datatype, Aint, Aint, Datatype*))                            \
  X(Type_dup, (Datatype, Datatype*))                                                   \
  X(Add_error_class, (int*))                                                           \
  X(Add_error_code, (int, int*))                                                       \
  X(Add_error_string, (int, const char*))                                              \
  X(Type_free, (Datatype*))                                                            \
  X(Get_library_version, (char*, int*))                                                \
  X(Type_get_name, (Datatype, char*, int*))                                            \
  X(Win_get_attr, (Win, int, void*, int*))                                             \
  X(Win_get_group, (Win, Group*))                                                      \
  X(Win_call_errhandler, (Win, int))                                                   \
  X(Type_size_x, (Datatype, Count*))                                                   \
  X(Type_get_extent_x, (Datatype, Count*, Count*))                                     \
  X(Type_get_true_extent_x, (Datatype, Count*, Count*))                                \
  X(Type_get_envelope, (Datatype, int*, int*, int*, int*))                             \
  X(Type_get_contents, (Datatype, int, int, int, int*, Aint*, Datatype*))

// Calls of MPI 4 and later, and of files, which an MPI may be built without: null where the MPI does not have them.
#define SPINLOOM_NEWER_CALLS(X)                                            \
  X(File_call_errhandler, (File, int))                                     \
  X(Request_get_status_all, (int, const Request*, int*, Status*))          \
  X(Request_get_status_any, (int, const Request*, int*, int*, Status*))    \
  X(Request_get_status_some, (int, const Request*, int*, int*, Status*))   \
  X(Type_get_envelope_c, (Datatype, Count*, Count*, Count*, Count*, int*)) \
  X(Type_get_contents_c, (Datatype, Count, Count, Count, Count, int*, Aint*, Count*, Datatype*))

// Calls that take counts: X(name, N, parameters) where N is int, or Count in the form name_c.
#define SPINLOOM_COUNTED_CALLS(X, N)                                                                \
  X(Send, N, (const void*, N, Datatype, int, int, Comm))                                            \
  X(Ssend, N, (const void*, N, Datatype, int, int, Comm))                                           \
  X(Rsend, N, (const void*, N, Datatype, int, int, Comm))                                           \
  X(Isend, N, (const void*, N, Datatype, int, int, Comm, Request*))                                 \
  X(Issend, N, (const void*, N, Datatype, int, int, Comm, Request*))                                \
  X(Irsend, N, (const void*, N, Datatype, int, int, Comm, Request*))                                \
  X(Send_init, N, (const void*, N, Datatype, int, int, Comm, Request*))                             \
  X(Ssend_init, N, (const void*, N, Datatype, int, int, Comm, Request*))                            \
  X(Rsend_init, N, (const void*, N, Datatype, int, int, Comm, Request*))                            \
  X(Recv, N, (void*, N, Datatype, int, int, Comm, Status*))                                         \
  X(Irecv, N, (void*, N, Datatype, int, int, Comm, Request*))                                       \
  X(Recv_init, N, (void*, N, Datatype, int, int, Comm, Request*))                                   \
  X(Mrecv, N, (void*, N, Datatype, MessageHandle*, Status*))                                        \
  X(Imrecv, N, (void*, N, Datatype, MessageHandle*, Request*))                                      \
  X(Sendrecv, N, (const void*, N, Datatype, int, int, void*, N, Datatype, int, int, Comm, Status*)) \
  X(Sendrecv_replace, N, (void*, N, Datatype, int, int, int, int, Comm, Status*))                   \
  X(Pack, N, (const void*, N, Datatype, void*, N, N*, Comm))                                        \
  X(Unpack, N, (const void*, N, N*, void*, N, Datatype, Comm))

// Calls of MPI 4 in the same form: null where the MPI does not have them.
#define SPINLOOM_COUNTED_NEWER_CALLS(X, N)                                                            \
  X(Isendrecv, N, (const void*, N, Datatype, int, int, void*, N, Datatype, int, int, Comm, Request*)) \
  X(Isendrecv_replace, N, (void*, N, Datatype, int, int, int, int, Comm, Request*))

// Blocking calls that make a communicator, which is their last argument, and for which the layer has a function.
#define SPINLOOM_COMM_CALLS(X)                                                                        \
  X(Comm_dup, (Comm, Comm*))                                                                          \
  X(Comm_dup_with_info, (Comm, Info, Comm*))                                                          \
  X(Comm_split, (Comm, int, int, Comm*))                                                              \
  X(Comm_split_type, (Comm, int, int, Info, Comm*))                                                   \
  X(Comm_create, (Comm, Group, Comm*))                                                                \
  X(Comm_create_group, (Comm, Group, int, Comm*))                                                     \
  X(Cart_create, (Comm, int, const int*, const int*, int, Comm*))                                     \
  X(Cart_sub, (Comm, const int*, Comm*))                                                              \
  X(Graph_create, (Comm, int, const int*, const int*, int, Comm*))                                    \
  X(Dist_graph_create, (Comm, int, const int*, const int*, const int*, const int*, Info, int, Comm*)) \
  X(Dist_graph_create_adjacent, (Comm, int, const int*, const int*, int, const int*, const int*, Info, int, Comm*))

// Collective calls: X(name, name of the non-blocking form, N, parameters...). The persistent form is name_init (MPI 4).
// Displacements are ints, or addresses where counts are large; those of MPI_Neighbor_alltoallw are always addresses.
template <class N>
using Displacement = std::conditional_t<sizeof(N) == sizeof(int), int, Aint>;
#define SPINLOOM_COLLECTIVE_CALLS(X, N)                                                                               \
  X(Bcast, Ibcast, N, void*, N, Datatype, int, Comm)                                                                  \
  X(Gather, Igather, N, const void*, N, Datatype, void*, N, Datatype, int, Comm)                                      \
  X(Gatherv, Igatherv, N, const void*, N, Datatype, void*, const N*, const Displacement<N>*, Datatype, int, Comm)     \
  X(Scatter, Iscatter, N, const void*, N, Datatype, void*, N, Datatype, int, Comm)                                    \
  X(Scatterv, Iscatterv, N, const void*, const N*, const Displacement<N>*, Datatype, void*, N, Datatype, int, Comm)   \
  X(Allgather, Iallgather, N, const void*, N, Datatype, void*, N, Datatype, Comm)                                     \
  X(Allgatherv, Iallgatherv, N, const void*, N, Datatype, void*, const N*, const Displacement<N>*, Datatype, Comm)    \
  X(Alltoall, Ialltoall, N, const void*, N, Datatype, void*, N, Datatype, Comm)                                       \
  X(Alltoallv, Ialltoallv, N, const void*, const N*, const Displacement<N>*, Datatype, void*, const N*,               \
    const Displacement<N>*, Datatype, Comm)                                                                           \
  X(Alltoallw, Ialltoallw, N, const void*, const N*, const Displacement<N>*, const Datatype*, void*, const N*,        \
    const Displacement<N>*, const Datatype*, Comm)                                                                    \
  X(Neighbor_allgather, Ineighbor_allgather, N, const void*, N, Datatype, void*, N, Datatype, Comm)                   \
  X(Neighbor_allgatherv, Ineighbor_allgatherv, N, const void*, N, Datatype, void*, const N*, const Displacement<N>*,  \
    Datatype, Comm)                                                                                                   \
  X(Neighbor_alltoall, Ineighbor_alltoall, N, const void*, N, Datatype, void*, N, Datatype, Comm)                     \
  X(Neighbor_alltoallv, Ineighbor_alltoallv, N, const void*, const N*, const Displacement<N>*, Datatype, void*,       \
    const N*, const Displacement<N>*, Datatype, Comm)                                                                 \
  X(Neighbor_alltoallw, Ineighbor_alltoallw, N, const void*, const N*, const Aint*, const Datatype*, void*, const N*, \
    const Aint*, const Datatype*, Comm)

// Reductions, in the same form; and buffered sends.
#define SPINLOOM_REDUCTION_CALLS(X, N)                                                         \
  X(Reduce, Ireduce, N, const void*, void*, N, Datatype, Op, int, Comm)                        \
  X(Allreduce, Iallreduce, N, const void*, void*, N, Datatype, Op, Comm)                       \
  X(Reduce_scatter, Ireduce_scatter, N, const void*, void*, const N*, Datatype, Op, Comm)      \
  X(Reduce_scatter_block, Ireduce_scatter_block, N, const void*, void*, N, Datatype, Op, Comm) \
  X(Scan, Iscan, N, const void*, void*, N, Datatype, Op, Comm)                                 \
  X(Exscan, Iexscan, N, const void*, void*, N, Datatype, Op, Comm)
#define SPINLOOM_BUFFERED_CALLS(X, N)                                \
  X(Bsend, N, (const void*, N, Datatype, int, int, Comm))            \
  X(Ibsend, N, (const void*, N, Datatype, int, int, Comm, Request*)) \
  X(Bsend_init, N, (const void*, N, Datatype, int, int, Comm, Request*))

// Calls of windows that take counts, or a unit of displacements.
#define SPINLOOM_WINDOW_CALLS(X, N)                                             \
  X(Win_create, N, (void*, Aint, N, Info, Comm, Win*))                          \
  X(Win_allocate, N, (Aint, N, Info, Comm, void*, Win*))                        \
  X(Win_allocate_shared, N, (Aint, N, Info, Comm, void*, Win*))                 \
  X(Put, N, (const void*, N, Datatype, int, Aint, N, Datatype, Win))            \
  X(Get, N, (void*, N, Datatype, int, Aint, N, Datatype, Win))                  \
  X(Rput, N, (const void*, N, Datatype, int, Aint, N, Datatype, Win, Request*)) \
  X(Rget, N, (void*, N, Datatype, int, Aint, N, Datatype, Win, Request*))

// Accumulates. The layer leaves them to the MPI, but for windows on the NIC (calls_rma.cpp) and for buffers in a GPU's
// memory (calls_bounced_windows.cpp).
#define SPINLOOM_ACCUMULATE_CALLS(X, N)                                                                 \
  X(Accumulate, N, (const void*, N, Datatype, int, Aint, N, Datatype, Op, Win))                         \
  X(Raccumulate, N, (const void*, N, Datatype, int, Aint, N, Datatype, Op, Win, Request*))              \
  X(Get_accumulate, N, (const void*, N, Datatype, void*, N, Datatype, int, Aint, N, Datatype, Op, Win)) \
  X(Rget_accumulate, N, (const void*, N, Datatype, void*, N, Datatype, int, Aint, N, Datatype, Op, Win, Request*))

// Calls that begin and end epochs of windows, and MPI_Win_free.
#define SPINLOOM_EPOCH_CALLS(X)     \
  X(Win_free, (Win*))               \
  X(Win_fence, (int, Win))          \
  X(Win_post, (Group, int, Win))    \
  X(Win_start, (Group, int, Win))   \
  X(Win_complete, (Win))            \
  X(Win_wait, (Win))                \
  X(Win_test, (Win, int*))          \
  X(Win_lock, (int, int, int, Win)) \
  X(Win_unlock, (int, Win))         \
  X(Win_lock_all, (int, Win))       \
  X(Win_unlock_all, (Win))

// The forms of the counted calls for one type of counts.
template <class N>
struct Counted {
#define SPINLOOM_MEMBER(name, N, parameters) int(*name) parameters = nullptr;
  SPINLOOM_COUNTED_CALLS(SPINLOOM_MEMBER, N)
  SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_MEMBER, N)
  SPINLOOM_WINDOW_CALLS(SPINLOOM_MEMBER, N)
  SPINLOOM_BUFFERED_CALLS(SPINLOOM_MEMBER, N)
  SPINLOOM_ACCUMULATE_CALLS(SPINLOOM_MEMBER, N)
#undef SPINLOOM_MEMBER
#define SPINLOOM_MEMBER(name, iname, N, ...)     \
  int (*name)(__VA_ARGS__) = nullptr;            \
  int (*iname)(__VA_ARGS__, Request*) = nullptr; \
  int (*name##_init)(__VA_ARGS__, Info, Request*) = nullptr;
  SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_MEMBER, N)
  SPINLOOM_REDUCTION_CALLS(SPINLOOM_MEMBER, N)
#undef SPINLOOM_MEMBER
};

struct Real : Counted<int> {
#define SPINLOOM_MEMBER(name, parameters) int(*name) parameters = nullptr;
  SPINLOOM_REAL_CALLS(SPINLOOM_MEMBER)
  SPINLOOM_NEWER_CALLS(SPINLOOM_MEMBER)
  SPINLOOM_COMM_CALLS(SPINLOOM_MEMBER)
  SPINLOOM_EPOCH_CALLS(SPINLOOM_MEMBER)
#undef SPINLOOM_MEMBER
  Counted<Count> large;  // each is null where the MPI does not have it (before MPI 4.0)
  // The calls of `large`; where the MPI does not have one, a form made of the call with ints, which refuses a count
  // that is no int. It is null where the MPI has neither.
  Counted<Count> wide;

  // Finds all functions. Returns the name of one that the MPI should have and has not; empty if all are there.
  [[nodiscard]] std::string load();

  // Returns the calls that take counts of type N.
  template <class N>
  [[nodiscard]] const Counted<N>& counted() const {
    if constexpr (sizeof(N) == sizeof(int)) {
      return *this;
    } else {
      return wide;
    }
  }
};

extern Real real;

// Gives the program a message's status, unless it wants none. MPI_ERROR keeps its value, because only calls that
// complete several requests set it (MPI 4.1, 3.2.5).
inline void give_status(const Status& message, Status* status) {
  if (status == status_ignore) return;
  const int error = status->error;
  *status = message;
  status->error = error;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
