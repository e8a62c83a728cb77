/* A machine is cut off, or dies with all of its ranks. argv[1]: how many ranks a machine has; argv[2]: the first rank
 * of the machine; argv[3]: a file that is there when that has happened. All ranks put to all until it has. On both
 * sides of the cut every rank then hears, by the events of its puts, that it has lost the other side, and goes on with
 * its own. */
#include "live_common.h"

enum { PT_TARGET, PT_END };
enum { LARGE = 1 << 20 };

static unsigned first, after; /* the ranks that are cut off: first to after - 1 */

static int on_our_side(unsigned peer) {
  return (peer >= first && peer < after) == (my_rank >= first && my_rank < after);
}

/* Puts to the peer and returns the failure type of SEND or, after a good SEND, of ACK; -1 if no event comes. */
static int put(ptl_handle_md_t md, ptl_handle_eq_t eq, unsigned peer, uint64_t length) {
  MUST(PtlPut(md, 0, length, PTL_ACK_REQ, rank_of(peer), PT_TARGET, 0, 0, NULL, 0));
  for (;;) {
    ptl_event_t event;
    unsigned which;
    if (PtlEQPoll(&eq, 1, patient_ms(100000), &event, &which) != PTL_OK) return -1;
    if (event.type != PTL_EVENT_SEND || event.ni_fail_type != PTL_NI_OK) return event.ni_fail_type;
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  begin();
  first = (unsigned)atoi(argv[2]);
  after = first + (unsigned)atoi(argv[1]);
  ptl_handle_eq_t eq;
  MUST(PtlEQAlloc(ni, 1000, &eq));
  open_portal(PTL_EQ_NONE, PT_TARGET);
  open_portal(PTL_EQ_NONE, PT_END);
  const ptl_handle_ct_t met = counter();
  unsigned char* const in = some_memory(LARGE);
  unsigned char* const out = some_memory(LARGE);
  append_to(PT_TARGET, in, LARGE, PTL_ME_OP_PUT, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  append_to(PT_END, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, met, 0, PTL_PRIORITY_LIST);
  const ptl_handle_md_t md = bind(out, LARGE, 0, eq, PTL_CT_NONE);
  const ptl_handle_md_t quiet_md = bind(NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
  fill(out, 9, LARGE);
  barrier();
  unsigned sides = 0;
  for (unsigned peer = 0; peer < ranks; ++peer) {
    EXPECT(PTL_NI_OK, put(md, eq, peer, LARGE));
    sides += on_our_side(peer);
  }
  barrier();
  printf("rank %u runs\n", my_rank);
  fflush(stdout);
  while (access(argv[3], F_OK) != 0) sleep_ms(10);

  for (unsigned peer = 0; peer < ranks; ++peer) {
    if (on_our_side(peer)) continue;
    EXPECT(PTL_NI_UNDELIVERABLE, put(md, eq, peer, 64)); /* nobody acknowledges what it was sent */
    EXPECT(PTL_NI_UNDELIVERABLE, put(md, eq, peer, LARGE));
  }
  printf("rank %u knows it\n", my_rank);
  fflush(stdout);
  for (unsigned peer = 0; peer < ranks; ++peer) {
    if (on_our_side(peer)) EXPECT(PTL_NI_OK, put(md, eq, peer, LARGE));
  }
  for (unsigned peer = 0; peer < ranks; ++peer) {
    if (on_our_side(peer)) MUST(PtlPut(quiet_md, 0, 0, PTL_NO_ACK_REQ, rank_of(peer), PT_END, 0, 0, NULL, 0));
  }
  WAIT_FOR(met, sides);
  CHECK_BYTES(in, 9, LARGE);
  printf("rank %u: %d answers\n", my_rank, answers);
  fflush(stdout);
  PtlNIFini(ni);
  PtlFini();
  return wrong == 0 ? 0 : 1;
}
