/* Group - a communicator of the test: who its ranks are, and who its neighbors are, as every rank knows. */
#ifndef COMMS_H
#define COMMS_H
#include <mpi.h>

#include "../layer/draw.h"

enum { ranks_most = 16, degree_most = 3 * ranks_most };
enum { world, reversed, halves, copied, grid, other_grid, graph, other_graph, between, groups };

extern MPI_Comm everyone; /* all ranks that play together */

typedef struct {
  MPI_Comm comm; /* null where this rank is outside */
  char name[80];
  int rank, size;      /* size is the number of ranks at the other side, if between */
  int own, peer[ranks_most]; /* numbers in `everyone`: of this rank, and of each rank that it can name */
  int has_neighbors, is_inter;
  int ins[ranks_most], outs[ranks_most]; /* the number of each rank's neighbors, and these: MPI_PROC_NULL is possible */
  int in[ranks_most][degree_most], out[ranks_most][degree_most];
} Group;

/* Collective over `everyone`; all ranks draw alike. */
void groups_make(Draw* plan, MPI_Errhandler handler, Group* all);
void groups_free(Group* all);
#endif
