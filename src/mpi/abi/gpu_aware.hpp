// GpuAware - what goes to the MPI where it lies in a GPU's memory, because the MPI knows of GPUs.
//
// Contract: stays_on_device() is the one place where that is decided for a call: by what the MPI says of itself, by the
//   user's setting, and by whether the layer itself may have to touch the buffer in this call. device_of() finds a
//   receive's memory on a device, for the one thing that the layer does to such a receive itself: it replaces a record
//   that has come in place of a message.
// Invariants: (1) in the layer's code for memory of the host, only callers of device_of() ever see a buffer of a
//   device.
// Threads: any. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// The kind of a call, for an MPI that knows of GPUs.
enum class CallKind : uint8_t {
  host,  // the MPI gets memory of the host: it does not say that it takes a device's, or the layer may do the call
  message,
  collective,
  reduction,
};

struct BouncedCall {
  CallKind kind = CallKind::host;
  bool is_blocking = true;
  const char* name = "";  // "Alltoall", "Alltoall_c"
};

// True if the MPI says that it knows of NVIDIA's GPUs.
[[nodiscard]] bool mpi_knows_gpus();
// True if the MPI gets the call's buffers where they lie in a device's memory.
[[nodiscard]] bool stays_on_device(const BouncedCall& call, Comm comm);

struct DevicePlace {
  int ordinal = 0;
  std::byte* first = nullptr;  // the first of its bytes, which lie one behind the other
};
[[nodiscard]] std::optional<DevicePlace> device_of(const Place& place);

// True if the blocking collective call `name` that this thread makes next on `comm` goes the layer's way
// (calls_collective.cpp), or if the layer does not know that name. The call is counted now, and not again when it is
// made. The next thing that the thread does is the call, or forget_foreseen().
[[nodiscard]] bool foresee_layers_way(const char* name, Comm comm);
void forget_foreseen();

}  // namespace spinloom::mpi::SPINLOOM_ABI
