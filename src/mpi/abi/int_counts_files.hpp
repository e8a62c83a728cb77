// IntCountFiles - calls on files with large counts, done by the MPI's calls with ints.
//
// Contract: a call whose count is no int is an error of the file. Threads: any. Time: none.
#pragma once

#include <string>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/recorded.hpp"
#include "mpi/entry/library.hpp"

namespace spinloom::mpi::SPINLOOM_ABI::int_counts {

// Returns the MPI's function with ints.
template <Name name, class Function>
Function* int_function() {
  static auto* const found =
      reinterpret_cast<Function*>(Library::of_process().function(std::string("PMPI_") + name.letters));
  return found;
}

template <Name name, class Buffer, class... More>
int file_call(File file, Buffer buffer, Count count, Datatype type, More... more) {
  if (count != static_cast<int>(count)) return raise_on_file(file, error_other);
  using Small = int(File, Buffer, int, Datatype, More...);
  return int_function<name, Small>()(file, buffer, static_cast<int>(count), type, more...);
}
template <Name name, class Buffer, class... More>
int file_call_at(File file, Offset place, Buffer buffer, Count count, Datatype type, More... more) {
  if (count != static_cast<int>(count)) return raise_on_file(file, error_other);
  using Small = int(File, Offset, Buffer, int, Datatype, More...);
  return int_function<name, Small>()(file, place, buffer, static_cast<int>(count), type, more...);
}

#define SPINLOOM_INT_COUNT_FILE(name, call, ...) \
  {#name "_c", reinterpret_cast<void*>(&int_counts::call<#name, __VA_ARGS__>)}
// `call` is file_call for calls at the file's own position, file_call_at for calls that have a position as an argument.
#define SPINLOOM_INT_COUNT_FILES(way, call, Buffer)                       \
  SPINLOOM_INT_COUNT_FILE(File_##way, call, Buffer, Status*),             \
      SPINLOOM_INT_COUNT_FILE(File_i##way, call, Buffer, Request*),       \
      SPINLOOM_INT_COUNT_FILE(File_##way##_all, call, Buffer, Status*),   \
      SPINLOOM_INT_COUNT_FILE(File_i##way##_all, call, Buffer, Request*), \
      SPINLOOM_INT_COUNT_FILE(File_##way##_all_begin, call, Buffer)
#define SPINLOOM_INT_COUNT_SHARED_FILES(way, Buffer)                              \
  SPINLOOM_INT_COUNT_FILE(File_##way##_shared, file_call, Buffer, Status*),       \
      SPINLOOM_INT_COUNT_FILE(File_i##way##_shared, file_call, Buffer, Request*), \
      SPINLOOM_INT_COUNT_FILE(File_##way##_ordered, file_call, Buffer, Status*),  \
      SPINLOOM_INT_COUNT_FILE(File_##way##_ordered_begin, file_call, Buffer)

}  // namespace spinloom::mpi::SPINLOOM_ABI::int_counts
