/* Checks the answers of the calls of spinloom/offload.h to wrong arguments and at the wrong time, and that schedules
 * work beside them. */
#include <spinloom/offload.h>

#include "portals_common.h"

static spl_oe* oe;

static void says(int line, const char* error, const char* part) {
  ++answers;
  if (strstr(error, part) != NULL) return;
  ++wrong;
  printf("rank %u, line %d: '%s' does not say '%s'\n", my_rank, line, error, part);
}
#define SAYS(part) says(__LINE__, spl_oe_error(oe), part)
#define OPEN_SAYS(part) says(__LINE__, spl_oe_error(NULL), part)

static void opening(void) {
  spl_oe_options options = {.portal = BARRIER_PT};
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, NULL, NULL));
  EXPECT(PTL_ARG_INVALID, spl_oe_open(PTL_INVALID_HANDLE, NULL, &oe));
  OPEN_SAYS("logical interface");
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, &options, &oe));
  OPEN_SAYS("portal table entry 63 is in use");
  options.portal = 64;
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, &options, &oe));
  options = (spl_oe_options){.portal = 20, .early_messages = 3};
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, &options, &oe));
  OPEN_SAYS("early_messages is 3: it must be even");
  options = (spl_oe_options){.portal = 20, .rendezvous = 2};
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, &options, &oe));
  OPEN_SAYS("rendezvous is 2");
  options = (spl_oe_options){.portal = 20, .progress = -1};
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, &options, &oe));
  options = (spl_oe_options){.portal = 20, .eager_bytes = UINT64_MAX};
  EXPECT(PTL_ARG_INVALID, spl_oe_open(ni, &options, &oe));
  OPEN_SAYS("memory is kept for all");
  options = (spl_oe_options){.portal = 20, .triggered = 40};
  MUST(spl_oe_open(ni, &options, &oe));
  barrier();
  EXPECT(PTL_ARG_INVALID, spl_oe_close(NULL));
}

static spl_team* all;

static void teams(void) {
  const ptl_rank_t other = 1 - my_rank, twice[2] = {my_rank, my_rank}, nobody[2] = {my_rank, 7};
  const ptl_rank_t reversed[2] = {1, 0};
  spl_team* team;
  EXPECT(PTL_ARG_INVALID, spl_team_make(NULL, 1, NULL, 0, &team));
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 1, NULL, 0, NULL));
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 65536, NULL, 0, &team));
  SAYS("below 65536");
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 1, &other, 1, &team));
  SAYS("not one of the team's 1 ranks");
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 1, twice, 2, &team));
  SAYS("is in the list twice");
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 1, nobody, 2, &team));
  SAYS("rank 7 is not one of the interface's 2");
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 1, twice, 0, &team));
  MUST(spl_team_make(oe, 1, NULL, 0, &all));
  EXPECT(PTL_ARG_INVALID, spl_team_make(oe, 1, NULL, 0, &team));
  SAYS("there is a team 1 already");
  EXPECT(PTL_ARG_INVALID, spl_team_free(NULL));
  for (int time = 0; time < 3; ++time) { /* its number may be used again */
    spl_schedule* schedule;
    uint64_t mine = 10 + my_rank, theirs = 0;
    MUST(spl_team_make(oe, 2, reversed, 2, &team));
    MUST(spl_schedule_make(team, SPL_ONCE, &schedule));
    spl_send(schedule, &mine, sizeof mine, my_rank, 0); /* rank r of the team is the other one */
    spl_receive(schedule, &theirs, sizeof theirs, my_rank, 0);
    MUST(spl_schedule_start(schedule));
    MUST(spl_schedule_wait(schedule));
    EXPECT(10 + other, theirs);
    EXPECT(PTL_ARG_INVALID, spl_team_free(team));
    SAYS("the team has schedules");
    MUST(spl_schedule_free(schedule));
    MUST(spl_team_free(team));
  }
}

