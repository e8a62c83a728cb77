/* Rounds of the rarer rules: receives and sends that are cancelled, MPI_PROC_NULL, requests that are not there. */
#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "complete.h"
#include "context.h"

enum { nobodys_tag = 3000, first_tag, news_tag };

typedef struct {
  Form out, in;
  long count;
  int to, from; /* a ring */
  uint64_t seed;
  MPI_Comm comm;
} Odd;

static int ended(Context* context, Op* op) {
  Op* ops[1] = {op};
  int cancelled = 0;
  complete(context, ops, 1);
  if (op->code != MPI_SUCCESS) wrong(context, "a cancelled request ends with class %d", class_of(op->code));
  MPI_Test_cancelled(&op->status, &cancelled);
  return cancelled;
}

static Buffer buffer_in(Context const* context, Odd const* odd) {
  return buffer_make(&odd->in, odd->count, odd->seed + 999 + (uint64_t)context->rank);
}
static Buffer buffer_out(Context const* context, Odd const* odd) {
  return buffer_make(&odd->out, odd->count, odd->seed + (uint64_t)context->rank);
}

static void expect(Context* context, Odd const* odd, Buffer const* in, int got) {
  Sent const sent = {&odd->out, odd->count, odd->seed + (uint64_t)odd->from};
  long const at = buffer_wrong(in, &sent, got ? odd->out.size * odd->count : 0, 0);
  if (at != all_right) wrong(context, "%s: wrong byte %ld", got ? "received" : "cancelled", at - in->first);
}

/* A receive for which nothing comes. */
static void cancel_lonely(Context* context, Odd* odd) {
  Buffer in = buffer_in(context, odd);
  Op op = {.active = 1, .persistent = one_in(&context->own, 2)};
  if (op.persistent) {
    MPI_Recv_init(in.base, (int)in.count, in.form->type, odd->from, nobodys_tag, odd->comm, &op.request);
    MPI_Start(&op.request);
  } else {
    MPI_Irecv(in.base, (int)in.count, in.form->type, MPI_ANY_SOURCE, nobodys_tag, odd->comm, &op.request);
  }
  check(context, "Cancel", MPI_Cancel(&op.request));
  if (!ended(context, &op)) wrong(context, "a receive for which nothing came was not cancelled");
  expect(context, odd, &in, 0);
  if (op.persistent) MPI_Request_free(&op.request);
  buffer_free(&in);
}

/* A receive that is cancelled while its message comes: one of both happens. */
static void cancel_late(Context* context, Odd* odd) {
  Buffer in = buffer_in(context, odd), out = buffer_out(context, odd);
  Op receive = {.active = 1, .persistent = one_in(&context->own, 3)}, send = {.active = 1, .sends = 1, .ignore = 1},
     *ops[1] = {&send};
  MPI_Status status;
  if (receive.persistent) {
    MPI_Recv_init(in.base, (int)in.count, in.form->type, odd->from, first_tag, odd->comm, &receive.request);
    MPI_Start(&receive.request);
  } else {
    MPI_Irecv(in.base, (int)in.count, in.form->type, odd->from, first_tag, odd->comm, &receive.request);
  }
  MPI_Isend(out.base, (int)out.count, out.form->type, odd->to, first_tag, odd->comm, &send.request);
  if (one_in(&context->plan, 2)) MPI_Barrier(odd->comm);
  int flag = 0;
  if (!receive.persistent && one_in(&context->own, 3)) MPI_Request_get_status(receive.request, &flag, &status);
  check(context, "Cancel", MPI_Cancel(&receive.request));
  int const cancelled = ended(context, &receive);
  if (flag && cancelled) wrong(context, "a receive was cancelled that had ended");
  if (cancelled) {
    expect(context, odd, &in, 0);
    check(context, "Recv", MPI_Recv(in.base, (int)in.count, in.form->type, odd->from, first_tag, odd->comm, &status));
  }
  expect(context, odd, &in, 1);
  complete(context, ops, 1);
  if (receive.persistent) MPI_Request_free(&receive.request);
  buffer_free(&in), buffer_free(&out);
  context->messages += context->size;
}

static void tell(Odd const* odd, int news) { MPI_Send(&news, 1, MPI_INT, odd->to, news_tag, odd->comm); }
static int hear(Odd const* odd) {
  int news;
  MPI_Recv(&news, 1, MPI_INT, odd->from, news_tag, odd->comm, MPI_STATUS_IGNORE);
  return news;
}

