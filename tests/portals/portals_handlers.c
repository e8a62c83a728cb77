/* Spinloom's own handlers: one multiplies complex numbers in place, one answers messages from the NIC, of one packet
 * and of many. Two ranks: rank 0 puts and compares the answers, rank 1 compares its numbers with those that C
 * computes. */
#include <portals4_spin.h>

#include "portals_common.h"

enum { NUMBERS = 1500, MULTIPLIED = 1, PING = 2, PONG = 3, PACKET_BYTES = 4096, ROUNDS = 3, LONGEST = 20000 };

static double mine[2 * NUMBERS], expected[2 * NUMBERS], given[2 * NUMBERS];
static unsigned char out[LONGEST], in[LONGEST];
static ptl_pt_index_t pt;
static ptl_handle_ct_t landed, acked, answered;
static unsigned long long sent;

static ptl_me_t entry_of(void* start, ptl_size_t length, ptl_match_bits_t bits, ptl_handle_ct_t counter) {
  ptl_me_t entry = {.start = start,
                    .length = length,
                    .ct_handle = counter,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .match_bits = bits};
  return entry;
}

/* Until the target's handlers have ended. */
static void put(ptl_handle_md_t md, ptl_size_t bytes, ptl_match_bits_t bits) {
  ptl_ct_event_t count;
  MUST(PtlPut(md, 0, bytes, PTL_CT_ACK_REQ, rank_of(1), pt, bits, 0, NULL, 0));
  MUST(PtlCTWait(acked, ++sent, &count));
  EXPECT(0, count.failure);
}

static ptl_handle_md_t bound(void* start, ptl_size_t bytes) {
  ptl_md_t what = {
      .start = start, .length = bytes, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = acked};
  ptl_handle_md_t md;
  MUST(PtlMDBind(ni, &what, &md));
  return md;
}

static void multiplied(void) {
  ptl_handle_me_t handle;
  ptl_ct_event_t count;
  for (int i = 0; i < 2 * NUMBERS; ++i) {
    mine[i] = expected[i] = 1.0 / (i + 3);
    given[i] = (i % 17 - 8) / 7.0;
  }
  if (my_rank == 1) {
    ptl_me_t entry = entry_of(mine, sizeof mine, MULTIPLIED, landed);
    const ptl_spin_t handlers = {
        .image = "accumulate", .payload_handler = "payload_handler", .hpu_memory = PTL_HPU_MEM_NONE};
    MUST(PtlSpinMEAppend(ni, pt, &entry, &handlers, PTL_PRIORITY_LIST, NULL, &handle));
  }
  barrier();
  if (my_rank == 0) {
    ptl_handle_md_t md = bound(given, sizeof given);
    for (int round = 0; round < ROUNDS; ++round) put(md, sizeof given, MULTIPLIED);
    return;
  }
  MUST(PtlCTWait(landed, ROUNDS, &count));
  EXPECT(0, count.failure);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < 2 * NUMBERS; i += 2) {
      volatile double rr = expected[i] * given[i], ii = expected[i + 1] * given[i + 1];
      volatile double ri = expected[i] * given[i + 1], ir = expected[i + 1] * given[i];
      expected[i] = rr - ii;
      expected[i + 1] = ri + ir;
    }
  }
  EXPECT(0, memcmp(mine, expected, sizeof mine) != 0);
}

static void answered_by(uint32_t streams, ptl_size_t bytes) {
  ptl_handle_me_t handle;
  const ptl_handle_ct_t counter = my_rank == 1 ? landed : answered;
  ptl_ct_event_t count;
  MUST(PtlCTSet(counter, (ptl_ct_event_t){0, 0}));
  ptl_me_t entry = entry_of(in, bytes, my_rank == 1 ? PING : PONG, counter);
  entry.options |= PTL_ME_EVENT_CT_BYTES;
  memset(in, 0, sizeof in);
  if (my_rank == 1) {
    const uint32_t constants[] = {streams, PONG, PACKET_BYTES};
    ptl_hpu_md_h state;
    MUST(PtlHPUAllocMem(64, ni, &state));
    const ptl_spin_t handlers = {.image = "pingpong",
                                 .header_handler = "header_handler",
                                 .payload_handler = "payload_handler",
                                 .completion_handler = "completion_handler",
                                 .hpu_memory = state,
                                 .constants = constants,
                                 .constants_length = sizeof constants};
    MUST(PtlSpinMEAppend(ni, pt, &entry, &handlers, PTL_PRIORITY_LIST, NULL, &handle));
    barrier();
    MUST(PtlCTWait(landed, ROUNDS * bytes, &count));
    EXPECT(0, count.failure);
  } else {
    MUST(PtlMEAppend(ni, pt, &entry, PTL_PRIORITY_LIST, NULL, &handle));
    barrier();
    ptl_handle_md_t md = bound(out, bytes);
    for (ptl_size_t round = 1; round <= ROUNDS; ++round) {
      for (ptl_size_t i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 7 + i / 251 + round + streams);
      put(md, bytes, PING);
      MUST(PtlCTWait(answered, round * bytes, &count));
      EXPECT(0, memcmp(in, out, bytes) != 0);
    }
  }
  barrier();
  MUST(PtlMEUnlink(handle));
}

int main(void) {
  begin();
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt));
  MUST(PtlCTAlloc(ni, &landed));
  MUST(PtlCTAlloc(ni, &acked));
  MUST(PtlCTAlloc(ni, &answered));
  multiplied();
  for (uint32_t streams = 0; streams < 2; ++streams) {
    answered_by(streams, 8);
    answered_by(streams, PACKET_BYTES);
    answered_by(streams, LONGEST);
  }
  return end();
}
