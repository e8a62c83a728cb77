/* Puts, gets, atomics and triggered operations between all pairs of ranks, from 0 B to argv[1] bytes; all bytes are
 * compared. Each rank has one region for each peer, which that peer writes, and one region that everybody reads. */
#include "live_common.h"

enum { PT_WRITE, PT_READ, PT_COUNT, PT_LATE };

static const uint64_t lengths[] = {0,     1,     8,     16,    17,    64,     1000,   4095,    4096,    8192,
                                   16383, 16384, 16385, 65536, 65553, 262144, 300001, 1 << 20, 3 << 20, 8 << 20};

static uint64_t key_of(unsigned from, unsigned to, unsigned round) { return from * 1000003u + to * 1009u + round; }

int main(int argc, char** argv) {
  const uint64_t most = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 20;
  begin();
  unsigned rounds = 0;
  while (rounds < sizeof lengths / sizeof *lengths && lengths[rounds] <= most) ++rounds;

  unsigned char* const out = some_memory(most);
  unsigned char* const back = some_memory(most);
  unsigned char** const in = some_memory(ranks * sizeof *in);
  unsigned char* const shared = some_memory(most);
  uint64_t* const sums = some_memory(ranks * sizeof *sums);
  const ptl_handle_ct_t written = counter(), sent = counter(), acked = counter(), replied = counter(),
                        summed = counter();
  const ptl_handle_ct_t start = counter(), fired = counter();
  open_portal(PTL_EQ_NONE, PT_WRITE);
  open_portal(PTL_EQ_NONE, PT_READ);
  open_portal(PTL_EQ_NONE, PT_COUNT);
  for (unsigned peer = 0; peer < ranks; ++peer) {
    in[peer] = some_memory(most);
    append_to(PT_WRITE, in[peer], most, PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM, written, peer, PTL_PRIORITY_LIST);
  }
  append_to(PT_READ, shared, most, PTL_ME_OP_GET, PTL_CT_NONE, 0, PTL_PRIORITY_LIST);
  append_to(PT_COUNT, sums, ranks * sizeof *sums, PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM, summed, 0,
            PTL_PRIORITY_LIST);
  fill(shared, 77 + my_rank, most);
  const ptl_handle_md_t put_md = bind(out, most, PTL_MD_EVENT_CT_SEND, PTL_EQ_NONE, sent);
  const ptl_handle_md_t ack_md = bind(out, most, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acked);
  const ptl_handle_md_t get_md = bind(back, most, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, replied);
  const ptl_handle_md_t fired_md = bind(out, most, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, fired);
  barrier();

  uint64_t got = 0, puts = 0, acks = 0, replies = 0, adds = 0, fires = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const uint64_t length = lengths[round];
    /* Every pair at once: with an acknowledgement, without, or triggered, in turns. */
    for (unsigned step = 0; step < ranks; ++step) {
      const unsigned to = (my_rank + step) % ranks;
      fill(out, key_of(my_rank, to, round), length);
      if ((round + step) % 3 == 0) {
        MUST(PtlPut(ack_md, 0, length, PTL_CT_ACK_REQ, rank_of(to), PT_WRITE, my_rank, 0, NULL, 0));
        WAIT_FOR(acked, ++acks);
      } else if ((round + step) % 3 == 1) {
        MUST(PtlPut(put_md, 0, length, PTL_NO_ACK_REQ, rank_of(to), PT_WRITE, my_rank, 0, NULL, 0));
        WAIT_FOR(sent, ++puts);
      } else {
        MUST(PtlTriggeredPut(fired_md, 0, length, PTL_CT_ACK_REQ, rank_of(to), PT_WRITE, my_rank, 0, NULL, 0, start,
                             fires + 1));
        MUST(PtlCTInc(start, (ptl_ct_event_t){1, 0}));
        WAIT_FOR(fired, ++fires);
      }
    }
    got += ranks;
    WAIT_FOR(written, got);
    for (unsigned from = 0; from < ranks; ++from) CHECK_BYTES(in[from], key_of(from, my_rank, round), length);
    for (unsigned step = 0; step < ranks; ++step) {
      const unsigned from = (my_rank + step) % ranks;
      const uint64_t offset = most > length ? (most - length) / 8 / 2 * 8 : 0;
      memset(back, 0xee, length < most ? length + 1 : length);
      MUST(PtlGet(get_md, 0, length, rank_of(from), PT_READ, 0, offset, NULL));
      WAIT_FOR(replied, ++replies);
      long long wrong_at = -1;
      for (uint64_t i = 0; i < length && wrong_at < 0; ++i) {
        if (back[i] != letter(77 + from, offset + i)) wrong_at = (long long)i;
      }
      EXPECT(-1, wrong_at);
      if (length < most) EXPECT(0xee, back[length]);
    }
    barrier();
  }

  /* All ranks add to all words of all ranks, and draw numbers from the word of rank 0. */
  enum { additions = 200 };
  uint64_t one = 1, drawn = 0;
  const ptl_handle_ct_t added = counter(), drew = counter();
  const ptl_handle_md_t one_md = bind(&one, sizeof one, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, added);
  const ptl_handle_md_t drawn_md = bind(&drawn, sizeof drawn, PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, drew);
  for (unsigned i = 0; i < additions; ++i) {
    for (unsigned to = 0; to < ranks; ++to) {
      MUST(PtlAtomic(one_md, 0, sizeof one, PTL_CT_ACK_REQ, rank_of(to), PT_COUNT, 0, my_rank * sizeof one, NULL, 0,
                     PTL_SUM, PTL_UINT64_T));
    }
  }
  WAIT_FOR(added, (uint64_t)additions * ranks);
  adds += (uint64_t)additions * ranks;
  WAIT_FOR(summed, adds);
  for (unsigned from = 0; from < ranks; ++from) EXPECT(additions, sums[from]);
  barrier();
  uint64_t before = 0;
  for (unsigned i = 0; i < 50; ++i) {
    MUST(
        PtlFetchAtomic(drawn_md, 0, one_md, 0, sizeof one, rank_of(0), PT_COUNT, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    WAIT_FOR(drew, i + 1);
    EXPECT(1, drawn >= additions && drawn < additions + 50u * ranks);
    if (i > 0) EXPECT(1, drawn > before);
    before = drawn;
  }
  barrier();
  if (my_rank == 0) EXPECT(additions + 50u * ranks, sums[0]);
  return end();
}
