/* Op - one call of a round: what it is, its buffers, and what they must hold when it has ended.
 *
 * Contract: all ranks draw an Op alike by op_draw(). op_prepare() makes the types and buffers of this rank, op_fill()
 * the bytes of one start, op_start() calls the MPI, and op_wrong() compares every byte of both buffers, gaps included.
 * Where several messages go from one rank to another, any order of them is right, and `order` tells which it was. */
#ifndef OP_H
#define OP_H
#include "comms.h"
#include "form.h"

enum {
  alltoall,
  alltoallv,
  alltoallw,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  bcast,
  neighbor_allgather,
  neighbor_allgatherv,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  calls,
  message = calls /* no collective call: the messages of a round have this in common with these */
};
enum { blocking, nonblocking, persistent };
enum { regular, by_extent, by_byte }; /* the counts and places of blocks: none of their own, v, w */

typedef struct {
  int is_used, blocks, style, slots[degree_max]; /* slots: what each block is for, a rank or the number of an edge */
  int forms; /* one for all blocks, or as many as there are blocks */
  Form* form;
  long *units, *at; /* numbers of each block, `at` in bytes from the base */
  int *counts, *places;
  MPI_Datatype* types;
#if MPI_VERSION >= 4
  MPI_Count* large_counts;
#endif
  MPI_Aint* large_places;
  unsigned char *arena, *memory; /* the bytes as the test sees them, and their place: the same on the host */
  unsigned char *base, *want;    /* the base is in `memory` */
  long length, first;            /* bytes in all; where the base lies */
  int allocated;
} Side;

typedef struct {
  uint64_t seed;
  Group const* group;
  MPI_Comm comm;
  int call, form, large, in_place, shared, has_no_zeros, root; /* shared: every neighbour is sent the same bytes */
  Unit unit;
  long step, top, same; /* every number of units is a multiple of step */
  Side out, in;
  MPI_Request request;
  long messages;
  uint64_t order;
  char name[160];
} Op;

/* Memory that is not from malloc, for one round. */
typedef struct {
  unsigned char* at;
  long left;
} Pool;

void bytes_begin(void); /* the process does this once */
void op_draw(Draw* plan, Op* op, Group const* group, int call, int form);
void op_prepare(Draw* own, Op* op, Pool* pools); /* two pools */
void op_fill(Op* op, int start);
int op_start(Op* op); /* returns the MPI's code */
void op_free_types(Op* op);
/* Returns the number of wrong bytes after start number `start`. */
long op_wrong(Op* op, int start);
void op_free(Op* op);

/* A message of a round to rank `to`, which gets one from rank `from`; `same` is how long each is. */
void message_prepare(Draw* own, Op* op, Pool* pools);
long message_wrong(Op* op, int from, uint64_t seed); /* the message that came: its sender, and the Op's seed there */
#endif
