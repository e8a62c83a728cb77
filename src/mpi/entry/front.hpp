// Front - the doors of the MPI layer: MPI_X and PMPI_X for the calls in functions.hpp, and our own calls (mpix.h).
//
// Contract: each door jumps through a table and keeps the stack and the registers that arguments of MPI lie in. So it
//   needs no prototype, and the function behind it sees the program as its caller. The first call through a door finds
//   its target: a tool between the program and the MPI, the layer's function for the loaded MPI, or the MPI's own. On
//   the way to it the call passes the recorder, the bounce buffers and the NIC's collective calls or windows, as far as
//   these are switched on. stand_ins() are the layer's functions for calls with large counts on which it does not act;
//   they serve an MPI that has only the calls with ints. dlsym is a door, too: before a program looks a name up, the
//   names that the MPI lacks are taken out of ours (shown.hpp).
// Invariants: (1) the layer acts on a call of the program once: if another tool defines MPI_X behind us, at PMPI_X.
// Threads: any. Time: none.
#pragma once

#include <cstddef>
#include <string_view>

namespace spinloom::mpi {

// The layer's function for the MPI call `name` ("Send"), in one binary interface.
struct Hook {
  const char* name;
  void* function;
};
struct Hooks {
  const Hook* first;
  size_t count;
};

// A function that records a call, and then calls the function in `*next`.
struct RecordingHook {
  const char* name;
  void* function;
  void** next;
};

// A function that gives a collective call or a call on a window to the NIC, where the job asks for it, or that passes
// memory of the host in place of a GPU's. In all other cases it calls the function in `*next`. `*mpi_function` is the
// MPI's own function.
struct ForwardingHook {
  const char* name;
  void* function;
  void** next;
  void** mpi_function;
};

namespace openmpi {
[[nodiscard]] Hooks hooks();
[[nodiscard]] Hooks stand_ins();
[[nodiscard]] const RecordingHook* recording_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* offload_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* rma_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* bounce_hook(std::string_view name);
}  // namespace openmpi
namespace mpich {
[[nodiscard]] Hooks hooks();
[[nodiscard]] Hooks stand_ins();
[[nodiscard]] const RecordingHook* recording_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* offload_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* rma_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* bounce_hook(std::string_view name);
}  // namespace mpich
namespace standard {
[[nodiscard]] Hooks hooks();
[[nodiscard]] Hooks stand_ins();
[[nodiscard]] const RecordingHook* recording_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* offload_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* rma_hook(std::string_view name);
[[nodiscard]] const ForwardingHook* bounce_hook(std::string_view name);
}  // namespace standard

}  // namespace spinloom::mpi
