/* Many messages in flight in both directions at once, more than the channels between two processes hold; some of
 * them are unexpected. argv[1]: messages for each pair of ranks. All bytes are compared. */
#include "live_common.h"

enum { PT_IN, PT_UNEXPECTED };
enum { SLOT = 40000, UNEXPECTED_SLOT = 2048, SLOTS = 64 };

static uint64_t length_of(unsigned from, unsigned to, unsigned i) {
  static const uint64_t sizes[] = {0, 8, 16, 24, 200, 2000, 9000, 16384, 40000, 3, 12, 5000};
  return sizes[word_of(from * 64 + to, i) % (sizeof sizes / sizeof *sizes)];
}
static uint64_t key_of(unsigned from, unsigned to, unsigned i) { return (from * 64u + to) * 1000003ull + i; }

int main(int argc, char** argv) {
  const unsigned messages = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 2000;
  begin();
  ptl_handle_eq_t eq;
  MUST(PtlEQAlloc(ni, 4 * 64 * 8, &eq));
  open_portal(PTL_EQ_NONE, PT_IN);
  open_portal(eq, PT_UNEXPECTED);
  const ptl_handle_ct_t landed = counter(), acked = counter();
  /* Slot i of a peer: messages i, i + SLOTS, ... of which a wave of SLOTS is under way at a time. */
  unsigned char* const in = some_memory((uint64_t)ranks * SLOTS * SLOT);
  unsigned char* const out = some_memory((uint64_t)ranks * SLOTS * SLOT);
  for (unsigned peer = 0; peer < ranks; ++peer) {
    append_to(PT_IN, in + (uint64_t)peer * SLOTS * SLOT, (uint64_t)SLOTS * SLOT, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM,
              landed, peer, PTL_PRIORITY_LIST);
  }
  const ptl_handle_md_t md = bind(out, (uint64_t)ranks * SLOTS * SLOT, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  barrier();
  uint64_t sent = 0;
  for (unsigned wave = 0; wave * SLOTS < messages; ++wave) {
    for (unsigned slot = 0; slot < SLOTS; ++slot) {
      for (unsigned to = 0; to < ranks; ++to) {
        const unsigned i = wave * SLOTS + slot;
        const uint64_t length = length_of(my_rank, to, i), at = ((uint64_t)to * SLOTS + slot) * SLOT;
        fill(out + at, key_of(my_rank, to, i), length);
        MUST(PtlPut(md, at, length, PTL_CT_ACK_REQ, rank_of(to), PT_IN, my_rank, (uint64_t)slot * SLOT, NULL, 0));
        ++sent;
      }
    }
    WAIT_FOR(landed, sent);
    WAIT_FOR(acked, sent);
    for (unsigned from = 0; from < ranks; ++from) {
      for (unsigned slot = 0; slot < SLOTS; ++slot) {
        const unsigned i = wave * SLOTS + slot;
        CHECK_BYTES(in + ((uint64_t)from * SLOTS + slot) * SLOT, key_of(from, my_rank, i), length_of(from, my_rank, i));
      }
    }
    barrier();
  }

  /* A burst of small ones, thousands at once, which nobody acknowledges. */
  const ptl_handle_ct_t burst = counter();
  uint32_t* const words = some_memory((uint64_t)ranks * messages * 4);
  uint32_t* const mine = some_memory((uint64_t)messages * 4);
  for (unsigned i = 0; i < messages; ++i) mine[i] = my_rank * 1000003u + i;
  append_to(PT_IN, words, (uint64_t)ranks * messages * 4, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, burst, 1000,
            PTL_PRIORITY_LIST);
  const ptl_handle_md_t mine_md = bind(mine, (uint64_t)messages * 4, 0, PTL_EQ_NONE, PTL_CT_NONE);
  barrier();
  for (unsigned i = 0; i < messages; ++i) {
    for (unsigned to = 0; to < ranks; ++to) {
      MUST(PtlPut(mine_md, (uint64_t)i * 4, 4, PTL_NO_ACK_REQ, rank_of(to), PT_IN, 1000,
                  ((uint64_t)my_rank * messages + i) * 4, NULL, 0));
    }
  }
  WAIT_FOR(burst, (uint64_t)ranks * messages);
  for (unsigned from = 0; from < ranks; ++from) {
    unsigned bad = 0;
    for (unsigned i = 0; i < messages; ++i) bad += words[from * messages + i] != from * 1000003u + i;
    EXPECT(0, bad);
  }
  barrier();

  /* Unexpected: they land in overflow entries and are found there by entries appended afterwards, in another order. */
  enum { EARLY = 24 };
  unsigned char* const overflow = some_memory((uint64_t)ranks * EARLY * UNEXPECTED_SLOT);
  ptl_me_t me = {.start = overflow,
                 .length = (uint64_t)ranks * EARLY * UNEXPECTED_SLOT,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE |
                            PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .ignore_bits = ~0ull};
  ptl_handle_me_t handle;
  MUST(PtlMEAppend(ni, PT_UNEXPECTED, &me, PTL_OVERFLOW_LIST, NULL, &handle));
  barrier();
  for (unsigned i = 0; i < EARLY; ++i) {
    for (unsigned to = 0; to < ranks; ++to) {
      const uint64_t length = word_of(to, i) % UNEXPECTED_SLOT;
      fill(out, key_of(my_rank, to, i), length);
      MUST(
          PtlPut(md, 0, length, PTL_CT_ACK_REQ, rank_of(to), PT_UNEXPECTED, ((uint64_t)my_rank << 32) | i, 0, NULL, i));
      WAIT_FOR(acked, ++sent);
    }
  }
  barrier();
  for (unsigned from = ranks; from-- > 0;) {
    for (unsigned i = EARLY; i-- > 0;) {
      ptl_me_t late = {.ct_handle = PTL_CT_NONE,
                       .uid = PTL_UID_ANY,
                       .options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE,
                       .match_id = {.rank = from},
                       .match_bits = ((uint64_t)from << 32) | i};
      MUST(PtlMEAppend(ni, PT_UNEXPECTED, &late, PTL_PRIORITY_LIST, NULL, &handle));
      ptl_event_t event;
      MUST(PtlEQWait(eq, &event));
      EXPECT(PTL_EVENT_PUT_OVERFLOW, event.type);
      EXPECT(from, event.initiator.rank);
      EXPECT(i, event.hdr_data);
      EXPECT(word_of(my_rank, i) % UNEXPECTED_SLOT, event.mlength);
      CHECK_BYTES(event.start, key_of(from, my_rank, i), event.mlength);
    }
  }
  return end();
}
