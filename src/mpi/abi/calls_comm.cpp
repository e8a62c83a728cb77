// Calls that make a communicator: its ranks learn whether collective calls on it may be the layer's.
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

int met(int code, const Comm* made) {
  if (code == success) layer.meet(*made);
  return code;
}

}  // namespace

int Comm_dup(Comm comm, Comm* made) { return met(real.Comm_dup(comm, made), made); }

int Comm_dup_with_info(Comm comm, Info info, Comm* made) {
  return met(real.Comm_dup_with_info(comm, info, made), made);
}

int Comm_split(Comm comm, int color, int key, Comm* made) { return met(real.Comm_split(comm, color, key, made), made); }

int Comm_split_type(Comm comm, int type, int key, Info info, Comm* made) {
  return met(real.Comm_split_type(comm, type, key, info, made), made);
}

int Comm_create(Comm comm, Group group, Comm* made) { return met(real.Comm_create(comm, group, made), made); }

int Comm_create_group(Comm comm, Group group, int tag, Comm* made) {
  return met(real.Comm_create_group(comm, group, tag, made), made);
}

int Cart_create(Comm comm, int dimensions, const int* sides, const int* periods, int reorder, Comm* made) {
  return met(real.Cart_create(comm, dimensions, sides, periods, reorder, made), made);
}

int Cart_sub(Comm comm, const int* remain, Comm* made) { return met(real.Cart_sub(comm, remain, made), made); }

int Graph_create(Comm comm, int nodes, const int* index, const int* edges, int reorder, Comm* made) {
  return met(real.Graph_create(comm, nodes, index, edges, reorder, made), made);
}

int Dist_graph_create(Comm comm, int count, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, Info info, int reorder, Comm* made) {
  return met(real.Dist_graph_create(comm, count, sources, degrees, destinations, weights, info, reorder, made), made);
}

int Dist_graph_create_adjacent(Comm comm, int in, const int* sources, const int* source_weights, int out,
                               const int* destinations, const int* destination_weights, Info info, int reorder,
                               Comm* made) {
  return met(real.Dist_graph_create_adjacent(comm, in, sources, source_weights, out, destinations, destination_weights,
                                             info, reorder, made),
             made);
}

int Intercomm_merge(Comm comm, int high, Comm* made) { return met(real.Intercomm_merge(comm, high, made), made); }

}  // namespace spinloom::mpi::SPINLOOM_ABI
