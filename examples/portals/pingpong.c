/* Ping-pong: rank 0 puts a message to rank 1, whose NIC answers by a triggered put; counters tell, no events.
 *
 *     spinloom sim -n 2 examples/portals/pingpong.c [BYTES [ROUNDS]]
 *
 * Prints half the time of a round at rank 0; every answer is compared with what was sent. */
#include <string.h>

#include "example.h"

int main(int argc, char** argv) {
  const ptl_size_t bytes = number_of(argc, argv, 1, "BYTES", 0, bytes_max, 8);
  const ptl_size_t rounds = number_of(argc, argv, 2, "ROUNDS", 1, 1024, 10); /* triggered operations at a time */
  ptl_handle_ni_t ni;
  ptl_process_t me, other;
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  CHECK(PtlGetId(ni, &me));
  need_ranks(ni, 2);
  other.rank = 1 - me.rank;

  unsigned char *out = malloc(bytes), *in = calloc(bytes, 1);
  ptl_handle_ct_t landed, sent;
  ptl_pt_index_t portal;
  CHECK(PtlCTAlloc(ni, &landed));
  CHECK(PtlCTAlloc(ni, &sent));
  CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
  ptl_me_t entry = {.start = in,
                    .length = bytes,
                    .ct_handle = landed,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .match_bits = 7};
  ptl_handle_me_t linked;
  CHECK(PtlMEAppend(ni, portal, &entry, PTL_PRIORITY_LIST, NULL, &linked));

  /* Rank 1 answers with what landed. */
  ptl_md_t memory = {.start = me.rank == 0 ? out : in,
                     .length = bytes,
                     .options = PTL_MD_EVENT_CT_SEND,
                     .eq_handle = PTL_EQ_NONE,
                     .ct_handle = sent};
  ptl_handle_md_t md;
  CHECK(PtlMDBind(ni, &memory, &md));
  ptl_ct_event_t count;
  if (me.rank == 1) {
    for (ptl_size_t round = 1; round <= rounds; ++round) {
      CHECK(PtlTriggeredPut(md, 0, bytes, PTL_NO_ACK_REQ, other, portal, 7, 0, NULL, 0, landed, round));
    }
    say_ready(ni, portal, PTL_CT_NONE);
    CHECK(PtlCTWait(sent, rounds, &count)); /* the memory belongs to the NIC until then */
  } else {
    wait_until_ready(ni, portal, 1);
    long long best_ns = -1;
    for (ptl_size_t round = 1; round <= rounds; ++round) {
      for (ptl_size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 7 + round);
      memset(in, 0, bytes);
      const long long start_ns = now_ns();
      CHECK(PtlPut(md, 0, bytes, PTL_NO_ACK_REQ, other, portal, 7, 0, NULL, 0));
      CHECK(PtlCTWait(landed, round, &count));
      const long long took_ns = now_ns() - start_ns;
      if (memcmp(in, out, bytes) != 0) {
        fprintf(stderr, "round %llu: the answer differs\n", (unsigned long long)round);
        return 1;
      }
      if (best_ns < 0 || took_ns < best_ns) best_ns = took_ns;
    }
    printf("%llu B: %.1f ns\n", (unsigned long long)bytes, (double)best_ns / 2);
  }
  free(out);
  free(in);
  CHECK(PtlMEUnlink(linked));
  CHECK(PtlNIFini(ni));
  PtlFini();
  return 0;
}
