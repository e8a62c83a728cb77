// The standard binary interface of MPI 5 (libmpi_abi.so): mpi.h, as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi/abi/common.hpp"

namespace spinloom::mpi::standard {

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
  int internal[5];
};

using Handles = PredefinedHandles<Comm, Datatype, MessageHandle, Request, Errhandler>;
inline const Handles& handles() {
  const auto number = [](uintptr_t value) { return reinterpret_cast<void*>(value); };  // NOLINT: the interface says so
  static const Handles predefined{.comm_null = number(0x100),
                                  .comm_world = number(0x101),
                                  .comm_self = number(0x102),
                                  .request_null = number(0x180),
                                  .message_null = number(0x128),
                                  .message_no_proc = number(0x129),
                                  .type_null = number(0x200),
                                  .byte = number(0x247),
                                  .packed = number(0x207),
                                  .errors_return = number(0x143)};
  return predefined;
}

inline constexpr int any_source = -1;
inline constexpr int any_tag = -2;
inline constexpr int proc_null = -3;
inline constexpr int root_here = -4;  // MPI_ROOT
inline constexpr int undefined = -32766;
inline constexpr int cartesian = 211;
inline constexpr int graph = 212;
inline constexpr int distributed_graph = 213;
inline constexpr int thread_multiple = 4096;
inline constexpr int success = 0;
inline constexpr int error_truncate = 15;
inline constexpr int error_other = 16;
inline constexpr int error_pending = 18;
inline constexpr int error_in_status = 19;
inline constexpr int error_rma_sync = 50;
inline constexpr int error_rma_range = 48;

// Constants of windows: attributes that tell how a window was made and which memory model it has, their values,
// asserts, and kinds of locks.
inline constexpr int win_flavor = 604;
inline constexpr int win_flavor_create = 311;
inline constexpr int win_model = 605;
inline constexpr int win_unified = 321;
inline constexpr int mode_nocheck = 1024;
inline constexpr int mode_noprecede = 2048;
inline constexpr int mode_nosucceed = 16384;
inline constexpr int lock_exclusive = 301;
inline constexpr int lock_shared = 302;
inline Op op_replace() { return reinterpret_cast<Op>(uintptr_t{0x3c}); }  // NOLINT: the interface says so
inline Op op_no_op() { return reinterpret_cast<Op>(uintptr_t{0x3d}); }  // NOLINT

// True if MPI_Request_get_status leaves a persistent request as it is, as the standard says.
inline constexpr bool looks_leave_persistent = false;  // it ends the request's start in MPICH 5.0
inline constexpr bool may_cancel_sends = false;  // no cancel succeeds in MPICH 5.0, and some end the job

inline const void* const in_place = reinterpret_cast<const void*>(intptr_t{1});  // NOLINT: the interface says so
inline Status* const status_ignore = nullptr;

// The operations and datatypes that reductions on the NIC support.
inline std::span<const Arithmetic<Op, ptl_op_t>> operations() {
  const auto number = [](uintptr_t value) { return reinterpret_cast<void*>(value); };  // NOLINT: the interface says so
  static const Arithmetic<Op, ptl_op_t> table[] = {
      {number(0x23), PTL_MAX},  {number(0x22), PTL_MIN},  {number(0x21), PTL_SUM},  {number(0x24), PTL_PROD},
      {number(0x30), PTL_LAND}, {number(0x31), PTL_LOR},  {number(0x32), PTL_LXOR}, {number(0x28), PTL_BAND},
      {number(0x29), PTL_BOR},  {number(0x2a), PTL_BXOR},
  };
  return table;
}
inline std::span<const Arithmetic<Datatype, ptl_datatype_t>> numbers() {
  const auto number = [](uintptr_t value) { return reinterpret_cast<void*>(value); };  // NOLINT: the interface says so
  static const Arithmetic<Datatype, ptl_datatype_t> table[] = {
      {number(0x244), PTL_INT8_T},        {number(0x208), PTL_INT16_T},        {number(0x209), PTL_INT32_T},
      {number(0x20a), PTL_INT64_T},       {number(0x20b), PTL_INT64_T},        {number(0x245), PTL_UINT8_T},
      {number(0x20c), PTL_UINT16_T},      {number(0x20d), PTL_UINT32_T},       {number(0x20e), PTL_UINT64_T},
      {number(0x20f), PTL_UINT64_T},      {number(0x240), PTL_INT8_T},         {number(0x248), PTL_INT16_T},
      {number(0x250), PTL_INT32_T},       {number(0x258), PTL_INT64_T},        {number(0x241), PTL_UINT8_T},
      {number(0x249), PTL_UINT16_T},      {number(0x251), PTL_UINT32_T},       {number(0x259), PTL_UINT64_T},
      {number(0x201), PTL_INT64_T},       {number(0x203), PTL_INT64_T},        {number(0x202), PTL_INT64_T},
      {number(0x210), PTL_FLOAT},         {number(0x214), PTL_DOUBLE},         {number(0x220), PTL_LONG_DOUBLE},
      {number(0x212), PTL_FLOAT_COMPLEX}, {number(0x216), PTL_DOUBLE_COMPLEX}, {number(0x224), PTL_LONG_DOUBLE_COMPLEX},
      {number(0x219), PTL_INT32_T},       {number(0x21a), PTL_FLOAT},          {number(0x21c), PTL_DOUBLE},
      {number(0x21b), PTL_FLOAT_COMPLEX}, {number(0x21d), PTL_DOUBLE_COMPLEX},
  };
  return table;
}

inline constexpr Combiners combiners{.named = 101,
                                     .dup = 102,
                                     .contiguous = 103,
                                     .vector = 104,
                                     .hvector = 105,
                                     .indexed = 106,
                                     .hindexed = 107,
                                     .indexed_block = 108,
                                     .hindexed_block = 109,
                                     .structure = 110,
                                     .subarray = 111,
                                     .darray = 112,
                                     .resized = 116,
                                     .f90_first = 113,
                                     .f90_last = 115,
                                     .order_c = 0xC,
                                     .distribute_block = 17,
                                     .distribute_cyclic = 18,
                                     .distribute_none = 16,
                                     .distribute_default = 19};

inline uint64_t key_of(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// Returns the number of bytes of the message; MPI_UNDEFINED, which is below zero, if the MPI cannot tell it.
template <class Real>
int64_t bytes_of(const Status& status, const Real& real) {
  int64_t bytes = 0;
  return real.Get_elements_x(&status, handles().byte, &bytes) == success ? bytes : undefined;
}

}  // namespace spinloom::mpi::standard
