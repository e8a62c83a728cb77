/* Broadcast along a binomial tree: every NIC passes the message on by triggered puts, without its host.
 *
 *     spinloom sim -n 64 examples/portals/broadcast.c [BYTES]
 *
 * Every rank compares what it got; the last line is the time until the last rank knew,
 * by a clock that all of them share. */
#include "example.h"

enum { data_bits = 1, done_bits = 2 };

static unsigned char expected(ptl_size_t i) { return (unsigned char)(i * 31 + 5); }

int main(int argc, char** argv) {
  const ptl_size_t bytes = number_of(argc, argv, 1, "BYTES", 0, bytes_max, 4096);
  ptl_handle_ni_t ni;
  ptl_process_t me;
  ptl_size_t ranks;
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  CHECK(PtlGetId(ni, &me));
  CHECK(PtlGetMap(ni, 0, NULL, &ranks));

  unsigned char* data = calloc(bytes, 1);
  long long* ends = calloc(ranks, sizeof *ends); /* rank 0: when each rank had it */
  ptl_pt_index_t portal;
  ptl_handle_ct_t landed, sent, done, ready;
  ptl_handle_me_t data_entry, done_entry;
  CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
  CHECK(PtlCTAlloc(ni, &landed));
  CHECK(PtlCTAlloc(ni, &sent));
  CHECK(PtlCTAlloc(ni, &done));
  CHECK(PtlCTAlloc(ni, &ready));
  ptl_me_t entry = {.start = data,
                    .length = bytes,
                    .ct_handle = landed,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .match_bits = data_bits};
  CHECK(PtlMEAppend(ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &data_entry));
  entry.start = ends;
  entry.length = ranks * sizeof *ends;
  entry.ct_handle = done;
  entry.match_bits = done_bits;
  CHECK(PtlMEAppend(ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &done_entry));

  ptl_md_t memory = {
      .start = data, .length = bytes, .options = PTL_MD_EVENT_CT_SEND, .eq_handle = PTL_EQ_NONE, .ct_handle = sent};
  ptl_handle_md_t md;
  CHECK(PtlMDBind(ni, &memory, &md));

  /* The largest subtree first. Rank 0's own counter starts its puts. */
  ptl_size_t children = 0;
  ptl_rank_t half = 1;
  while (half < ranks) half *= 2;
  for (half /= 2; half > 0; half /= 2) {
    if (me.rank % (half * 2) != 0 || me.rank + half >= ranks) continue;
    const ptl_process_t child = {.rank = me.rank + half};
    CHECK(PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, child, portal, data_bits, 0, NULL, 0, landed, 1));
    ++children;
  }
  for (ptl_size_t i = 0; me.rank == 0 && i < bytes; ++i) data[i] = expected(i);

  /* A rank that has knocked at rank 0 is ready; rank 0 begins when all have. */
  ptl_ct_event_t count;
  say_ready(ni, portal, ready);
  if (me.rank == 0) {
    CHECK(PtlCTWait(ready, ranks - 1, &count));
    nanosleep(&(struct timespec){0, 10000}, NULL); /* their acknowledgements are not part of the time */
  } else {
    wait_until_ready(ni, portal, 0);
  }
  const long long start_ns = now_ns();
  if (me.rank == 0) CHECK(PtlCTInc(landed, (ptl_ct_event_t){1, 0}));
  CHECK(PtlCTWait(landed, 1, &count));
  long long end_ns = now_ns();
  for (ptl_size_t i = 0; i < bytes; ++i) {
    if (data[i] != expected(i)) {
      fprintf(stderr, "rank %u: byte %llu differs\n", me.rank, (unsigned long long)i);
      return 1;
    }
  }
  CHECK(PtlCTWait(sent, children, &count));

  /* Rank 0 hears from everybody. */
  if (me.rank != 0) {
    memory.start = &end_ns;
    memory.length = sizeof end_ns;
    CHECK(PtlMDBind(ni, &memory, &md));
    CHECK(PtlPut(md, 0, sizeof end_ns, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, portal, done_bits,
                 me.rank * sizeof end_ns, NULL, 0));
    CHECK(PtlCTWait(sent, children + 1, &count));
  } else {
    CHECK(PtlCTWait(done, ranks - 1, &count));
    for (ptl_size_t rank = 1; rank < ranks; ++rank) {
      if (ends[rank] > end_ns) end_ns = ends[rank];
    }
    printf("%llu B to %llu ranks: %lld ns\n", (unsigned long long)bytes, (unsigned long long)ranks, end_ns - start_ns);
  }
  CHECK(PtlNIFini(ni));
  PtlFini();
  return 0;
}
