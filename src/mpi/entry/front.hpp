// Front - the doors of the MPI layer: MPI_X and PMPI_X for every call in functions.hpp,
//   and those of include/spinloom/mpix.h, for C and Fortran.
//
// Contract: each door jumps through a table and keeps all registers and the stack, so that it needs no prototype and
//   what it calls sees the program as its caller. The first call through a door finds out where it leads: to the
//   layer's function for the MPI that is loaded, to a tool in between, or to the MPI; where calls are recorded, by way
//   of the recorder; where a GPU may be used, by way of its bounce buffers. stand_ins() are calls with
//   large counts that the layer does nothing about, for an MPI that has none. dlsym is a door, too: before a program
//   asks for a name, those that the MPI lacks are taken out of ours (shown.hpp).
// Invariants: (1) MPI_X of the program is acted upon once: where another tool defines MPI_X behind us, at PMPI_X.
// Threads: any. Time: none.
#pragma once

#include <cstddef>
#include <string_view>

namespace spinloom::mpi {

// The layer's function for "Send", in one binary interface; null if it has none.
struct Hook {
  const char* name;
  void* function;
};
struct Hooks {
  const Hook* first;
  size_t count;
};

// A function that writes the call down: it calls what `next` points to.
struct RecordingHook {
  const char* name;
  void* function;
  void** next;
};

// A function that may give the call to the NIC, where the job asks for it (collective calls, or those of windows), or
// that hands on memory of the host in place of a GPU's. Else it calls what `next` points to. `the_mpis` is the MPI's
// own.
struct OffloadHook {
  const char* name;
  void* function;
  void** next;
  void** the_mpis;
};

namespace openmpi {
[[nodiscard]] Hooks hooks();
[[nodiscard]] Hooks stand_ins();
[[nodiscard]] const RecordingHook* recording_hook(std::string_view name);
[[nodiscard]] const OffloadHook* offload_hook(std::string_view name);
[[nodiscard]] const OffloadHook* rma_hook(std::string_view name);
[[nodiscard]] const OffloadHook* bounce_hook(std::string_view name);
}  // namespace openmpi
namespace mpich {
[[nodiscard]] Hooks hooks();
[[nodiscard]] Hooks stand_ins();
[[nodiscard]] const RecordingHook* recording_hook(std::string_view name);
[[nodiscard]] const OffloadHook* offload_hook(std::string_view name);
[[nodiscard]] const OffloadHook* rma_hook(std::string_view name);
[[nodiscard]] const OffloadHook* bounce_hook(std::string_view name);
}  // namespace mpich
namespace standard {
[[nodiscard]] Hooks hooks();
[[nodiscard]] Hooks stand_ins();
[[nodiscard]] const RecordingHook* recording_hook(std::string_view name);
[[nodiscard]] const OffloadHook* offload_hook(std::string_view name);
[[nodiscard]] const OffloadHook* rma_hook(std::string_view name);
[[nodiscard]] const OffloadHook* bounce_hook(std::string_view name);
}  // namespace standard

}  // namespace spinloom::mpi