static void operations(void) {
  spl_schedule* schedule;
  uint32_t word = 1, into = 2;
  int state, done;
  const spl_target somewhere = {.rank = my_rank, .portal = 1}, no_rank = {.rank = 2}, no_portal = {.portal = 64};
  EXPECT(PTL_ARG_INVALID, spl_schedule_make(NULL, SPL_ONCE, &schedule));
  EXPECT(PTL_ARG_INVALID, spl_schedule_make(all, 2, &schedule));
  EXPECT(PTL_ARG_INVALID, spl_schedule_make(all, SPL_ONCE, NULL));
  MUST(spl_schedule_make(all, SPL_ONCE, &schedule));
  EXPECT(SPL_OP_NONE, spl_send(NULL, &word, 4, 0, 0));
  EXPECT(SPL_OP_NONE, spl_send(schedule, &word, 4, 2, 0));
  SAYS("spl_send: no rank 2");
  EXPECT(SPL_OP_NONE, spl_send(schedule, &word, 4, 0, 65536));
  SAYS("tags are below 65536");
  EXPECT(SPL_OP_NONE, spl_send(schedule, NULL, 4, 0, 0));
  SAYS("the memory is NULL, and has 4 B");
  EXPECT(SPL_OP_NONE, spl_receive(schedule, NULL, 4, 0, 0));
  EXPECT(SPL_OP_NONE, spl_copy(schedule, NULL, &word, 4));
  EXPECT(SPL_OP_NONE, spl_combine(schedule, &into, NULL, 4, PTL_SUM, PTL_UINT32_T));
  EXPECT(SPL_OP_NONE, spl_combine(schedule, &into, &word, 3, PTL_SUM, PTL_UINT32_T));
  SAYS("no whole elements");
  EXPECT(SPL_OP_NONE, spl_combine(schedule, &into, &word, 4, PTL_CSWAP, PTL_UINT32_T));
  EXPECT(SPL_OP_NONE, spl_combine(schedule, &into, &word, 4, PTL_BOR, PTL_FLOAT));
  EXPECT(SPL_OP_NONE, spl_combine(schedule, &into, &word, 4, PTL_SUM, PTL_DATATYPE_LAST));
  EXPECT(SPL_OP_NONE, spl_put(schedule, &word, 4, no_rank));
  EXPECT(SPL_OP_NONE, spl_get(schedule, &word, 4, no_portal));
  EXPECT(SPL_OP_NONE, spl_atomic(schedule, &word, 3, PTL_SUM, PTL_UINT32_T, somewhere));
  EXPECT(SPL_OP_NONE, spl_send_list(schedule, NULL, 1, 0, 0));
  /* Refused calls have added no operation. */
  const spl_op receive = spl_receive(schedule, &into, 4, my_rank, 0);
  EXPECT(0, receive);
  const spl_op copy = spl_copy(schedule, &word, &into, 4);
  const spl_op send = spl_send(schedule, &word, 4, my_rank, 0);
  EXPECT(PTL_ARG_INVALID, spl_after(schedule, copy, copy));
  EXPECT(PTL_ARG_INVALID, spl_after(schedule, send, copy));
  SAYS("the first was made before the other");
  EXPECT(PTL_ARG_INVALID, spl_after(schedule, copy, 9));
  EXPECT(PTL_ARG_INVALID, spl_after_any(schedule, SPL_OP_NONE, copy));
  EXPECT(PTL_ARG_INVALID, spl_after(NULL, receive, copy));
  EXPECT(PTL_ARG_INVALID, spl_cpu_dependent(schedule, receive));
  EXPECT(PTL_ARG_INVALID, spl_cpu_dependent(schedule, 9));
  MUST(spl_after(schedule, receive, copy));
  MUST(spl_after(schedule, receive, copy)); /* twice is once */
  MUST(spl_after_any(schedule, receive, copy));
  MUST(spl_cpu_dependent(schedule, send));
  EXPECT(PTL_ARG_INVALID, spl_enable(schedule, send));
  EXPECT(PTL_ARG_INVALID, spl_state(schedule, 3, &state));
  MUST(spl_state(schedule, copy, &state));
  EXPECT(SPL_CREATED, state);
  MUST(spl_schedule_post(schedule));
  MUST(spl_schedule_post(schedule));
  EXPECT(SPL_OP_NONE, spl_copy(schedule, &word, &into, 4));
  SAYS("has been posted");
  EXPECT(PTL_ARG_INVALID, spl_after(schedule, receive, copy));
  EXPECT(PTL_ARG_INVALID, spl_enable(schedule, send));
  SAYS("not under way");
  into = 0;
  word = 5;
  MUST(spl_schedule_start(schedule));
  EXPECT(PTL_ARG_INVALID, spl_schedule_start(schedule));
  SAYS("under way");
  EXPECT(PTL_IN_USE, spl_schedule_free(schedule));
  EXPECT(PTL_IN_USE, spl_oe_close(oe));
  SAYS("under way");
  EXPECT(PTL_ARG_INVALID, spl_enable(schedule, copy));
  SAYS("not CPU-dependent");
  MUST(spl_schedule_test(schedule, &done));
  EXPECT(0, done);
  MUST(spl_enable(schedule, send));
  MUST(spl_schedule_wait(schedule));
  EXPECT(5, into);
  MUST(spl_state(schedule, copy, &state));
  EXPECT(SPL_EXECUTED, state);
  EXPECT(PTL_ARG_INVALID, spl_schedule_start(schedule));
  SAYS("started once");
  MUST(spl_schedule_free(schedule));
}

