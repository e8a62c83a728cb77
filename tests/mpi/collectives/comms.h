/* Group - a communicator of the test: who its ranks are, and who its neighbors are, as every rank knows. */
#ifndef COMMS_H
#define COMMS_H
#include <mpi.h>

#include "../layer/draw.h"

enum { ranks_max = 16, degree_max = 3 * ranks_max };
enum { world, reversed, halves, copied, grid, other_grid, graph, other_graph, between, groups };

extern MPI_Comm everyone; /* all ranks that play together */

typedef struct {
  MPI_Comm comm; /* null where this rank is outside */
  char name[80];
  int rank, size;      /* size is the number of ranks at the other side, if between */
  int own, peer[ranks_max]; /* numbers in `everyone`: of this rank, and of each rank that it can name */
  int has_neighbors, is_inter;
  int ins[ranks_max], outs[ranks_max]; /* the number of each rank's neighbors, and these: MPI_PROC_NULL is possible */
  int in[ranks_max][degree_max], out[ranks_max][degree_max];
} Group;

/* Collective over `everyone`; all ranks draw alike. */
void groups_make(Draw* plan, MPI_Errhandler handler, Group* all);
void groups_free(Group* all);
#endif
