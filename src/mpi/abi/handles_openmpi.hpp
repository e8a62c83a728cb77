// The binary interface of Open MPI 4 and 5: handles are addresses of structures, the predefined ones of its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi/abi/common.hpp"
#include "mpi/entry/library.hpp"

namespace spinloom::mpi::openmpi {

using Comm = void*;
using Datatype = void*;
using Group = void*;
using MessageHandle = void*;
using Request = void*;
using Info = void*;
using Errhandler = void*;
using Op = void*;
using Win = void*;

struct Status {
  int source;
  int tag;
  int error;
  int cancelled;
  size_t bytes;
};

using Handles = PredefinedHandles<Comm, Datatype, MessageHandle, Request, Errhandler>;
// To be called after the MPI has been found (Library::find()).
inline const Handles& handles() {
  const auto object = [](const char* name) { return Library::of_process().object(name); };
  static const Handles predefined{.comm_null = object("ompi_mpi_comm_null"),
                                  .comm_world = object("ompi_mpi_comm_world"),
                                  .comm_self = object("ompi_mpi_comm_self"),
                                  .request_null = object("ompi_request_null"),
                                  .message_null = object("ompi_message_null"),
                                  .message_no_proc = object("ompi_message_no_proc"),
                                  .type_null = object("ompi_mpi_datatype_null"),
                                  .byte = object("ompi_mpi_byte"),
                                  .packed = object("ompi_mpi_packed"),
                                  .errors_return = object("ompi_mpi_errors_return")};
  return predefined;
}

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;
inline constexpr int proc_null = -2;
inline constexpr int root_here = -4;  // MPI_ROOT
inline constexpr int undefined = -32766;
inline constexpr int cartesian = 1;
inline constexpr int graph = 2;
inline constexpr int distributed_graph = 3;
inline constexpr int thread_multiple = 3;
inline constexpr int success = 0;
inline constexpr int error_truncate = 15;
inline constexpr int error_other = 16;
inline constexpr int error_in_status = 18;
inline constexpr int error_pending = 19;
inline constexpr int error_rma_sync = 47;
inline constexpr int error_rma_range = 68;

// Constants of windows: attributes that tell how a window was made and which memory model it has, their values,
// asserts, and kinds of locks.
inline constexpr int win_flavor = 10;
inline constexpr int win_flavor_create = 1;
inline constexpr int win_model = 11;
inline constexpr int win_unified = 0;
inline constexpr int mode_nocheck = 1;
inline constexpr int mode_noprecede = 2;
inline constexpr int mode_nosucceed = 16;
inline constexpr int lock_exclusive = 1;
inline constexpr int lock_shared = 2;
inline Op op_replace() {
  static const Op op = Library::of_process().object("ompi_mpi_op_replace");
  return op;
}
inline Op op_no_op() {
  static const Op op = Library::of_process().object("ompi_mpi_op_no_op");
  return op;
}

// True if MPI_Request_get_status leaves a persistent request as it is, as the standard says.
inline constexpr bool looks_leave_persistent = true;
inline constexpr bool may_cancel_sends = true;

inline const void* const in_place = reinterpret_cast<const void*>(intptr_t{1});  // NOLINT: the interface says so
inline Status* const status_ignore = nullptr;

// The operations and datatypes that reductions on the NIC support.
inline std::span<const Arithmetic<Op, ptl_op_t>> operations() {
  const auto object = [](const char* name) { return Library::of_process().object(name); };
  static const Arithmetic<Op, ptl_op_t> table[] = {
      {object("ompi_mpi_op_max"), PTL_MAX},   {object("ompi_mpi_op_min"), PTL_MIN},
      {object("ompi_mpi_op_sum"), PTL_SUM},   {object("ompi_mpi_op_prod"), PTL_PROD},
      {object("ompi_mpi_op_land"), PTL_LAND}, {object("ompi_mpi_op_lor"), PTL_LOR},
      {object("ompi_mpi_op_lxor"), PTL_LXOR}, {object("ompi_mpi_op_band"), PTL_BAND},
      {object("ompi_mpi_op_bor"), PTL_BOR},   {object("ompi_mpi_op_bxor"), PTL_BXOR},
  };
  return table;
}
inline std::span<const Arithmetic<Datatype, ptl_datatype_t>> numbers() {
  const auto object = [](const char* name) { return Library::of_process().object(name); };
  static const Arithmetic<Datatype, ptl_datatype_t> table[] = {
      {object("ompi_mpi_signed_char"), PTL_INT8_T},
      {object("ompi_mpi_short"), PTL_INT16_T},
      {object("ompi_mpi_int"), PTL_INT32_T},
      {object("ompi_mpi_long"), PTL_INT64_T},
      {object("ompi_mpi_long_long_int"), PTL_INT64_T},
      {object("ompi_mpi_unsigned_char"), PTL_UINT8_T},
      {object("ompi_mpi_unsigned_short"), PTL_UINT16_T},
      {object("ompi_mpi_unsigned"), PTL_UINT32_T},
      {object("ompi_mpi_unsigned_long"), PTL_UINT64_T},
      {object("ompi_mpi_unsigned_long_long"), PTL_UINT64_T},
      {object("ompi_mpi_int8_t"), PTL_INT8_T},
      {object("ompi_mpi_int16_t"), PTL_INT16_T},
      {object("ompi_mpi_int32_t"), PTL_INT32_T},
      {object("ompi_mpi_int64_t"), PTL_INT64_T},
      {object("ompi_mpi_uint8_t"), PTL_UINT8_T},
      {object("ompi_mpi_uint16_t"), PTL_UINT16_T},
      {object("ompi_mpi_uint32_t"), PTL_UINT32_T},
      {object("ompi_mpi_uint64_t"), PTL_UINT64_T},
      {object("ompi_mpi_aint"), PTL_INT64_T},
      {object("ompi_mpi_offset"), PTL_INT64_T},
      {object("ompi_mpi_count"), PTL_INT64_T},
      {object("ompi_mpi_float"), PTL_FLOAT},
      {object("ompi_mpi_double"), PTL_DOUBLE},
      {object("ompi_mpi_long_double"), PTL_LONG_DOUBLE},
      {object("ompi_mpi_c_float_complex"), PTL_FLOAT_COMPLEX},
      {object("ompi_mpi_c_double_complex"), PTL_DOUBLE_COMPLEX},
      {object("ompi_mpi_c_long_double_complex"), PTL_LONG_DOUBLE_COMPLEX},
      {object("ompi_mpi_integer"), PTL_INT32_T},
      {object("ompi_mpi_real"), PTL_FLOAT},
      {object("ompi_mpi_dblprec"), PTL_DOUBLE},
      {object("ompi_mpi_cplex"), PTL_FLOAT_COMPLEX},
      {object("ompi_mpi_dblcplex"), PTL_DOUBLE_COMPLEX},
  };
  return table;
}

inline constexpr Combiners combiners{.named = 0,
                                     .dup = 1,
                                     .contiguous = 2,
                                     .vector = 3,
                                     .hvector = 5,
                                     .indexed = 6,
                                     .hindexed = 8,
                                     .indexed_block = 9,
                                     .hindexed_block = 18,
                                     .structure = 11,
                                     .subarray = 12,
                                     .darray = 13,
                                     .resized = 17,
                                     .f90_first = 14,
                                     .f90_last = 16,
                                     .order_c = 0,
                                     .distribute_block = 0,
                                     .distribute_cyclic = 1,
                                     .distribute_none = 2,
                                     .distribute_default = -1};

inline uint64_t key_of(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// Returns the number of bytes of the message, without a call of the MPI.
template <class Real>
int64_t bytes_of(const Status& status, const Real&) {
  return static_cast<int64_t>(status.bytes);
}

}  // namespace spinloom::mpi::openmpi