/* Schedules belong together by the order in which they were made, not posted. */
static void order(void) {
  spl_schedule* schedules[2];
  uint64_t in[2] = {0, 0}, out[2] = {100, 200};
  for (int i = 0; i < 2; ++i) {
    MUST(spl_schedule_make(all, SPL_CACHED, &schedules[i]));
    if (my_rank == 0) spl_send(schedules[i], &out[i], 8, 1, 0);
    if (my_rank == 1) spl_receive(schedules[i], &in[i], 8, 0, 0);
  }
  for (int i = 0; i < 2; ++i) MUST(spl_schedule_start(schedules[my_rank == 0 ? 1 - i : i]));
  for (int i = 0; i < 2; ++i) MUST(spl_schedule_wait(schedules[i]));
  if (my_rank == 1) EXPECT(100, in[0]);
  if (my_rank == 1) EXPECT(200, in[1]);
  for (int i = 0; i < 2; ++i) MUST(spl_schedule_free(schedules[i]));
}

static void collectives(void) {
  spl_schedule *sum, *busy;
  double mine[4] = {1, 2, 3, 4}, total[4];
  spl_call call = {.operation = SPL_ALLREDUCE, .send = mine, .bytes = sizeof mine, .op = PTL_SUM, .type = PTL_DOUBLE};
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, SPL_CACHED, &sum));
  SAYS("`receive` is NULL");
  call.receive = total;
  call.bytes = UINT64_MAX - 7;
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, SPL_CACHED, &sum));
  SAYS("of more than");
  call.bytes = 12;
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, SPL_CACHED, &sum));
  SAYS("elements have 8 B");
  call.bytes = sizeof mine;
  call.algorithm = "none";
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, SPL_CACHED, &sum));
  SAYS("has no algorithm 'none'");
  call.algorithm = NULL;
  call.operation = 99;
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, SPL_CACHED, &sum));
  call.operation = SPL_BCAST;
  call.root = 2;
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, SPL_CACHED, &sum));
  SAYS("root 2 of 2 ranks");
  call.operation = SPL_ALLREDUCE;
  EXPECT(PTL_ARG_INVALID, spl_collective(all, NULL, SPL_CACHED, &sum));
  EXPECT(PTL_ARG_INVALID, spl_collective(NULL, &call, SPL_CACHED, &sum));
  EXPECT(PTL_ARG_INVALID, spl_collective(all, &call, 2, &sum));
  /* One rank has no room at first. Its schedule is the same one later. */
  if (my_rank == 0) {
    spl_team* alone;
    spl_op first = SPL_OP_NONE;
    const ptl_rank_t self = my_rank;
    MUST(spl_team_make(oe, 5, &self, 1, &alone));
    MUST(spl_schedule_make(alone, SPL_CACHED, &busy));
    for (int i = 0; i < 40; ++i) {
      const spl_op one = spl_copy(busy, &total[0], &total[1], 8);
      if (i == 0) first = one;
    }
    MUST(spl_cpu_dependent(busy, first));
    MUST(spl_schedule_start(busy));
    EXPECT(PTL_NO_SPACE, spl_collective(all, &call, SPL_CACHED, &sum));
    SAYS("triggered operations beside 40 in use (limit 40)");
    MUST(spl_enable(busy, first));
    MUST(spl_schedule_wait(busy));
  }
  MUST(spl_collective(all, &call, SPL_CACHED, &sum));
  for (int start = 1; start <= 3; ++start) {
    for (int i = 0; i < 4; ++i) mine[i] = start * (i + 1) + my_rank;
    MUST(spl_schedule_start(sum));
    MUST(spl_schedule_wait(sum));
    for (int i = 0; i < 4; ++i) EXPECT(2 * start * (i + 1) + 1, total[i]);
  }
  MUST(spl_schedule_free(sum));
}

