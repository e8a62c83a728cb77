/* Collective calls of random types, in every form that MPI has, among messages: SEED ROUNDS [FIRST [PARTS]].
 *
 * A round is some calls and messages, most of them under way at once, completed in random order. It follows from SEED
 * and its number, so that FIRST replays it. Every byte of every buffer is checked, gaps included. Rank 0 says how many
 * messages came, how many bytes were wrong, and a hash of the order in which parallel edges of a topology were taken,
 * which MPIs are free to choose. Ranks play with those whose numbers are the same modulo PARTS. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "op.h"

enum { items_max = 6, rounds_of_groups = 25, patience_s = 100, stack_max = 1 << 17, static_max = 1 << 20 };
enum { collective, sends, barrier, sum };                          /* the kinds of items of a round */
enum { any_any, any_source, any_tag, exact };                      /* the ways to receive messages of a round */
enum { early, late, both, probed, synchronous, waits, exchanges }; /* the ways to send and receive a message */

#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 50000000
/* MPICH 4.0.2: the second start of a persistent Gather or Scatter does not copy what a rank sends to itself. */
enum { starts_once = 1 };
#else
enum { starts_once = 0 };
#endif

typedef struct {
  int kind;
  Op op;
  MPI_Request request[2];
  MPI_Status status[2]; /* the second is of the receive */
  int is_open[2];
  int shift, taken, number, total;
} Item;

static uint64_t seed;
static int round_number, rank, ranks, parts;
static char const* program;
static char doing[1600];
static long tally[2]; /* messages, wrong bytes */
static uint64_t order;

static void tell(char const* what) {
  fprintf(stderr, "rank %d: %s in round %d of seed %llu: %s\n  again: mpiexec -n %d %s %llu %d %d %d\n", rank, what,
          round_number, (unsigned long long)seed, doing, ranks, program, (unsigned long long)seed, round_number + 1,
          round_number, parts);
}

static void wrong(long bytes, char const* what) {
  if (bytes == 0) return;
  char line[300];
  snprintf(line, sizeof line, "%ld wrong bytes of %s", bytes, what);
  if (tally[1] == 0) tell(line);
  tally[1] += bytes;
}

static void stuck(int number) {
  (void)number;
  tell("stuck");
  abort();
}

static void failed(MPI_Comm* comm, int* code, ...) {
  char words[MPI_MAX_ERROR_STRING], line[MPI_MAX_ERROR_STRING + 20];
  int length;
  MPI_Error_string(*code, words, &length);
  snprintf(line, sizeof line, "an error, %s,", words);
  tell(line);
  MPI_Abort(*comm, 3);
}

static void start_message(Item* item, Draw* own, int way, int receives, int tag) {
  Op* const op = &item->op;
  Group const* const group = op->group;
  int const to = (group->rank + item->shift) % group->size,
            from = (group->rank + group->size - item->shift) % group->size;
  int const source = receives == any_any || receives == any_source ? MPI_ANY_SOURCE : from;
  int const sought = receives == any_any || receives == any_tag ? MPI_ANY_TAG : tag;
  Side const *const out = &op->out, *const in = &op->in;
  MPI_Message matched;
  /* A send that waits for its receiver could wait for ever if a later message may take the receive. */
  if (receives == any_any && (way == waits || way == exchanges)) way = early;
  if (way == early || way == synchronous || way == waits)
    MPI_Irecv(in->base, in->counts[0], in->types[0], source, sought, op->comm, &item->request[1]);
  switch (way) {
    case synchronous: MPI_Issend(out->base, out->counts[0], out->types[0], to, tag, op->comm, &item->request[0]); break;
    case waits: MPI_Send(out->base, out->counts[0], out->types[0], to, tag, op->comm); break;
    case exchanges:
      MPI_Sendrecv(out->base, out->counts[0], out->types[0], to, tag, in->base, in->counts[0], in->types[0], source,
                   sought, op->comm, &item->status[1]);
      break;
    default: MPI_Isend(out->base, out->counts[0], out->types[0], to, tag, op->comm, &item->request[0]);
  }
  if (way == late || way == both)
    MPI_Irecv(in->base, in->counts[0], in->types[0], source, sought, op->comm, &item->request[1]);
  if (way == probed) {
    MPI_Mprobe(source, sought, op->comm, &matched, MPI_STATUS_IGNORE);
    if (one_in(own, 2))
      MPI_Imrecv(in->base, in->counts[0], in->types[0], &matched, &item->request[1]);
    else
      MPI_Mrecv(in->base, in->counts[0], in->types[0], &matched, &item->status[1]);
  }
  for (int i = 0; i < 2; ++i) item->is_open[i] = item->request[i] != MPI_REQUEST_NULL;
}

