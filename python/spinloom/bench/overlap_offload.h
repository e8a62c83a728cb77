/* What overlap.c measures, by spinloom/offload.h. */
#include <portals4.h>
#include <spinloom/offload.h>

static ptl_handle_ni_t interface;
static spl_oe* engine;
static spl_team* team;
static spl_schedule *schedule, *barrier, *beginning;
static int64_t agreed;
static spl_call call;

#define CHECK(what)                                                                             \
  do {                                                                                          \
    const int code = (what);                                                                    \
    if (code != PTL_OK) {                                                                       \
      fprintf(stderr, "rank %d: %s gave %d %s\n", own_rank, #what, code, spl_oe_error(engine)); \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

static void carrier_begin(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  ptl_process_t me;
  ptl_size_t size;
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &interface));
  CHECK(PtlGetId(interface, &me));
  CHECK(PtlGetMap(interface, 0, NULL, &size));
  own_rank = (int)me.rank;
  ranks = (int)size;
}

static void carrier_prepare(void) {
  static const int operations[OPERATIONS] = {SPL_ALLREDUCE, SPL_BCAST, SPL_SCATTER, SPL_ALLGATHER};
  const spl_oe_options options = {.eager_bytes = (uint64_t)wanted.eager,
                                  .progress = wanted.by_cpu ? SPL_BY_CPU : SPL_BY_NIC};
  CHECK(spl_oe_open(interface, &options, &engine));
  CHECK(spl_team_make(engine, 0, NULL, 0, &team));
  const spl_call all = {.operation = SPL_BARRIER};
  const spl_call from_first = {.operation = SPL_BCAST, .receive = &agreed, .bytes = sizeof agreed};
  CHECK(spl_collective(team, &all, SPL_CACHED, &barrier));
  CHECK(spl_collective(team, &from_first, SPL_CACHED, &beginning));
  call = (spl_call){.operation = operations[wanted.what],
                    .algorithm = wanted.algorithm,
                    .send = given,
                    .receive = got,
                    .bytes = (uint64_t)wanted.bytes,
                    .op = PTL_BXOR,
                    .type = PTL_UINT8_T};
  if (!wanted.once) CHECK(spl_collective(team, &call, SPL_CACHED, &schedule));
}

static void operation_start(void) {
  if (wanted.once) CHECK(spl_collective(team, &call, SPL_ONCE, &schedule));
  CHECK(spl_schedule_start(schedule));
}

static void operation_test(void) {
  int done;
  CHECK(spl_schedule_test(schedule, &done));
}

static void operation_wait(void) { CHECK(spl_schedule_wait(schedule)); }

static void operation_free(void) {
  if (wanted.once) CHECK(spl_schedule_free(schedule));
}

static int64_t agreed_start(int64_t mine) {
  CHECK(spl_schedule_start(barrier));
  CHECK(spl_schedule_wait(barrier));
  agreed = mine;
  CHECK(spl_schedule_start(beginning));
  CHECK(spl_schedule_wait(beginning));
  return agreed;
}

static void most_of_all(int64_t* values, long count) {
  const spl_call most = {.operation = SPL_ALLREDUCE,
                         .receive = values,
                         .bytes = (uint64_t)count * sizeof *values,
                         .op = PTL_MAX,
                         .type = PTL_INT64_T};
  spl_schedule* once;
  CHECK(spl_collective(team, &most, SPL_ONCE, &once));
  CHECK(spl_schedule_start(once));
  CHECK(spl_schedule_wait(once));
  CHECK(spl_schedule_free(once));
}

static void carrier_end(void) {
  CHECK(spl_schedule_start(barrier));
  CHECK(spl_schedule_wait(barrier));
  if (!wanted.once) CHECK(spl_schedule_free(schedule));
  CHECK(spl_schedule_free(barrier));
  CHECK(spl_schedule_free(beginning));
  CHECK(spl_oe_close(engine));
  PtlNIFini(interface);
  PtlFini();
}
