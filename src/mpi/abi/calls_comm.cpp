// Calls that make a communicator: all its ranks learn its lineage, without a message.
#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

Key next_child(Comm parent) {
  const Lock lock;
  return layer.teams.next_child(parent);
}

// Makes a communicator by `call`, which all ranks of `parent` make, and gives it its lineage.
template <class Call>
int make(Comm parent, Comm* made, const Call& call) {
  const Key key = next_child(parent);
  const int code = call();
  if (code != success || key.is_none()) return code;
  {
    const Lock lock;
    layer.teams.give_lineage(*made, key);
  }
  layer.offload.add_comm(*made, key);
  return code;
}

}  // namespace

int Comm_dup(Comm comm, Comm* made) {
  return make(comm, made, [&] { return real.Comm_dup(comm, made); });
}

int Comm_dup_with_info(Comm comm, Info info, Comm* made) {
  return make(comm, made, [&] { return real.Comm_dup_with_info(comm, info, made); });
}

// Nothing may be done with the new communicator before the request has ended, so the MPI copies its lineage as an
// attribute.
int Comm_idup(Comm comm, Comm* made, Request* request) {
  const Teams::Copying copying(next_child(comm));
  return real.Comm_idup(comm, made, request);
}

int Comm_split(Comm comm, int color, int key, Comm* made) {
  return make(comm, made, [&] { return real.Comm_split(comm, color, key, made); });
}

int Comm_split_type(Comm comm, int type, int key, Info info, Comm* made) {
  return make(comm, made, [&] { return real.Comm_split_type(comm, type, key, info, made); });
}

int Comm_create(Comm comm, Group group, Comm* made) {
  return make(comm, made, [&] { return real.Comm_create(comm, group, made); });
}

int Comm_create_group(Comm comm, Group group, int tag, Comm* made) {
  const int code = real.Comm_create_group(comm, group, tag, made);
  if (code != success) return code;
  Key key;
  {
    const Lock lock;
    key = layer.teams.give_lineage_of_group(comm, tag, *made);
  }
  layer.offload.add_comm(*made, key);
  return code;
}

int Cart_create(Comm comm, int dimensions, const int* sides, const int* periods, int reorder, Comm* made) {
  return make(comm, made, [&] { return real.Cart_create(comm, dimensions, sides, periods, reorder, made); });
}

int Cart_sub(Comm comm, const int* remain, Comm* made) {
  return make(comm, made, [&] { return real.Cart_sub(comm, remain, made); });
}

int Graph_create(Comm comm, int nodes, const int* index, const int* edges, int reorder, Comm* made) {
  return make(comm, made, [&] { return real.Graph_create(comm, nodes, index, edges, reorder, made); });
}

int Dist_graph_create(Comm comm, int count, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, Info info, int reorder, Comm* made) {
  return make(comm, made, [&] {
    return real.Dist_graph_create(comm, count, sources, degrees, destinations, weights, info, reorder, made);
  });
}

int Dist_graph_create_adjacent(Comm comm, int in, const int* sources, const int* source_weights, int out,
                               const int* destinations, const int* destination_weights, Info info, int reorder,
                               Comm* made) {
  return make(comm, made, [&] {
    return real.Dist_graph_create_adjacent(comm, in, sources, source_weights, out, destinations, destination_weights,
                                           info, reorder, made);
  });
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
