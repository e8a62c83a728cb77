/* Progress without calls: rank 0 makes no call while the others put, get, add, and fire its triggered operations. It
 * waits for the results by looking at its memory. */
#include "live_common.h"

enum { PT_DATA, PT_CHAIN, PT_FLAG };
enum { BYTES = 200000 };

int main(void) {
  begin();
  unsigned char* const data = some_memory(BYTES);
  unsigned char* const mine = some_memory(BYTES);
  static volatile uint64_t flags[64];
  uint64_t* const sum = some_memory(sizeof *sum);
  const ptl_handle_ct_t stepped = counter(), acked = counter(), replied = counter();
  open_portal(PTL_EQ_NONE, PT_DATA);
  open_portal(PTL_EQ_NONE, PT_CHAIN);
  open_portal(PTL_EQ_NONE, PT_FLAG);
  append_to(PT_DATA, data, BYTES, PTL_ME_OP_PUT | PTL_ME_OP_GET, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  append_to(PT_DATA, sum, sizeof *sum, PTL_ME_OP_PUT, PTL_CT_NONE, 1, PTL_PRIORITY_LIST);
  append_to(PT_CHAIN, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, stepped, 0, PTL_PRIORITY_LIST);
  append_to(PT_FLAG, (void*)flags, sizeof flags, PTL_ME_OP_PUT, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  fill(mine, 5 + my_rank, BYTES);
  const ptl_handle_md_t md = bind(mine, BYTES, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  const ptl_handle_md_t back_md = bind(mine, BYTES, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replied);
  const ptl_handle_md_t quiet_md = bind(mine, BYTES, 0, PTL_EQ_NONE, PTL_CT_NONE);
  enum { STEPS = 100 };
  if (my_rank == 0) { /* each step of rank 1 is answered by a put of rank 0's NIC */
    for (unsigned i = 1; i <= STEPS; ++i) {
      MUST(PtlTriggeredPut(quiet_md, 0, 1000, PTL_NO_ACK_REQ, rank_of(1), PT_DATA, 0, (i % 100) * 1000, NULL, 0,
                           stepped, i));
      MUST(PtlTriggeredPut(quiet_md, 0, 0, PTL_NO_ACK_REQ, rank_of(1), PT_CHAIN, 0, 0, NULL, 0, stepped, i));
    }
  }
  barrier();
  if (my_rank == 0) {
    for (unsigned waited = 0; waited < 60000; ++waited) {
      unsigned done = 0;
      for (unsigned peer = 1; peer < ranks; ++peer) done += flags[peer] == 1;
      if (done == ranks - 1) break;
      sleep_ms(1);
    }
    for (unsigned peer = 1; peer < ranks; ++peer) EXPECT(1, flags[peer]);
  } else {
    const uint64_t share = BYTES / ranks;
    uint64_t one = 1;
    uint64_t acks = 0;
    const ptl_handle_md_t one_md = bind(&one, sizeof one, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
    for (unsigned i = 0; i < 20; ++i) {
      MUST(PtlPut(md, my_rank * share, share, PTL_CT_ACK_REQ, rank_of(0), PT_DATA, 0, my_rank * share, NULL, 0));
      MUST(PtlAtomic(one_md, 0, sizeof one, PTL_CT_ACK_REQ, rank_of(0), PT_DATA, 1, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
      WAIT_FOR(acked, acks += 2);
      if (i % 5 == 0) sleep_ms(20);
    }
    unsigned char* const copy = some_memory(share);
    memcpy(copy, mine + my_rank * share, share);
    memset(mine + my_rank * share, 0, share);
    MUST(PtlGet(back_md, my_rank * share, share, rank_of(0), PT_DATA, 0, my_rank * share, NULL));
    WAIT_FOR(replied, 1);
    EXPECT(0, memcmp(copy, mine + my_rank * share, share));
    if (my_rank == 1) {
      for (unsigned i = 1; i <= STEPS; ++i) {
        MUST(PtlPut(quiet_md, 0, 0, PTL_NO_ACK_REQ, rank_of(0), PT_CHAIN, 0, 0, NULL, 0));
        WAIT_FOR(stepped, i);
      }
      for (unsigned i = 0; i < STEPS; ++i) CHECK_BYTES(data + i * 1000, 5, 1000);
    }
    MUST(PtlPut(one_md, 0, sizeof one, PTL_CT_ACK_REQ, rank_of(0), PT_FLAG, 0, my_rank * sizeof one, NULL, 0));
    WAIT_FOR(acked, acks + 1);
  }
  barrier();
  if (my_rank == 0) {
    EXPECT(20 * (ranks - 1), *sum);
    const uint64_t share = BYTES / ranks;
    for (unsigned peer = 1; peer < ranks; ++peer) {
      long long wrong_at = -1;
      for (uint64_t i = 0; i < share && wrong_at < 0; ++i) {
        if (data[peer * share + i] != letter(5 + peer, peer * share + i)) wrong_at = (long long)i;
      }
      EXPECT(-1, wrong_at);
    }
  }
  return end();
}
