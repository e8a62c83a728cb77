// MPI_Init, MPI_Init_thread and MPI_Finalize.
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

int Init(int* argument_count, char*** arguments) {
  const int code = real.Init(argument_count, arguments);
  if (code == success && !layer.is_on) layer.start();
  return code;
}

int Init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  const int code = real.Init_thread(argument_count, arguments, required, provided);
  if (code == success && !layer.is_on) layer.start();
  return code;
}

int Finalize() {
  try {
    layer.stop();
  } catch (...) {  // everything that the layer keeps goes with the process
    layer.is_on = false;
  }
  return real.Finalize();
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
