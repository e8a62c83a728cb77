#include "complete.h"

#include <string.h>

enum { most = 512 };
enum { wait, waitall, waitany, waitsome, test, testall, testany, testsome, get_status, get_status_newer, ways };

static void end(Context* context, Op* op, MPI_Request request, MPI_Status const* status, int code, int ignored) {
  if (code != MPI_SUCCESS) request = op->request = MPI_REQUEST_NULL; /* MPICH leaves it in some calls */
  if (op->persistent ? request != op->request : request != MPI_REQUEST_NULL)
    wrong(context, "a completed request is %s", op->persistent ? "another than it was" : "not null");
  op->request = request;
  op->active = 0, op->code = code, op->ignored = ignored;
  if (!ignored) op->status = *status;
}

/* After a call that told of `n` requests: those of the operations part[which[k]]. */
static void end_these(Context* context, Op** part, MPI_Request* requests, int n, int const* which, MPI_Status* status,
                      int code, int ignored) {
  int const each = class_of(code) == MPI_ERR_IN_STATUS;
  if (code != MPI_SUCCESS && !each) {
    wrong(context, "an array of requests ends with class %d", class_of(code));
    n = 0;
  }
  for (int k = 0; k < n; ++k) {
    int const i = which ? which[k] : k, own = each && !ignored ? status[k].MPI_ERROR : MPI_SUCCESS;
    if (each && class_of(own) == MPI_ERR_PENDING) {
      part[i]->request = requests[i];
      continue;
    }
    if (each && !part[i]->persistent) requests[i] = MPI_REQUEST_NULL; /* MPICH leaves those that were right */
    end(context, part[i], requests[i], &status[k], own, ignored);
  }
}

static void same(Context* context, MPI_Status const* a, MPI_Status const* b) {
  int bytes[2] = {0, 0};
  MPI_Get_elements(a, MPI_BYTE, &bytes[0]), MPI_Get_elements(b, MPI_BYTE, &bytes[1]);
  if (a->MPI_SOURCE != b->MPI_SOURCE || a->MPI_TAG != b->MPI_TAG || bytes[0] != bytes[1])
    wrong(context, "Request_get_status tells of %d bytes from %d with tag %d, completion of %d from %d with %d",
          bytes[0], a->MPI_SOURCE, a->MPI_TAG, bytes[1], b->MPI_SOURCE, b->MPI_TAG);
}

/* Looks at a request, and completes it if it has ended. MPICH takes the status of a persistent request away. */
static void look(Context* context, Op* op) {
  int flag = 0;
  MPI_Status seen, status;
  int code = MPI_Request_get_status(op->request, &flag, &seen);
  if (code != MPI_SUCCESS || !flag) return;
  MPI_Request request = op->request;
  code = MPI_Wait(&request, &status);
  if (code == MPI_SUCCESS && !op->sends) same(context, &seen, &status);
  end(context, op, request, &status, code, 0);
}

static void look_newer(Context* context, Op** part, MPI_Request* requests, int n) {
#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
  int flag = 0, index = MPI_UNDEFINED, some = 0, which[most];
  MPI_Status status[most];
  switch (below(&context->own, 3)) {
    case 0:
      if (MPI_Request_get_status_all(n, requests, &flag, status) == MPI_SUCCESS && flag) some = n;
      for (int i = 0; i < n; ++i) which[i] = i;
      break;
    case 1:
      if (MPI_Request_get_status_any(n, requests, &index, &flag, status) == MPI_SUCCESS && flag &&
          index != MPI_UNDEFINED)
        some = 1, which[0] = index;
      break;
    default:
      if (MPI_Request_get_status_some(n, requests, &some, which, status) != MPI_SUCCESS) some = 0;
  }
  for (int k = 0; k < some; ++k) {
    Op* const op = part[which[k]];
    MPI_Status last;
    MPI_Request request = op->request;
    int const code = MPI_Wait(&request, &last);
    if (code == MPI_SUCCESS && !op->sends) same(context, &status[k], &last);
    end(context, op, request, &last, code, 0);
  }
#else
  (void)requests, (void)n;
  look(context, part[0]);
#endif
}

