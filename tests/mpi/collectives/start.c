/* The calls of the MPI: each in four forms, by int and by MPI_Count. */
#include "op.h"

#if MPI_VERSION >= 4
#define INIT(name, c, ...) MPI_##name##_init##c(__VA_ARGS__, op->comm, MPI_INFO_NULL, &op->request)
#else
#define INIT(name, c, ...) MPI_ERR_OTHER
#endif
#define CALL(name, iname, c, ...)                                                        \
  return op->form == blocking      ? MPI_##name##c(__VA_ARGS__, op->comm)                \
         : op->form == nonblocking ? MPI_##iname##c(__VA_ARGS__, op->comm, &op->request) \
                                   : INIT(name, c, __VA_ARGS__)

/* Arguments that are not significant at a rank are null. MPI_IN_PLACE is the send buffer, except in Scatter. */
#define START(c, Number, Place, out_counts, in_counts, out_places, in_places)                                          \
  static int start##c(Op* op) {                                                                                        \
    Side const *const out = &op->out, *const in = &op->in;                                                             \
    int const places_itself = op->in_place && (op->call == scatter || op->call == scatterv);                           \
    int const at_root = op->group->rank == op->root;                                                                   \
    int const rooted = op->call == gather || op->call == gatherv || places_itself;                                     \
    int const here = op->in_place && (!rooted || at_root);                                                             \
    void* const sb = here && !places_itself ? MPI_IN_PLACE : out->base;                                                \
    void* const rb = here && places_itself ? MPI_IN_PLACE : in->base;                                                  \
    Number const *const sn = out_counts, *const rn = in_counts;                                                        \
    Place const *const sp = out_places, *const rp = in_places;                                                         \
    MPI_Datatype const *const st = out->types, *const rt = in->types;                                                  \
    Number const s1 = sn[0], r1 = rn[0];                                                                               \
    MPI_Datatype const t1 = out->is_used ? st[0] : MPI_DATATYPE_NULL, u1 = in->is_used ? rt[0] : MPI_DATATYPE_NULL;    \
    switch (op->call) {                                                                                                \
      case alltoall: CALL(Alltoall, Ialltoall, c, sb, s1, t1, rb, r1, u1);                                             \
      case alltoallv: CALL(Alltoallv, Ialltoallv, c, sb, sn, sp, t1, rb, rn, rp, u1);                                  \
      case alltoallw: CALL(Alltoallw, Ialltoallw, c, sb, sn, sp, st, rb, rn, rp, rt);                                  \
      case gather: CALL(Gather, Igather, c, sb, s1, t1, rb, r1, u1, op->root);                                         \
      case gatherv: CALL(Gatherv, Igatherv, c, sb, s1, t1, rb, rn, rp, u1, op->root);                                  \
      case scatter: CALL(Scatter, Iscatter, c, sb, s1, t1, rb, r1, u1, op->root);                                      \
      case scatterv: CALL(Scatterv, Iscatterv, c, sb, sn, sp, t1, rb, r1, u1, op->root);                               \
      case allgather: CALL(Allgather, Iallgather, c, sb, s1, t1, rb, r1, u1);                                          \
      case allgatherv: CALL(Allgatherv, Iallgatherv, c, sb, s1, t1, rb, rn, rp, u1);                                   \
      case bcast:                                                                                                      \
        if (at_root) CALL(Bcast, Ibcast, c, out->base, s1, t1, op->root);                                              \
        CALL(Bcast, Ibcast, c, in->base, r1, u1, op->root);                                                            \
      case neighbor_allgather: CALL(Neighbor_allgather, Ineighbor_allgather, c, sb, s1, t1, rb, r1, u1);               \
      case neighbor_allgatherv: CALL(Neighbor_allgatherv, Ineighbor_allgatherv, c, sb, s1, t1, rb, rn, rp, u1);        \
      case neighbor_alltoall: CALL(Neighbor_alltoall, Ineighbor_alltoall, c, sb, s1, t1, rb, r1, u1);                  \
      case neighbor_alltoallv: CALL(Neighbor_alltoallv, Ineighbor_alltoallv, c, sb, sn, sp, t1, rb, rn, rp, u1);       \
      default:                                                                                                         \
        CALL(Neighbor_alltoallw, Ineighbor_alltoallw, c, sb, sn, out->large_places, st, rb, rn, in->large_places, rt); \
    }                                                                                                                  \
  }

START(, int, int, out->counts, in->counts, out->places, in->places)
#if MPI_VERSION >= 4
START(_c, MPI_Count, MPI_Aint, out->large_counts, in->large_counts, out->large_places, in->large_places)
int op_start(Op* op) { return op->large ? start_c(op) : start(op); }
#else
int op_start(Op* op) { return start(op); }
#endif
