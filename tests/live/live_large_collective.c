/* A collective operation of one long message by offload.h: OPERATION ALGORITHM|- SEGMENT BYTES, bcast or
 * allreduce (in place, sums). Every rank compares every word. */
#include <inttypes.h>
#include <portals4.h>
#include <spinloom/offload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t word_of(uint64_t rank, uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15u + rank * 0x100000001b3u; }

int main(int argc, char** argv) {
  ptl_handle_ni_t ni;
  ptl_process_t me;
  ptl_size_t ranks;
  spl_oe* engine;
  spl_team* all;
  spl_schedule* schedule;
  if (argc != 5) return 2;
  const int is_bcast = strcmp(argv[1], "bcast") == 0;
  const uint64_t bytes = strtoull(argv[4], NULL, 0), words = bytes / 8;
  if (PtlInit() != PTL_OK ||
      PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK ||
      PtlGetId(ni, &me) != PTL_OK || PtlGetMap(ni, 0, NULL, &ranks) != PTL_OK ||
      spl_oe_open(ni, NULL, &engine) != PTL_OK || spl_team_make(engine, 0, NULL, 0, &all) != PTL_OK) {
    fprintf(stderr, "%s\n", spl_oe_error(NULL));
    return 1;
  }
  uint64_t* const data = malloc(bytes);
  if (data == NULL) return 3;
  for (uint64_t i = 0; i < words; ++i) data[i] = is_bcast && me.rank != 0 ? 0 : word_of(me.rank, i);
  const spl_call call = {.operation = is_bcast ? SPL_BCAST : SPL_ALLREDUCE,
                         .algorithm = strcmp(argv[2], "-") == 0 ? NULL : argv[2],
                         .segment_bytes = strtoull(argv[3], NULL, 0),
                         .receive = data,
                         .bytes = bytes,
                         .op = PTL_SUM,
                         .type = PTL_UINT64_T};
  if (spl_collective(all, &call, SPL_ONCE, &schedule) != PTL_OK || spl_schedule_start(schedule) != PTL_OK ||
      spl_schedule_wait(schedule) != PTL_OK) {
    fprintf(stderr, "%s\n", spl_oe_error(engine));
    return 1;
  }
  for (uint64_t i = 0; i < words; ++i) {
    uint64_t expected = word_of(0, i);
    for (uint64_t rank = 1; rank < ranks && !is_bcast; ++rank) expected += word_of(rank, i);
    if (data[i] == expected) continue;
    fprintf(stderr, "rank %u: word %" PRIu64 " is %" PRIx64 " instead of %" PRIx64 "\n", me.rank, i, data[i], expected);
    return 1;
  }
  printf("rank %u: %" PRIu64 " B are right\n", me.rank, bytes);
  spl_schedule_free(schedule);
  spl_oe_close(engine);
  PtlNIFini(ni);
  PtlFini();
  free(data);
  return 0;
}
