/* Ping-pong by handlers: rank 1's NIC answers each packet from its own memory, the host's memory is never read.
 *
 *     spinloom sim -n 2 examples/portals/handlers.c [BYTES]
 *
 * The handlers are Spinloom's image `pingpong`; prints half the time of the second round. */
#include <portals4_spin.h>
#include <string.h>

#include "example.h"

enum { ping_bits = 1, pong_bits = 2, packet_bytes = 4096, rounds = 2 };

int main(int argc, char** argv) {
  const ptl_size_t bytes = number_of(argc, argv, 1, "BYTES", 1, bytes_max, 8);
  ptl_handle_ni_t ni;
  ptl_process_t me;
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  CHECK(PtlGetId(ni, &me));
  need_ranks(ni, 2);

  unsigned char *memory = calloc(bytes, 1), *out = malloc(bytes);
  ptl_pt_index_t portal;
  ptl_handle_ct_t landed;
  ptl_handle_me_t entry;
  ptl_ct_event_t count;
  CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
  CHECK(PtlCTAlloc(ni, &landed));
  ptl_me_t where = {.start = memory,
                    .length = bytes,
                    .ct_handle = landed,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .match_bits = me.rank == 0 ? pong_bits : ping_bits};
  if (me.rank == 1) {
    const uint32_t constants[] = {1 /* stream */, pong_bits, packet_bytes};
    ptl_hpu_md_h state;
    CHECK(PtlHPUAllocMem(64, ni, &state));
    const ptl_spin_t handlers = {.image = "pingpong",
                                 .header_handler = "header_handler",
                                 .payload_handler = "payload_handler",
                                 .completion_handler = "completion_handler",
                                 .hpu_memory = state,
                                 .constants = constants,
                                 .constants_length = sizeof constants};
    CHECK(PtlSpinMEAppend(ni, portal, &where, &handlers, PTL_PRIORITY_LIST, NULL, &entry));
    say_ready(ni, portal, PTL_CT_NONE);
    CHECK(PtlCTWait(landed, rounds * bytes, &count));
  } else {
    CHECK(PtlMEAppend(ni, portal, &where, PTL_PRIORITY_LIST, NULL, &entry));
    ptl_handle_ct_t acked;
    CHECK(PtlCTAlloc(ni, &acked));
    ptl_md_t what = {
        .start = out, .length = bytes, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = acked};
    ptl_handle_md_t md;
    wait_until_ready(ni, portal, 1);
    CHECK(PtlMDBind(ni, &what, &md));
    long long took_ns = 0;
    for (ptl_size_t round = 1; round <= rounds; ++round) {
      for (ptl_size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 7 + round);
      const long long start_ns = now_ns();
      CHECK(PtlPut(md, 0, bytes, PTL_CT_ACK_REQ, (ptl_process_t){.rank = 1}, portal, ping_bits, 0, NULL, 0));
      CHECK(PtlCTWait(landed, round * bytes, &count));
      took_ns = now_ns() - start_ns;
      CHECK(PtlCTWait(acked, round, &count)); /* the completion handler has ended: the state is free */
      if (memcmp(memory, out, bytes) != 0) {
        fprintf(stderr, "round %llu: the answer differs\n", (unsigned long long)round);
        return 1;
      }
    }
    printf("%llu B: %.1f ns\n", (unsigned long long)bytes, (double)took_ns / 2);
  }
  CHECK(PtlNIFini(ni));
  PtlFini();
  return 0;
}
