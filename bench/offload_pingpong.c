/* Ping-pongs of two ranks by schedules that their NICs carry on, for live_model of src/portals/collective/call.hpp: the
 * shortest of many, without and with one or two combinations of float64 before the answer.
 *
 *   cc -O2 $(spinloom sim --cflags) bench/offload_pingpong.c -o offload_pingpong $(spinloom sim --libs)
 *   mpiexec -n 2 ./offload_pingpong
 *
 * Times are host times. The shortest ones are those that other programs have not interrupted. */
#include <portals4.h>
#include <spinloom/offload.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 128 << 10, WARM = 10 };

static spl_oe* engine;
static double out[MOST / sizeof(double)], in[MOST / sizeof(double)], sum[MOST / sizeof(double)];

static void must(int code, const char* call) {
  if (code == PTL_OK) return;
  fprintf(stderr, "%s gave %d: %s\n", call, code, spl_oe_error(engine));
  exit(1);
}
#define MUST(call) must(call, #call)

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static spl_schedule* make(spl_team* both, unsigned rank, uint64_t bytes, int combines) {
  spl_schedule* made;
  MUST(spl_schedule_make(both, SPL_CACHED, &made));
  if (rank == 0) {
    spl_send(made, out, bytes, 1, 0);
    spl_receive(made, in, bytes, 1, 1);
  } else {
    spl_op last = spl_receive(made, in, bytes, 0, 0);
    for (int i = 0; i < combines; i++) {
      const spl_op next = spl_combine(made, sum, in, bytes, PTL_SUM, PTL_DOUBLE);
      MUST(spl_after(made, last, next));
      last = next;
    }
    const spl_op answer = spl_send(made, out, bytes, 0, 1);
    MUST(spl_after(made, last, answer));
  }
  MUST(spl_schedule_post(made));
  return made;
}

static double shortest_us(spl_schedule* one, int rounds) {
  double best = 1e9;
  for (int i = 0; i < rounds; i++) {
    const double begin = now_us();
    MUST(spl_schedule_start(one));
    MUST(spl_schedule_wait(one));
    const double took = now_us() - begin;
    if (i >= WARM && took < best) best = took;
  }
  return best;
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_process_t me;
  spl_team* both;
  MUST(PtlInit());
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  MUST(PtlGetId(ni, &me));
  MUST(spl_oe_open(ni, NULL, &engine));
  MUST(spl_team_make(engine, 0, NULL, 0, &both));
  for (int combines = 0; combines <= 2; combines++) {
    for (uint64_t bytes = 8; bytes <= MOST; bytes *= 128) {
      spl_schedule* one = make(both, me.rank, bytes, combines);
      const double best = shortest_us(one, bytes == MOST ? 500 : 5000);
      if (me.rank == 0) printf("%d combinations, %6llu B: %.3f us\n", combines, (unsigned long long)bytes, best);
      MUST(spl_schedule_free(one));
    }
  }
  MUST(spl_oe_close(engine));
  PtlNIFini(ni);
  PtlFini();
  return 0;
}
