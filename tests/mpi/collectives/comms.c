#include "comms.h"

#include <stdio.h>
#include <string.h>

MPI_Comm everyone;

/* MPICH 5.0.1: MPI_Comm_group of a Cartesian communicator that is smaller than its parent gives the parent's group. */
static void ranks(Group* group) {
  MPI_Comm_rank(everyone, &group->own);
  MPI_Comm_test_inter(group->comm, &group->is_inter);
  MPI_Comm_rank(group->comm, &group->rank);
  if (group->is_inter)
    MPI_Comm_remote_size(group->comm, &group->size);
  else
    MPI_Comm_size(group->comm, &group->size);
  MPI_Allgather(&group->own, 1, MPI_INT, group->peer, 1, MPI_INT, group->comm);
}

/* Periodic dimensions of size 1 and 2 are among these: a rank is its own neighbour, or another's twice. */
static void make_grid(Draw* plan, Group* group, int size) {
  int const dimensions = 1 + (int)below(plan, 3);
  int dims[3] = {1, 1, 1}, periods[3] = {0, 0, 0}, order[3] = {0, 1, 2}, left = size, used = 0;
  shuffle(plan, dimensions, order);
  for (int i = 0; i < dimensions; ++i) {
    int* const dim = &dims[order[i]];
    *dim = one_in(plan, 2) ? left : 1 + (int)below(plan, left);
    left /= *dim;
    periods[i] = (int)below(plan, 2);
  }
  used += snprintf(group->name, sizeof group->name, "grid");
  for (int i = 0; i < dimensions; ++i)
    used += snprintf(group->name + used, sizeof group->name - (size_t)used, " %d%s", dims[i],
                     periods[i] ? " periodic" : "");
  MPI_Cart_create(everyone, dimensions, dims, periods, (int)below(plan, 2), &group->comm);
  int const members = dims[0] * dims[1] * dims[2];
  for (int rank = 0; rank < members; ++rank) {
    int stride = members;
    for (int i = 0; i < dimensions; ++i) {
      stride /= dims[i];
      int const at = rank / stride % dims[i];
      for (int side = 0; side < 2; ++side) {
        int const to = at + 2 * side - 1, inside = periods[i] || (to >= 0 && to < dims[i]);
        int const peer = inside ? rank + ((to + dims[i]) % dims[i] - at) * stride : MPI_PROC_NULL;
        group->in[rank][group->ins[rank]++] = peer, group->out[rank][group->outs[rank]++] = peer;
      }
    }
  }
}

/* Random edges, some of them again, some to the rank itself. */
static void make_graph(Draw* plan, Group* group, int size) {
  int const edges = (int)below(plan, 3 * size + 1);
  int from = 0, to = 0, rank;
  for (int i = 0; i < edges; ++i) {
    if (i == 0 || !one_in(plan, 5)) from = (int)below(plan, size), to = one_in(plan, 6) ? from : (int)below(plan, size);
    group->out[from][group->outs[from]++] = to, group->in[to][group->ins[to]++] = from;
  }
  for (int i = 0; i < size; ++i) {
    shuffle(plan, group->ins[i], group->in[i]);
    shuffle(plan, group->outs[i], group->out[i]);
  }
  snprintf(group->name, sizeof group->name, "graph of %d edges", edges);
  MPI_Comm_rank(everyone, &rank);
  MPI_Dist_graph_create_adjacent(everyone, group->ins[rank], group->in[rank], MPI_UNWEIGHTED, group->outs[rank],
                                 group->out[rank], MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &group->comm);
}

void groups_make(Draw* plan, MPI_Errhandler handler, Group* all) {
  static char const* const names[groups] = {"world", "reversed", "half", "copy", "", "", "", "", "intercommunicator"};
  int rank, size;
  MPI_Comm_rank(everyone, &rank);
  MPI_Comm_size(everyone, &size);
  for (int i = 0; i < groups; ++i) {
    Group* const group = &all[i];
    memset(group, 0, sizeof *group);
    group->comm = MPI_COMM_NULL;
    snprintf(group->name, sizeof group->name, "%s", names[i]);
    group->has_neighbors = i >= grid && i <= other_graph;
    switch (i) {
      case world: group->comm = everyone; break;
      case reversed: MPI_Comm_split(everyone, 0, size - rank, &group->comm); break;
      case halves: MPI_Comm_split(everyone, rank % 2, rank, &group->comm); break;
      case copied: MPI_Comm_dup(everyone, &group->comm); break;
      case between:
        if (size > 1) MPI_Intercomm_create(all[halves].comm, 0, everyone, 1 - rank % 2, 5, &group->comm);
        break;
      default:
        if (i >= graph)
          make_graph(plan, group, size);
        else
          make_grid(plan, group, size);
    }
    if (group->comm == MPI_COMM_NULL) continue;
    ranks(group);
    MPI_Comm_set_errhandler(group->comm, handler);
  }
}

void groups_free(Group* all) {
  for (int i = 0; i < groups; ++i)
    if (i != world && all[i].comm != MPI_COMM_NULL) MPI_Comm_free(&all[i].comm);
}