/* A second engine, and what is left when the interface has been closed first. */
static void ends(void) {
  spl_oe_options options = {.portal = 21, .progress = SPL_BY_CPU, .rendezvous = SPL_BY_SENDER, .eager_bytes = 64};
  spl_oe* second;
  spl_team* team;
  spl_schedule *both[2], *left;
  static unsigned char in[2][5000], out[2][5000];
  int done;
  MUST(spl_oe_open(ni, &options, &second));
  barrier();
  MUST(spl_team_make(second, 1, NULL, 0, &team));
  for (int i = 0; i < 2; ++i) {
    memset(out[i], 1 + 2 * i + (int)my_rank, sizeof out[i]);
    MUST(spl_schedule_make(i == 0 ? all : team, SPL_ONCE, &both[i]));
    spl_send(both[i], out[i], sizeof out[i], 1 - my_rank, 0);
    spl_receive(both[i], in[i], sizeof in[i], 1 - my_rank, 0);
  }
  for (int i = 0; i < 2; ++i) MUST(spl_schedule_start(both[my_rank == 0 ? i : 1 - i]));
  for (int i = 0; i < 2; ++i) MUST(spl_schedule_wait(both[i]));
  for (int i = 0; i < 2; ++i) EXPECT(1 + 2 * i + 1 - (int)my_rank, in[i][sizeof in[i] - 1]);
  barrier();
  MUST(spl_oe_close(second));
  options.portal = 22;
  MUST(spl_oe_open(ni, &options, &second));
  MUST(spl_team_make(second, 1, NULL, 0, &team));
  MUST(spl_schedule_make(team, SPL_CACHED, &left));
  spl_receive(left, in[0], 8, 1 - my_rank, 0);
  MUST(spl_schedule_start(left));
  barrier();
  MUST(PtlNIFini(ni));
  EXPECT(PTL_ARG_INVALID, spl_schedule_test(left, &done));
  says(__LINE__, spl_oe_error(second), "has been closed");
  EXPECT(PTL_ARG_INVALID, spl_schedule_start(left));
  EXPECT(PTL_OK, spl_oe_close(second));
  EXPECT(PTL_OK, spl_oe_close(oe));
}

int main(void) {
  begin();
  opening();
  teams();
  operations();
  order();
  collectives();
  ends();
  PtlFini();
  printf("rank %u: %d answers\n", my_rank, answers - wrong);
  return wrong != 0;
}
