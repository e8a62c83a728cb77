/* Random messages between all ranks, each checked byte by byte:
 *   SEED ROUNDS [--first ROUND] [--last ROUND] [--threads N] [--patience SECONDS] [--trace]
 *
 * All ranks draw alike from the seed what they send each other in a round. Ends with "messages N wrong 0" from rank 0.
 * A wrong round is named on stderr; it can be run by itself with --first and --last. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"
#include "context.h"

enum { threads_max = 8, buffered_bytes = 32 << 20 };

static Context contexts[threads_max];
static long first_round, last_round;
static int trace, without;
int allows(int what) { return (without & what) == 0; }

static unsigned patience_s;

int rank_in(Context const* context, int kind, int world) {
  return kind == comm_reversed ? context->size - 1 - world : kind == comm_halves ? world / 2 : world;
}
int world_of(Context const* context, int kind, int rank) {
  return kind == comm_reversed ? context->size - 1 - rank
         : kind == comm_halves ? 2 * rank + 1 - context->rank % 2
                               : rank;
}
int joins(int kind, int from, int to) { return kind != comm_halves || (from + to) % 2 == 1; }

int class_of(int code) {
  int class = code;
  MPI_Error_class(code, &class);
  return class;
}

void wrong(Context* context, char const* words, ...) {
  char line[1200];
  va_list list;
  va_start(list, words);
  vsnprintf(line, sizeof line, words, list);
  va_end(list);
  if (context->wrong++ < 4)
    fprintf(stderr, "seed %llu round %ld rank %d thread %d: %s\n  (%s)\n", (unsigned long long)context->seed,
            context->round, context->rank, context->thread, line, context->doing);
}

void check(Context* context, char const* call, int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(code, text, &length);
  wrong(context, "%s gives class %d: %s", call, class_of(code), text);
}

static void stuck(int number) {
  (void)number;
  char line[200];
  for (int i = 0; i < contexts[0].threads; ++i) {
    Context const* const context = &contexts[i];
    int const n = snprintf(line, sizeof line, "seed %llu round %ld rank %d thread %d: stuck\n",
                           (unsigned long long)context->seed, context->round, context->rank, i);
    if (write(2, line, (size_t)n) < 0) _exit(3);
  }
  abort();
}

static void make_comms(Context* context) {
  MPI_Comm half;
  MPI_Comm_dup(MPI_COMM_SELF, &context->self);
  MPI_Comm_set_errhandler(context->self, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &context->comm[comm_own]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -context->rank, &context->comm[comm_reversed]);
  MPI_Comm_split(MPI_COMM_WORLD, context->rank % 2, context->rank, &half);
  MPI_Intercomm_create(half, 0, context->comm[comm_own], 1 - context->rank % 2, 5, &context->comm[comm_halves]);
  context->comm[comm_shared] = MPI_COMM_WORLD;
  for (int i = 0; i < comm_kinds; ++i) MPI_Comm_set_errhandler(context->comm[i], MPI_ERRORS_RETURN);
  MPI_Comm_free(&half);
}

static void run_round(Context* context) {
  MPI_Comm kept = MPI_COMM_NULL;
  int const kind = (int)(context->round % 50 == 7 ? below(&context->plan, comm_kinds) : comm_kinds);
  if (kind < comm_shared) { /* a copy that lives for this round */
    kept = context->comm[kind];
    MPI_Comm_dup(kept, &context->comm[kind]);
  }
  switch (below(&context->plan, 8)) {
    case 0:
      if (allows(shifts)) shift_round(context);
      break;
    case 1:
      if (allows(cancels)) odd_round(context);
      break;
    default: exchange_round(context);
  }
  if (kept != MPI_COMM_NULL) {
    MPI_Comm_free(&context->comm[kind]);
    context->comm[kind] = kept;
  }
}

static void* run(void* of) {
  Context* const context = of;
  forms_begin(context->self, context->comm[comm_own]);
  for (long round = first_round; round <= last_round; ++round) {
    uint64_t const seed = context->seed * 16 + (uint64_t)context->thread;
    context->round = round;
    context->plan = draw_from(seed, (uint64_t)round, 0),
    context->own = draw_from(seed, (uint64_t)round, 1 + (uint64_t)context->rank);
    if (context->thread == 0) alarm(patience_s);
    if (trace) fprintf(stderr, "rank %d thread %d round %ld\n", context->rank, context->thread, round);
    run_round(context);
    int any = 0;
    MPI_Allreduce(&context->wrong, &any, 1, MPI_INT, MPI_MAX, context->comm[comm_own]);
    if (any) break;
  }
  return NULL;
}

static long option(int argc, char** argv, char const* name, long otherwise) {
  for (int i = 3; i + 1 < argc; ++i)
    if (strcmp(argv[i], name) == 0) return atol(argv[i + 1]);
  return otherwise;
}

int main(int argc, char** argv) {
  int const threads = (int)option(argc, argv, "--threads", 1);
  int provided, rank, size, bytes = 0, all_wrong = 0, any = 0;
  long messages = 0;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3 || threads > threads_max || size < 2) {
    fprintf(stderr,
            "SEED ROUNDS [--first ROUND] [--last ROUND] [--threads N] [--patience SECONDS] [--trace], on two ranks or "
            "more\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (threads > 1 && provided < MPI_THREAD_MULTIPLE) {
    if (rank == 0) printf("messages 0 wrong 0 (no MPI_THREAD_MULTIPLE)\n");
    MPI_Finalize();
    return 0;
  }
  first_round = option(argc, argv, "--first", 0), last_round = option(argc, argv, "--last", atol(argv[2]) - 1);
  patience_s = (unsigned)option(argc, argv, "--patience", 150);
  without = (int)option(argc, argv, "--without", 0);
  for (int i = 3; i < argc; ++i) trace = trace || strcmp(argv[i], "--trace") == 0;
  bytes_begin();
  signal(SIGALRM, stuck);
  void* buffered = malloc(buffered_bytes);
  MPI_Buffer_attach(buffered, buffered_bytes);
  for (int i = 0; i < threads; ++i) {
    contexts[i] =
        (Context){.thread = i, .threads = threads, .rank = rank, .size = size, .seed = strtoull(argv[1], NULL, 10)};
    make_comms(&contexts[i]);
  }
  pthread_t handle[threads_max];
  for (int i = 1; i < threads; ++i) pthread_create(&handle[i], NULL, run, &contexts[i]);
  run(&contexts[0]);
  for (int i = 1; i < threads; ++i) pthread_join(handle[i], NULL);
  for (int i = 0; i < threads; ++i) {
    messages += contexts[i].messages, any += contexts[i].wrong;
    for (int kind = 0; kind < comm_shared; ++kind) MPI_Comm_free(&contexts[i].comm[kind]);
    MPI_Comm_free(&contexts[i].self);
  }
  MPI_Allreduce(&any, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("messages %ld wrong %d\n", messages, all_wrong);
  MPI_Buffer_detach(&buffered, &bytes);
  free(buffered);
  MPI_Finalize();
  return all_wrong != 0;
}
