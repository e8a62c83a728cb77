/* Complete - requests, completed in random order by all of MPI's calls for that.
 *
 * Contract: complete() returns when every Op that is active has ended. Each has its status and its code then; a
 * persistent one keeps its request. */
#ifndef COMPLETE_H
#define COMPLETE_H
#include "context.h"

typedef struct {
  MPI_Request request;
  int active, persistent, sends, ignore; /* ignore: its status may be ignored */
  MPI_Status status;
  int code, ignored;
} Op;

void complete(Context* context, Op** ops, int n);
/* Some calls that may complete some of them. */
void complete_some(Context* context, Op** ops, int n);
#endif