/* The even ranks' sends are cancelled, or arrive. */
static void cancel_send(Context* context, Odd* odd, int sends) {
  Buffer in = buffer_in(context, odd), out = buffer_out(context, odd);
  enum { arrives, gone, open };
  int cancelled = 0, flag = 0;
  if (sends) {
    MPI_Request request, kept;
    MPI_Status status;
#ifdef OPEN_MPI
    int const persistent = one_in(&context->own, 3), synchronous = one_in(&context->own, 2);
#else
    /* MPICH 5.0 dies of cancels of others, which the layer hands on (docs/mpi.md). */
    int const persistent = 0, synchronous = 1;
#endif
    if (persistent) {
      MPI_Ssend_init(out.base, (int)out.count, out.form->type, odd->to, first_tag, odd->comm, &request);
      kept = request;
      MPI_Start(&request);
    } else if (!synchronous) {
      MPI_Isend(out.base, (int)out.count, out.form->type, odd->to, first_tag, odd->comm, &request);
    } else {
      MPI_Issend(out.base, (int)out.count, out.form->type, odd->to, first_tag, odd->comm, &request);
    }
    MPI_Cancel(&request);
    for (int tries = 0; tries < 300 && !flag; ++tries) MPI_Test(&request, &flag, &status);
    if (flag) MPI_Test_cancelled(&status, &cancelled);
    tell(odd, !flag ? open : cancelled ? gone : arrives);
    if (!flag) {
      MPI_Wait(&request, &status);
      MPI_Test_cancelled(&status, &cancelled);
      tell(odd, cancelled ? gone : arrives);
    }
    if (persistent) {
      if (request != kept) wrong(context, "a persistent send that was cancelled has another request");
      MPI_Request_free(&request);
    }
  } else {
    int const news = hear(odd);
    if (news != gone) {
      Op op = {.active = 1};
      MPI_Irecv(in.base, (int)in.count, in.form->type, odd->from, first_tag, odd->comm, &op.request);
      int const last = news == open ? hear(odd) : news;
      if (last == gone) MPI_Cancel(&op.request);
      int const none = ended(context, &op);
      if (none != (last == gone))
        wrong(context, "a send that was %scancelled has %sarrived", last == gone ? "" : "not ", none ? "not " : "");
      expect(context, odd, &in, !none);
    }
  }
  if (buffer_wrong(&out, NULL, 0, 0) != all_right) wrong(context, "the send buffer has changed");
  buffer_free(&in), buffer_free(&out);
}

static void check_null(Context* context, char const* call, MPI_Status const* status) {
  int bytes = 0;
  MPI_Get_elements(status, MPI_BYTE, &bytes);
  if (status->MPI_SOURCE != MPI_PROC_NULL || status->MPI_TAG != MPI_ANY_TAG || bytes != 0)
    wrong(context, "%s from MPI_PROC_NULL: source %d, tag %d, %d bytes", call, status->MPI_SOURCE, status->MPI_TAG,
          bytes);
}

static void nobody(Context* context, Odd* odd) {
  Buffer in = buffer_in(context, odd), out = buffer_out(context, odd);
  int const count = (int)odd->count, null = MPI_PROC_NULL;
  MPI_Comm const comm = odd->comm;
  MPI_Status status;
  MPI_Request request[2];
  MPI_Message message;
  int flag = 0;
  check(context, "Send", MPI_Send(out.base, count, odd->out.type, null, 1, comm));
  check(context, "Ssend", MPI_Ssend(out.base, count, odd->out.type, null, 1, comm));
  check(context, "Recv", MPI_Recv(in.base, count, odd->in.type, null, 1, comm, &status));
  check_null(context, "Recv", &status);
  check(context, "Probe", MPI_Probe(null, 1, comm, &status));
  check_null(context, "Probe", &status);
  check(context, "Iprobe", MPI_Iprobe(null, MPI_ANY_TAG, comm, &flag, &status));
  if (!flag) wrong(context, "Iprobe from MPI_PROC_NULL sees nothing");
  check_null(context, "Iprobe", &status);
  check(context, "Mprobe", MPI_Mprobe(null, 1, comm, &message, &status));
  check_null(context, "Mprobe", &status);
  if (message != MPI_MESSAGE_NO_PROC) wrong(context, "Mprobe from MPI_PROC_NULL gives a message");
  check(context, "Mrecv", MPI_Mrecv(in.base, count, odd->in.type, &message, &status));
  check_null(context, "Mrecv", &status);
  if (message != MPI_MESSAGE_NULL) wrong(context, "Mrecv of MPI_MESSAGE_NO_PROC leaves it");
  MPI_Isend(out.base, count, odd->out.type, null, 1, comm, &request[0]);
  MPI_Irecv(in.base, count, odd->in.type, null, 1, comm, &request[1]);
  Op op[2] = {{.active = 1, .sends = 1, .ignore = 1, .request = request[0]},
              {.active = 1, .sends = 1, .request = request[1]}},
     *ops[2] = {&op[0], &op[1]};
  complete(context, ops, 2);
#if !defined(MPICH_NUMVERSION) || MPICH_NUMVERSION >= 40300000 /* 4.0 leaves the status alone */
  check_null(context, "Irecv", &op[1].status);
#endif
  MPI_Send_init(out.base, count, odd->out.type, null, 1, comm, &request[0]);
  MPI_Recv_init(in.base, count, odd->in.type, null, 1, comm, &request[1]);
  check(context, "Startall", MPI_Startall(2, request));
  check(context, "Waitall", MPI_Waitall(2, request, MPI_STATUSES_IGNORE)); /* MPICH's statuses are empty ones */
  for (int i = 0; i < 2; ++i) MPI_Request_free(&request[i]);
  expect(context, odd, &in, 0);
  buffer_free(&in), buffer_free(&out);
}

