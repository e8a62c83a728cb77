// Functions - the calls of MPI that pass through the layer, by the names that programs call them by.
//
// A call that is in neither list below goes straight to the MPI. Every call that can receive a point-to-point message,
// and every call that can complete a request, must be in SPINLOOM_MPI_FUNCTIONS: a missing one would hand a record to
// the program.
#pragma once

// clang-format off
// A collective call: blocking, non-blocking and persistent, each also with large counts.
#define SPINLOOM_FORMS(X, name, iname) X(name) X(name##_c) X(iname) X(iname##_c) X(name##_init) X(name##_init_c)
// A call on a file: of one rank, or of all ranks together.
#define SPINLOOM_FILE_FORMS(X, way) \
  X(File_##way) X(File_##way##_c) X(File_i##way) X(File_i##way##_c) \
  X(File_##way##_all) X(File_##way##_all_c) X(File_i##way##_all) X(File_i##way##_all_c) \
  X(File_##way##_all_begin) X(File_##way##_all_begin_c) X(File_##way##_all_end)
#define SPINLOOM_SHARED_FILE_FORMS(X, way) \
  X(File_##way##_shared) X(File_##way##_shared_c) X(File_i##way##_shared) X(File_i##way##_shared_c) \
  X(File_##way##_ordered) X(File_##way##_ordered_c) \
  X(File_##way##_ordered_begin) X(File_##way##_ordered_begin_c) X(File_##way##_ordered_end)
#define SPINLOOM_MPI_FUNCTIONS(X)                                                             \
  X(Init) X(Init_thread) X(Finalize)                                                          \
  X(Send) X(Ssend) X(Rsend) X(Isend) X(Issend) X(Irsend)                                      \
  X(Send_c) X(Ssend_c) X(Rsend_c) X(Isend_c) X(Issend_c) X(Irsend_c)                          \
  X(Send_init) X(Ssend_init) X(Rsend_init) X(Send_init_c) X(Ssend_init_c) X(Rsend_init_c)     \
  X(Recv) X(Irecv) X(Recv_init) X(Mrecv) X(Imrecv)                                            \
  X(Recv_c) X(Irecv_c) X(Recv_init_c) X(Mrecv_c) X(Imrecv_c)                                  \
  X(Sendrecv) X(Sendrecv_replace) X(Isendrecv) X(Isendrecv_replace)                           \
  X(Sendrecv_c) X(Sendrecv_replace_c) X(Isendrecv_c) X(Isendrecv_replace_c)                   \
  X(Start) X(Startall) X(Wait) X(Waitall) X(Waitany) X(Waitsome)                              \
  X(Test) X(Testall) X(Testany) X(Testsome)                                                   \
  X(Request_get_status) X(Request_get_status_all) X(Request_get_status_any) X(Request_get_status_some) \
  X(Request_free) X(Cancel) X(Probe) X(Iprobe) X(Mprobe) X(Improbe) \
  X(Pack) X(Unpack) X(Pack_c) X(Unpack_c) \
  X(Comm_dup) X(Comm_dup_with_info) X(Comm_split) X(Comm_split_type) X(Comm_create) X(Comm_create_group) \
  X(Cart_create) X(Cart_sub) X(Graph_create) X(Dist_graph_create) X(Dist_graph_create_adjacent) X(Comm_idup) \
  X(Type_free) X(Comm_free) X(Comm_disconnect) \
  SPINLOOM_FORMS(X, Bcast, Ibcast) SPINLOOM_FORMS(X, Gather, Igather) \
  SPINLOOM_FORMS(X, Gatherv, Igatherv) SPINLOOM_FORMS(X, Scatter, Iscatter) \
  SPINLOOM_FORMS(X, Scatterv, Iscatterv) SPINLOOM_FORMS(X, Allgather, Iallgather) \
  SPINLOOM_FORMS(X, Allgatherv, Iallgatherv) SPINLOOM_FORMS(X, Alltoall, Ialltoall) \
  SPINLOOM_FORMS(X, Alltoallv, Ialltoallv) SPINLOOM_FORMS(X, Alltoallw, Ialltoallw) \
  SPINLOOM_FORMS(X, Neighbor_allgather, Ineighbor_allgather) SPINLOOM_FORMS(X, Neighbor_allgatherv, Ineighbor_allgatherv) \
  SPINLOOM_FORMS(X, Neighbor_alltoall, Ineighbor_alltoall) SPINLOOM_FORMS(X, Neighbor_alltoallv, Ineighbor_alltoallv) \
  SPINLOOM_FORMS(X, Neighbor_alltoallw, Ineighbor_alltoallw) \
  X(Win_create) X(Win_create_c) X(Win_allocate) X(Win_allocate_c) X(Win_allocate_shared) X(Win_allocate_shared_c) \
  X(Win_free) X(Win_fence) X(Win_post) X(Win_start) X(Win_complete) X(Win_wait) X(Win_test) \
  X(Win_lock) X(Win_unlock) X(Win_lock_all) X(Win_unlock_all) \
  X(Put) X(Get) X(Rput) X(Rget) X(Put_c) X(Get_c) X(Rput_c) X(Rget_c)

// Calls that pass through the layer where it records, gives collective calls or windows to the NIC, or gives bounce
// buffers; else they go straight to the MPI.
#define SPINLOOM_MPI_RECORDED(X)                                                              \
  X(Bsend) X(Ibsend) X(Bsend_init) X(Bsend_c) X(Ibsend_c) X(Bsend_init_c)                     \
  X(Buffer_attach) X(Buffer_attach_c) X(Buffer_detach) X(Buffer_detach_c)                      \
  X(Pack_external) X(Pack_external_c) X(Unpack_external) X(Unpack_external_c)                  \
  X(Reduce_local) X(Reduce_local_c)                                                            \
  SPINLOOM_FILE_FORMS(X, read) SPINLOOM_FILE_FORMS(X, read_at) SPINLOOM_SHARED_FILE_FORMS(X, read) \
  SPINLOOM_FILE_FORMS(X, write) SPINLOOM_FILE_FORMS(X, write_at) SPINLOOM_SHARED_FILE_FORMS(X, write) \
  X(Barrier) X(Ibarrier) X(Barrier_init)                                                      \
  SPINLOOM_FORMS(X, Reduce, Ireduce) SPINLOOM_FORMS(X, Allreduce, Iallreduce)                 \
  SPINLOOM_FORMS(X, Reduce_scatter, Ireduce_scatter)                                          \
  SPINLOOM_FORMS(X, Reduce_scatter_block, Ireduce_scatter_block)                              \
  SPINLOOM_FORMS(X, Scan, Iscan) SPINLOOM_FORMS(X, Exscan, Iexscan)                           \
  X(Accumulate) X(Raccumulate) X(Get_accumulate) X(Rget_accumulate) X(Accumulate_c) X(Raccumulate_c) \
  X(Get_accumulate_c) X(Rget_accumulate_c) X(Fetch_and_op) X(Compare_and_swap) \
  X(Win_create_dynamic) X(Win_attach) \
  X(Psend_init) X(Precv_init) X(Pready) X(Pready_range) X(Pready_list) X(Parrived) \
  X(Win_flush) X(Win_flush_all) X(Win_flush_local) X(Win_flush_local_all) X(Win_sync) \
  X(Intercomm_create) X(Intercomm_merge)

// Calls of our own: no MPI has them.
#define SPINLOOM_MPIX_FUNCTIONS(X) X(Type_commit_comm) X(Type_free_comm)
// The names that Fortran compilers make of MPIX_Type_commit_comm and MPIX_Type_free_comm.
#define SPINLOOM_MPIX_FORTRAN(X)                           \
  X(mpix_type_commit_comm) X(mpix_type_free_comm)          \
  X(mpix_type_commit_comm_) X(mpix_type_free_comm_)        \
  X(mpix_type_commit_comm__) X(mpix_type_free_comm__)      \
  X(MPIX_TYPE_COMMIT_COMM) X(MPIX_TYPE_FREE_COMM)
// clang-format on