/* Checks the message that came; its status tells which message it is. */
static void check_message(Item* items, int n, int which) {
  Item* const item = &items[which];
  Group const* const group = item->op.group;
  int const from = item->status[1].MPI_SOURCE, tag = item->status[1].MPI_TAG;
  int bytes;
  MPI_Get_count(&item->status[1], MPI_BYTE, &bytes);
  Item* const sent = tag >= 0 && tag < n ? &items[tag] : NULL;
  if (!sent || sent->kind != sends || sent->op.group != group || sent->taken ||
      (from + sent->shift) % group->size != group->rank || bytes != item->op.same * item->op.unit.size) {
    wrong(1, "the status of a message");
    return;
  }
  sent->taken = 1;
  wrong(message_wrong(&item->op, from, sent->op.seed), "a message");
  tally[0] += item->op.messages;
}

typedef struct {
  MPI_Request* request;
  MPI_Status* status;
  int *is_open, is_receive, is_persistent;
} Task;

static int tasks_of(Item* items, int n, Task* tasks) {
  int open = 0;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < 2; ++k)
      if (items[i].is_open[k])
        tasks[open++] =
            (Task){&items[i].request[k], &items[i].status[k], &items[i].is_open[k], items[i].kind == sends && k == 1,
                   items[i].kind == collective && items[i].op.form == persistent};
  return open;
}

/* One call that may complete some of what is open. */
static void step(Draw* own, Item* items, int n, int waits_too) {
  Task tasks[2 * items_max];
  int order_of[2 * items_max], which[2 * items_max], ended = 0, flag = 0, is_ignored = one_in(own, 3),
                                                       has_persistent = 0;
  MPI_Request requests[2 * items_max];
  MPI_Status statuses[2 * items_max];
  int const open = tasks_of(items, n, tasks), used = open == 0 ? 0 : one_in(own, 2) ? open : 1 + (int)below(own, open);
  if (open == 0) return;
  for (int i = 0; i < open; ++i) order_of[i] = i;
  shuffle(own, open, order_of);
  for (int i = 0; i < used; ++i) {
    requests[i] = *tasks[order_of[i]].request, which[i] = i;
    is_ignored = is_ignored && !tasks[order_of[i]].is_receive;
    has_persistent = has_persistent || tasks[order_of[i]].is_persistent;
  }
  MPI_Status *const one = is_ignored ? MPI_STATUS_IGNORE : statuses, *const all =
                                                                         is_ignored ? MPI_STATUSES_IGNORE : statuses;
  switch (below(own, waits_too ? 9 : 5)) {
    case 0: MPI_Test(&requests[0], &ended, one); break;
    case 1:
      if (has_persistent) break; /* MPICH gives MPI_ERR_IN_STATUS where a persistent collective call has not ended */
      MPI_Testall(used, requests, &flag, all), ended = flag ? used : 0;
      break;
    case 2: MPI_Testany(used, requests, &which[0], &ended, one); break;
    case 3: MPI_Testsome(used, requests, &ended, which, all); break;
    case 4:
      MPI_Request_get_status(requests[0], &flag, statuses);
      if (flag) MPI_Wait(&requests[0], one), ended = 1;
      break;
    case 5: MPI_Wait(&requests[0], one), ended = 1; break;
    case 6: MPI_Waitall(used, requests, all), ended = used; break;
    case 7: MPI_Waitany(used, requests, &which[0], one), ended = 1; break;
    default: MPI_Waitsome(used, requests, &ended, which, all);
  }
  if (ended < 0 || ended > used) {
    wrong(1, "the number of completed requests");
    return;
  }
  for (int i = 0; i < used; ++i) *tasks[order_of[i]].request = requests[i];
  for (int i = 0; i < ended; ++i) {
    if (which[i] < 0 || which[i] >= used) {
      wrong(1, "the index of a completed request");
      continue;
    }
    Task const* const task = &tasks[order_of[which[i]]];
    *task->is_open = 0;
    if (!is_ignored) *task->status = statuses[i];
  }
}

static int is_any_open(Item* items, int n) {
  Task tasks[2 * items_max];
  return tasks_of(items, n, tasks) > 0;
}

static void sleep_at_times(Draw* own) {
  if (one_in(own, 10)) usleep(1000 + (unsigned)below(own, 2000));
}

