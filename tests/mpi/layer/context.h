/* Context - one thread of one rank: its communicators, its random numbers, and what it has found wrong.
 *
 * All ranks draw the same from `plan`; `own` differs from rank to rank. Every round starts both anew from the seed, the
 * thread and the round's number, so that any round can be run by itself. */
#ifndef CONTEXT_H
#define CONTEXT_H
#include <mpi.h>

#include "draw.h"

enum { comm_own, comm_reversed, comm_halves, comm_shared, comm_kinds };

typedef struct {
  int thread, threads, rank, size;
  uint64_t seed;
  long round;
  Draw plan, own;
  MPI_Comm comm[comm_kinds]; /* comm_halves joins the even ranks and the odd ones; others hold all ranks */
  MPI_Comm self;
  int wrong;
  long messages;
  char doing[300]; /* the round, for reports */
} Context;

/* The number by which this rank names rank `world` in a communicator, and back. */
int rank_in(Context const* context, int kind, int world);
int world_of(Context const* context, int kind, int rank);
/* True if this kind of communicator joins two ranks. */
int joins(int kind, int from, int to);

__attribute__((format(printf, 2, 3))) void wrong(Context* context, char const* words, ...);
/* Reports a call that should have succeeded. */
void check(Context* context, char const* call, int code);
int class_of(int code);

/* Features of rounds; --without takes the sum of those to leave out. */
enum {
  early_frees = 1,
  freed_requests = 2,
  bottoms = 4,
  persistents = 8,
  truncations = 16,
  cancels = 32,
  shifts = 64,
  looks = 128,
  replaces_ = 256,
  mixed_units = 512
};
int allows(int what);

#if MPI_VERSION >= 4
#define COUNTED(large, name, ...) ((large) ? name##_c(__VA_ARGS__) : name(__VA_ARGS__))
#else
#define COUNTED(large, name, ...) ((void)(large), name(__VA_ARGS__))
#endif

/* The rounds: each is collective over all ranks (of one thread). */
void exchange_round(Context* context);
void shift_round(Context* context);
void odd_round(Context* context);
#endif
