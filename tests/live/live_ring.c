/* A token goes round the ranks argv[2] times. argv[1] says how each rank polls for it: eqget, eqpoll, ctget or
 * ctpoll; with `wait` it does not poll. Rank 0 prints the time of a step, each rank the processor time that it used
 * for a step, in microseconds. */
#include "live_common.h"

static ptl_handle_eq_t eq;
static ptl_handle_ct_t landed;

static void await(const char* how, ptl_size_t count) {
  ptl_event_t event;
  ptl_ct_event_t value;
  unsigned which;
  if (strcmp(how, "eqget") == 0) {
    while (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) {
    }
  } else if (strcmp(how, "eqpoll") == 0) {
    while (PtlEQPoll(&eq, 1, 0, &event, &which) == PTL_EQ_EMPTY) {
    }
  } else if (strcmp(how, "ctget") == 0) {
    do {
      MUST(PtlCTGet(landed, &value));
    } while (value.success < count);
  } else if (strcmp(how, "ctpoll") == 0) {
    while (PtlCTPoll(&landed, &count, 1, 0, &value, &which) == PTL_CT_NONE_REACHED) {
    }
  } else {
    MUST(PtlCTWait(landed, count, &value));
  }
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "eqget";
  const unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 100;
  begin();
  landed = counter();
  MUST(PtlEQAlloc(ni, 64, &eq));
  open_portal(eq, 0);
  append_to(0, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE, landed, 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
  const ptl_process_t next = rank_of((my_rank + 1) % ranks);
  barrier();
  const double begun_us = now_us(), before_s = processor_seconds();
  for (unsigned round = 1; round <= rounds; ++round) {
    if (my_rank > 0) await(how, round);
    MUST(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, next, 0, 0, 0, NULL, 0));
    if (my_rank == 0) await(how, round);
  }
  if (my_rank == 0) printf("a step takes %.1f us\n", (now_us() - begun_us) / (rounds * ranks));
  printf("rank %u used %.1f us a step\n", my_rank, (processor_seconds() - before_s) * 1e6 / (rounds * ranks));
  return end();
}