static void start_collective(Item* item, Draw* own, Pool* pools, int deferred) {
  Op* const op = &item->op;
  op_prepare(own, op, pools);
  op_fill(op, 0);
  op_start(op);
  if (op->form != blocking && one_in(own, 2) && !getenv("NOFREE")) op_free_types(op);
  if (op->form == persistent && !deferred) MPI_Start(&op->request);
  item->request[0] = op->request;
  item->is_open[0] = op->form == nonblocking || (op->form == persistent && !deferred);
}

static void check_op(Item* item, int start) {
  char what[200];
  snprintf(what, sizeof what, "%s, start %d", item->op.name, start);
  wrong(op_wrong(&item->op, start), what);
  tally[0] += item->op.messages, order += item->op.order;
  item->op.order = 0;
}

#ifdef OPEN_MPI
enum { keeps_groups = 1 }; /* Open MPI 4.1.4 does not find a freed communicator again when a collective call goes on */
#else
enum { keeps_groups = 0 };
#endif

static int is_started_again(Item const* item) {
  if (item->kind != collective || item->op.comm == MPI_COMM_NULL) return 0;
  return item->op.form == blocking || (item->op.form == persistent && !starts_once);
}

static void run_round(Group* all) {
  static unsigned char fixed[static_max];
  unsigned char on_stack[stack_max];
  Pool pools[2] = {{fixed, sizeof fixed}, {on_stack, sizeof on_stack}};
  Item items[items_max];
  Group brief; /* a communicator of this round, freed before what goes over it has ended */
  Draw plan = draw_from(seed, (uint64_t)round_number, 0),
       own = draw_from(seed, (uint64_t)round_number, 1 + (uint64_t)rank);
  int const n = 1 + (int)below(&plan, 5), receives = (int)below(&plan, 4), starts = 1 + (int)below(&plan, 4);
  int const copied_group = one_in(&plan, 8) ? (int)below(&plan, groups) : -1;
  int is_kept = keeps_groups, has_messages = 0, deferred[items_max];
  size_t used = 0;
  Op alike;
  op_draw(&plan, &alike, &all[world], message, 1);
  doing[0] = 0;
  if (copied_group >= 0) {
    brief = all[copied_group];
    if (brief.comm != MPI_COMM_NULL) MPI_Comm_dup(all[copied_group].comm, &brief.comm);
  }
  memset(items, 0, sizeof items);
  for (int i = 0; i < n; ++i) {
    Item* const item = &items[i];
    int const what = (int)below(&plan, 10), way = (int)below(&plan, 7), call = (int)below(&plan, calls);
    int const drawn = (int)below(&plan, 20), form = (int)below(&plan, MPI_VERSION >= 4 ? 3 : 2);
    int const neighbors = call >= neighbor_allgather && what >= 3;
    int where = drawn == 0 ? between : drawn % between;
    if (neighbors) where = grid + drawn % 4;
    /* MPICH and Open MPI give wrong bytes in an Allgather between groups whose types are not the same. */
    if (where == between && (what < 3 || call > alltoallw)) where = world;
    Group const* const group = where == copied_group ? &brief : &all[where];
    item->kind = what == 0 ? barrier : what == 1 ? sum : what == 2 ? sends : collective;
    item->shift = (int)below(&plan, 1 << 20);
    has_messages = has_messages || item->kind == sends;
    if (group->size > 0) item->shift %= group->size;
    item->request[0] = item->request[1] = MPI_REQUEST_NULL;
    deferred[i] = one_in(&plan, 3);
    op_draw(&plan, &item->op, group, call, form);
    if (item->kind != collective) {
      uint64_t const own_seed = item->op.seed;
      item->op = alike;
      item->op.seed = own_seed, item->op.group = group, item->op.comm = group->comm, item->op.form = form;
      snprintf(item->op.name, sizeof item->op.name, "%s on %s",
               item->kind == sends ? "messages"
               : item->kind == sum ? "Allreduce"
                                   : "Barrier",
               group->name);
    }
    used += (size_t)snprintf(doing + used, sizeof doing - used, "%s%s", i ? "; " : "", item->op.name);
    if (used >= sizeof doing) used = sizeof doing - 1;
    if (group->comm == MPI_COMM_NULL) continue;
    if (item->op.form == persistent && item->kind == collective && group == &brief) is_kept = 1;
    sleep_at_times(&own);
    switch (item->kind) {
      case collective: start_collective(item, &own, pools, deferred[i]); break;
      case sends:
        message_prepare(&own, &item->op, pools);
        op_fill(&item->op, 0);
        start_message(item, &own, way, receives, i);
        if (one_in(&own, 3)) op_free_types(&item->op);
        break;
      case barrier:
        if (form == blocking)
          MPI_Barrier(group->comm);
        else
          MPI_Ibarrier(group->comm, &item->request[0]);
        break;
      default:
        item->number = group->rank + 1;
        if (form == blocking)
          MPI_Allreduce(&item->number, &item->total, 1, MPI_INT, MPI_SUM, group->comm);
        else
          MPI_Iallreduce(&item->number, &item->total, 1, MPI_INT, MPI_SUM, group->comm, &item->request[0]);
    }
    if ((item->kind == barrier || item->kind == sum) && form != blocking) item->is_open[0] = 1;
    if (one_in(&own, 3)) step(&own, items, i + 1, 0);
  }
  for (int i = 0; i < n; ++i) {
    Item* const item = &items[i];
    if (item->kind != collective || item->op.form != persistent || !deferred[i] || item->op.comm == MPI_COMM_NULL)
      continue;
    MPI_Startall(1, &item->request[0]);
    item->is_open[0] = 1;
  }
  int const is_copied = copied_group >= 0 && brief.comm != MPI_COMM_NULL;
  if (is_copied && !is_kept) MPI_Comm_free(&brief.comm);
  while (is_any_open(items, n)) step(&own, items, n, 1);
  for (int i = 0; i < n; ++i) {
    if (items[i].op.comm == MPI_COMM_NULL) continue;
    if (items[i].kind == collective) check_op(&items[i], 0);
    if (items[i].kind == sends) check_message(items, n, i);
    int const size = items[i].op.group->size;
    if (items[i].kind == sum) wrong(items[i].total != size * (size + 1) / 2, "a sum");
  }
  for (int start = 1; start < starts; ++start) {
    for (int i = 0; i < n; ++i) {
      Item* const item = &items[i];
      if (!is_started_again(item) || (item->op.group == &brief && !is_kept)) continue;
      sleep_at_times(&own);
      op_fill(&item->op, start);
      if (item->op.form == blocking) {
        op_start(&item->op);
        continue;
      }
      MPI_Start(&item->request[0]);
      item->is_open[0] = 1;
    }
    while (is_any_open(items, n)) step(&own, items, n, 1);
    for (int i = 0; i < n; ++i)
      if (is_started_again(&items[i]) && (items[i].op.group != &brief || is_kept)) check_op(&items[i], start);
  }
  for (int i = 0; i < n; ++i) {
    if (items[i].op.comm == MPI_COMM_NULL) continue;
    if (items[i].request[0] != MPI_REQUEST_NULL) MPI_Request_free(&items[i].request[0]);
    if (items[i].kind == collective || items[i].kind == sends) op_free(&items[i].op);
  }
  if (is_copied && is_kept) MPI_Comm_free(&brief.comm);
  /* A receive from any source must not take a message of the next round. */
  if (has_messages && (receives == any_any || receives == any_source)) MPI_Barrier(everyone);
}