static void step(Context* context, Op** part, int n) {
  MPI_Request requests[most];
  MPI_Status status[most];
  int which[most], flag = 0, index = MPI_UNDEFINED, some = 0, code;
  int ignored = one_in(&context->own, 4), persistent = 0;
  for (int i = 0; i < n; ++i) {
    requests[i] = part[i]->request;
    ignored = ignored && part[i]->ignore, persistent = persistent || part[i]->persistent;
  }
  memset(status, 0, (size_t)n * sizeof *status);
  MPI_Status *const one = ignored ? MPI_STATUS_IGNORE : status, *const all = ignored ? MPI_STATUSES_IGNORE : status;
  switch (below(&context->own, ways)) {
    case wait:
      code = MPI_Wait(&requests[0], one);
      end(context, part[0], requests[0], status, code, ignored);
      break;
    case waitall:
      code = MPI_Waitall(n, requests, all);
      end_these(context, part, requests, n, NULL, status, code, ignored);
      break;
    case waitany:
      code = MPI_Waitany(n, requests, &index, one);
      if (index < 0 || index >= n)
        wrong(context, "Waitany gives index %d of %d", index, n);
      else
        end(context, part[index], requests[index], status, code, ignored);
      break;
    case waitsome:
      code = MPI_Waitsome(n, requests, &some, which, all);
      if (some < 1 || some > n)
        wrong(context, "Waitsome gives %d of %d", some, n);
      else
        end_these(context, part, requests, some, which, status, code, ignored);
      break;
    case test:
      code = MPI_Test(&requests[0], &flag, one);
      if (flag || code != MPI_SUCCESS) end(context, part[0], requests[0], status, code, ignored);
      break;
    case testall:
      code = MPI_Testall(n, requests, &flag, all);
      if (flag || code != MPI_SUCCESS) end_these(context, part, requests, n, NULL, status, code, ignored);
      break;
    case testany:
      code = MPI_Testany(n, requests, &index, &flag, one);
      if (flag || code != MPI_SUCCESS) {
        if (index < 0 || index >= n)
          wrong(context, "Testany gives index %d of %d", index, n);
        else
          end(context, part[index], requests[index], status, code, ignored);
      }
      break;
    case testsome:
      code = MPI_Testsome(n, requests, &some, which, all);
      if (some > n || some < 0)
        wrong(context, "Testsome gives %d of %d", some, n);
      else
        end_these(context, part, requests, some, which, status, code, ignored);
      break;
    case get_status:
      if (!part[0]->persistent) look(context, part[0]);
      break;
    default:
      if (!persistent) look_newer(context, part, requests, n);
  }
}

static int open_ones(Op** ops, int n, int* list) {
  int open = 0;
  for (int i = 0; i < n; ++i)
    if (ops[i]->active) list[open++] = i;
  return open;
}

static int a_step(Context* context, Op** ops, int n) {
  int list[most];
  Op* part[most];
  int const open = open_ones(ops, n, list);
  if (open == 0) return 0;
  shuffle(&context->own, open, list);
  int const of = one_in(&context->own, 2) ? open : 1 + (int)below(&context->own, open);
  for (int i = 0; i < of; ++i) part[i] = ops[list[i]];
  step(context, part, of);
  return 1;
}

void complete(Context* context, Op** ops, int n) {
  while (context->wrong < 20 && a_step(context, ops, n)) continue;
}

void complete_some(Context* context, Op** ops, int n) {
  int list[most];
  Op* part[1];
  int const open = open_ones(ops, n, list);
  for (int i = 0; i < open; ++i) {
    int flag = 0;
    part[0] = ops[list[i]];
    MPI_Request request = part[0]->request;
    MPI_Status status;
    int const code = MPI_Test(&request, &flag, &status);
    if (flag || code != MPI_SUCCESS) end(context, part[0], request, &status, code, 0);
  }
}
