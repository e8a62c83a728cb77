// The binary interface of MPICH 3.1 and later and of its relatives (Intel MPI, Cray MPICH, MVAPICH): mpi.h, as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi/abi/common.hpp"

namespace spinloom::mpi::mpich {

using Comm = int;
using Datatype = int;
using Group = int;
using MessageHandle = int;
using Request = int;
using Info = int;
using Errhandler = int;
using Op = int;
using Win = int;

struct Status {
  int count_low;
  int count_high_and_cancelled;
  int source;
  int tag;
  int error;
};

using Handles = PredefinedHandles<Comm, Datatype, MessageHandle, Request, Errhandler>;
inline constexpr Handles predefined_handles{.comm_null = 0x04000000,
                                            .comm_world = 0x44000000,
                                            .comm_self = 0x44000001,
                                            .request_null = 0x2c000000,
                                            .message_null = 0x2c000000,
                                            .message_no_proc = 0x6c000000,
                                            .type_null = 0x0c000000,
                                            .byte = 0x4c00010d,
                                            .packed = 0x4c00010f,
                                            .errors_return = 0x54000001};
inline const Handles& handles() { return predefined_handles; }

inline constexpr int any_source = -2;
inline constexpr int any_tag = -1;
inline constexpr int proc_null = -1;
inline constexpr int root_here = -3;  // MPI_ROOT
inline constexpr int undefined = -32766;
inline constexpr int cartesian = 2;
inline constexpr int graph = 1;
inline constexpr int distributed_graph = 3;
inline constexpr int thread_multiple = 3;
inline constexpr int success = 0;
inline constexpr int error_truncate = 14;
inline constexpr int error_other = 15;
inline constexpr int error_in_status = 17;
inline constexpr int error_pending = 18;
inline constexpr int error_rma_sync = 50;
inline constexpr int error_rma_range = 55;

// Constants of windows: attributes that tell how a window was made and which memory model it has, their values,
// asserts, and kinds of locks.
inline constexpr int win_flavor = 0x66000007;
inline constexpr int win_flavor_create = 1;
inline constexpr int win_model = 0x66000009;
inline constexpr int win_unified = 2;
inline constexpr int mode_nocheck = 1024;
inline constexpr int mode_noprecede = 8192;
inline constexpr int mode_nosucceed = 16384;
inline constexpr int lock_exclusive = 234;
inline constexpr int lock_shared = 235;
inline Op op_replace() { return 0x5800000d; }
inline Op op_no_op() { return 0x5800000e; }

// True if MPI_Request_get_status leaves a persistent request as it is, as the standard says.
inline constexpr bool looks_leave_persistent = false;  // it ends the request's start in MPICH 4.3 and 5.0
inline constexpr bool may_cancel_sends = false;  // no cancel succeeds in 4.0, 4.3 and 5.0; some end the job in 5.0

inline const void* const in_place = reinterpret_cast<const void*>(intptr_t{-1});  // NOLINT: the interface says so
inline Status* const status_ignore = reinterpret_cast<Status*>(1);

// The operations and datatypes that reductions on the NIC support.
inline std::span<const Arithmetic<Op, ptl_op_t>> operations() {
  static const Arithmetic<Op, ptl_op_t> table[] = {
      {0x58000001, PTL_MAX},  {0x58000002, PTL_MIN},  {0x58000003, PTL_SUM},  {0x58000004, PTL_PROD},
      {0x58000005, PTL_LAND}, {0x58000007, PTL_LOR},  {0x58000009, PTL_LXOR}, {0x58000006, PTL_BAND},
      {0x58000008, PTL_BOR},  {0x5800000a, PTL_BXOR},
  };
  return table;
}
inline std::span<const Arithmetic<Datatype, ptl_datatype_t>> numbers() {
  static const Arithmetic<Datatype, ptl_datatype_t> table[] = {
      {0x4c000118, PTL_INT8_T},        {0x4c000203, PTL_INT16_T},        {0x4c000405, PTL_INT32_T},
      {0x4c000807, PTL_INT64_T},       {0x4c000809, PTL_INT64_T},        {0x4c000102, PTL_UINT8_T},
      {0x4c000204, PTL_UINT16_T},      {0x4c000406, PTL_UINT32_T},       {0x4c000808, PTL_UINT64_T},
      {0x4c000819, PTL_UINT64_T},      {0x4c000137, PTL_INT8_T},         {0x4c000238, PTL_INT16_T},
      {0x4c000439, PTL_INT32_T},       {0x4c00083a, PTL_INT64_T},        {0x4c00013b, PTL_UINT8_T},
      {0x4c00023c, PTL_UINT16_T},      {0x4c00043d, PTL_UINT32_T},       {0x4c00083e, PTL_UINT64_T},
      {0x4c000843, PTL_INT64_T},       {0x4c000844, PTL_INT64_T},        {0x4c000845, PTL_INT64_T},
      {0x4c00040a, PTL_FLOAT},         {0x4c00080b, PTL_DOUBLE},         {0x4c00100c, PTL_LONG_DOUBLE},
      {0x4c000840, PTL_FLOAT_COMPLEX}, {0x4c001041, PTL_DOUBLE_COMPLEX}, {0x4c002042, PTL_LONG_DOUBLE_COMPLEX},
      {0x4c00041b, PTL_INT32_T},       {0x4c00041c, PTL_FLOAT},          {0x4c00081f, PTL_DOUBLE},
      {0x4c00081e, PTL_FLOAT_COMPLEX}, {0x4c001022, PTL_DOUBLE_COMPLEX},
  };
  return table;
}

inline constexpr Combiners combiners{.named = 1,
                                     .dup = 2,
                                     .contiguous = 3,
                                     .vector = 4,
                                     .hvector = 6,
                                     .indexed = 7,
                                     .hindexed = 9,
                                     .indexed_block = 10,
                                     .hindexed_block = 19,
                                     .structure = 12,
                                     .subarray = 13,
                                     .darray = 14,
                                     .resized = 18,
                                     .f90_first = 15,
                                     .f90_last = 17,
                                     .order_c = 56,
                                     .distribute_block = 121,
                                     .distribute_cyclic = 122,
                                     .distribute_none = 123,
                                     .distribute_default = -49767};

inline uint64_t key_of(int handle) { return static_cast<uint32_t>(handle); }

// Returns the number of bytes of the message, without a call of the MPI.
template <class Real>
int64_t bytes_of(const Status& status, const Real&) {
  const auto low = static_cast<uint32_t>(status.count_low);
  const auto high = static_cast<uint32_t>(status.count_high_and_cancelled) >> 1;
  return static_cast<int64_t>(uint64_t{high} << 32 | low);
}

}  // namespace spinloom::mpi::mpich
