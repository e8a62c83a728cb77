/* Rounds in which every rank sends to one side and receives from the other at once, with or without a ring's ends. */
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "complete.h"
#include "context.h"

#if MPI_VERSION >= 4 && (!defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40300000) /* 4.0 frees the types twice */
#define HAS_ISENDRECV
#endif

#ifndef OPEN_MPI
#define IS_MPICH 1 /* its Sendrecv_replace refuses structs and pairs */
#else
#define IS_MPICH 0
#endif

enum { apart, replace, started, ways }; /* MPICH's Isendrecv_replace is wrong for types with gaps */

typedef struct {
  int way, step, ring, tag, any_source, any_tag;
  long count;
  uint64_t seed;
} Shift;

static uint64_t seed_for(Shift const* shift, int rank, int receives) {
  return shift->seed + (uint64_t)(rank * 2 + receives) * 7919;
}

/* True if the MPI's own Sendrecv_replace, which packs, is right for this type: MPICH's is not for some. */
static int replaces_well(Context* context, Form const* form, long count) {
  Buffer buffer = buffer_make(form, count, 5);
  int const code =
      MPI_Sendrecv_replace(buffer.base, (int)count, form->type, 0, 1, 0, 1, context->self, MPI_STATUS_IGNORE);
  int const good = code == MPI_SUCCESS && buffer_wrong(&buffer, NULL, 0, 0) == all_right;
  buffer_free(&buffer);
  return good;
}

static int run_one(Context* context, Shift const* shift, Buffer* out, Buffer* in, int to, int from,
                   MPI_Status* status) {
  int const source = shift->any_source && from != MPI_PROC_NULL ? MPI_ANY_SOURCE : from;
  int const tag = shift->any_tag ? MPI_ANY_TAG : shift->tag, large = one_in(&context->own, 4);
  MPI_Comm const comm = context->comm[comm_own];
  Form const* const form = in->form;
  int const count = (int)in->count;
  Op op = {.active = 1, .sends = 1, .request = MPI_REQUEST_NULL}, *ops[1] = {&op};
  int code = MPI_SUCCESS, way = shift->way;
  switch (way) {
    case apart:
      code = COUNTED(large, MPI_Sendrecv, out->base, (int)out->count, out->form->type, to, shift->tag, in->base, count,
                     form->type, source, tag, comm, status);
      break;
    case replace:
      code =
          COUNTED(large, MPI_Sendrecv_replace, in->base, count, form->type, to, shift->tag, source, tag, comm, status);
      break;
#ifdef HAS_ISENDRECV
    default:
      code = COUNTED(large, MPI_Isendrecv, out->base, (int)out->count, out->form->type, to, shift->tag, in->base, count,
                     form->type, source, tag, comm, &op.request);
      break;
#endif
  }
  if (way >= started && code == MPI_SUCCESS) {
    complete(context, ops, 1);
    *status = op.status, code = op.code;
  }
  return code;
}

void shift_round(Context* context) {
  Draw* const draw = &context->plan;
  Unit const unit = unit_of(draw);
  long const target = one_in(draw, 100) ? below(draw, 4 << 20)
                      : one_in(draw, 3) ? below(draw, 100000)
                                        : magnitude(draw, 4096);
  long const units = magnitude(draw, target / unit.size + 1), count = target / unit.size / units + 1;
  Form forms[2] = {form_of(draw, &unit, units, count, 1), form_of(draw, &unit, units, count + 1, 0)};
  int const replaceable =
      allows(replaces_) && (unit.elements == 1 || !IS_MPICH) && replaces_well(context, &forms[1], count);
  int const turns = 1 + (int)below(draw, target > 1 << 20 ? 3 : 24), size = context->size, me = context->rank;
  for (int turn = 0; turn < turns && !context->wrong; ++turn) {
    Shift shift = {
        .way = (int)below(draw, ways), .step = (int)below(draw, size + 1), .ring = !one_in(draw, 4), .count = count};
    shift.tag = (int)below(draw, 3), shift.any_tag = one_in(draw, 3), shift.any_source = one_in(draw, 3);
    shift.seed = draw_next(draw) % 1000003;
    if (shift.way >= started) shift.ring = 1; /* Debian's MPICH crashes at MPI_PROC_NULL */
#ifndef HAS_ISENDRECV
    if (shift.way == started) shift.way = apart;
#endif
    if (shift.way == replace && !replaceable) shift.way = apart;
    int const replaces = shift.way == replace;
    snprintf(context->doing, sizeof context->doing,
             "shift: turn %d, way %d, by %d%s, %ld times %ld units of %ld B, %.60s to %.60s", turn, shift.way,
             shift.step, shift.ring ? " in a ring" : "", count, units, unit.size, forms[0].name, forms[1].name);
    int to = me + shift.step, from = me - shift.step;
    if (shift.ring) to %= size, from = (from + size) % size;
    if (to >= size) to = MPI_PROC_NULL;
    if (from < 0) from = MPI_PROC_NULL;
    Form const* const out_form = &forms[replaces ? 1 : 0];
    Buffer out = buffer_make(out_form, count, seed_for(&shift, me, 0));
    Buffer in = buffer_make(&forms[1], count + (replaces ? 0 : below(&context->own, 2)),
                            seed_for(&shift, me, replaces ? 0 : 1));
    MPI_Status status;
    memset(&status, 0, sizeof status);
    /* Isendrecv may meet the receives of a later turn, which are posted when it has been completed. */
    int const code = run_one(context, &shift, &out, &in, to, from, &status);
    check(context, "Sendrecv", code);
    Sent const sent = {out_form, count, from == MPI_PROC_NULL ? 0 : seed_for(&shift, from, 0)};
    long const bytes = from == MPI_PROC_NULL ? 0 : out_form->size * count;
    long const at = buffer_wrong(&in, &sent, bytes, 0);
    int got = 0;
    MPI_Get_elements(&status, MPI_BYTE, &got);
    if (at != all_right)
      wrong(context, "wrong byte %ld of %ld..%ld from rank %d", at - in.first, -in.first, in.length - in.first, from);
    int const told = shift.way < started; /* MPICH's Isendrecv has no status, or the send's */
    if (told && (got != bytes || status.MPI_SOURCE != from ||
                 status.MPI_TAG != (from == MPI_PROC_NULL ? MPI_ANY_TAG : shift.tag)))
      wrong(context, "status: %d bytes of %ld, source %d of %d, tag %d of %d", got, bytes, status.MPI_SOURCE, from,
            status.MPI_TAG, shift.tag);
    if (buffer_wrong(&out, NULL, 0, 0) != all_right) wrong(context, "the send buffer has changed");
    buffer_free(&out), buffer_free(&in);
    if (shift.ring)
      context->messages += size;
    else
      context->messages += size - shift.step > 0 ? size - shift.step : 0;
    MPI_Barrier(context->comm[comm_own]);
  }
  form_free(&forms[0]), form_free(&forms[1]);
}
