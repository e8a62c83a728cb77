// Calls that free a datatype or a communicator: it loses the layer's attributes before the MPI frees it, which may be
// much later, where its last message ends.
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

int Type_free(Datatype* type) {
  if (type != nullptr) {
    const Lock lock;
    layer.types.drop_attribute(*type);
  }
  return real.Type_free(type);
}

int Comm_free(Comm* comm) {
  if (comm != nullptr) {
    const Lock lock;
    layer.drop_comm_attributes(*comm);
  }
  return real.Comm_free(comm);
}

int Comm_disconnect(Comm* comm) {
  if (comm != nullptr) {
    const Lock lock;
    layer.drop_comm_attributes(*comm);
  }
  return real.Comm_disconnect(comm);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