int main(int argc, char** argv) {
  static Group all[groups];
  MPI_Errhandler handler;
  MPI_Init(&argc, &argv);
  program = argv[0];
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int const rounds = argc > 2 ? atoi(argv[2]) : 100, first = argc > 3 ? atoi(argv[3]) : 0;
  parts = argc > 4 ? atoi(argv[4]) : 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  everyone = MPI_COMM_WORLD;
  if (parts > 1) MPI_Comm_split(MPI_COMM_WORLD, rank % parts, rank, &everyone);
  if (ranks > ranks_max) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_create_errhandler(failed, &handler);
  bytes_begin(), forms_begin();
  signal(SIGALRM, stuck);
  for (round_number = first; round_number < rounds; ++round_number) {
    alarm(patience_s);
    if (round_number == first || round_number % rounds_of_groups == 0) {
      Draw plan = draw_from(seed, (uint64_t)(round_number / rounds_of_groups), 1u << 20);
      if (round_number > first) groups_free(all);
      groups_make(&plan, handler, all);
    }
    run_round(all);
  }
  if (rounds > first) groups_free(all);
  forms_end();
  MPI_Errhandler_free(&handler);
  if (parts > 1) MPI_Comm_free(&everyone);
  long sums[2];
  uint64_t hash = 0;
  MPI_Reduce(tally, sums, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&order, &hash, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("messages %ld wrong %ld hash %016llx\n", sums[0], sums[1], (unsigned long long)hash);
  MPI_Finalize();
  return rank == 0 && sums[1] != 0;
}