/* Waiting for nothing gives empty statuses. */
static void nothing(Context* context, Odd* odd) {
  Buffer in = buffer_in(context, odd);
  MPI_Request request[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status[3];
  int flag = 0, index = 0, some = 0, which[3];
  MPI_Recv_init(in.base, (int)in.count, in.form->type, odd->from, first_tag, odd->comm, &request[1]);
  MPI_Request const kept = request[1];
  check(context, "Wait", MPI_Wait(&request[1], &status[0]));
  if (status[0].MPI_SOURCE != MPI_ANY_SOURCE || status[0].MPI_TAG != MPI_ANY_TAG)
    wrong(context, "Wait of an inactive request: no empty status");
  check(context, "Waitall", MPI_Waitall(3, request, status));
  check(context, "Testall", MPI_Testall(3, request, &flag, status));
  if (!flag) wrong(context, "Testall of inactive requests is false");
  check(context, "Waitany", MPI_Waitany(3, request, &index, &status[0]));
  if (index != MPI_UNDEFINED) wrong(context, "Waitany of inactive requests gives %d", index);
  flag = 0;
  check(context, "Testany", MPI_Testany(3, request, &index, &flag, &status[0]));
  if (!flag || index != MPI_UNDEFINED) wrong(context, "Testany of inactive requests gives %d", index);
  check(context, "Waitsome", MPI_Waitsome(3, request, &some, which, status));
  if (some != MPI_UNDEFINED) wrong(context, "Waitsome of inactive requests gives %d", some);
  check(context, "Testsome", MPI_Testsome(3, request, &some, which, status));
  if (some != MPI_UNDEFINED) wrong(context, "Testsome of inactive requests gives %d", some);
  flag = 0;
  check(context, "Request_get_status", MPI_Request_get_status(request[1], &flag, &status[0]));
  if (!flag) wrong(context, "Request_get_status of an inactive request is false");
  if (request[1] != kept) wrong(context, "an inactive request has changed");
  MPI_Request_free(&request[1]);
  buffer_free(&in);
}

void odd_round(Context* context) {
  Draw* const draw = &context->plan;
  Unit const unit = unit_of(draw);
  long const target = one_in(draw, 2) ? below(draw, 100000) : magnitude(draw, 4096);
  long const units = magnitude(draw, target / unit.size + 1);
  Odd odd = {
      .count = target / unit.size / units + 1, .comm = context->comm[comm_own], .seed = draw_next(draw) % 1000003};
  odd.out = form_of(draw, &unit, units, odd.count, 1), odd.in = form_of(draw, &unit, units, odd.count, 0);
  odd.to = (context->rank + 1) % context->size, odd.from = (context->rank + context->size - 1) % context->size;
  int const what = (int)below(draw, 6);
  snprintf(context->doing, sizeof context->doing, "odd: what %d, %ld times %ld units of %ld B, %.60s to %.60s", what,
           odd.count, units, unit.size, odd.out.name, odd.in.name);
  switch (what) {
    case 0: cancel_lonely(context, &odd); break;
    case 1: cancel_late(context, &odd); break;
    case 2:
    case 3:
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40300000
      break; /* 4.0 tells the receiver of a cancelled send of some KB that it was too long */
#endif
      for (int rank = 0; rank < context->size; ++rank) { /* one sender at a time */
        if (rank == context->rank) cancel_send(context, &odd, 1);
        if (rank == odd.from) cancel_send(context, &odd, 0);
      }
      context->messages += context->size;
      break;
    case 4: nobody(context, &odd); break;
    default: nothing(context, &odd);
  }
  MPI_Barrier(odd.comm);
  form_free(&odd.out), form_free(&odd.in);
}
