/* Random messages between all ranks over all rails, both ways of matching, with long ones read and put; then memory
 * under keys and words.
 *
 * Usage: rails_traffic SEED MESSAGES [RAILS]. All ranks draw the same list of messages (sender, receiver, tag, length)
 * and post their parts in the order of the list, sends and receives apart, some receives after their messages have
 * come. Each stream of (sender, receiver, tag) keeps its order; a third of the receives take any source under a tag of
 * their sender's own. Every byte of every message is compared, and 16 bytes behind it.
 */
#include "rails_common.h"

enum { guard_bytes = 16, tags = 3, under_way_max = 24 };

static uint64_t state;

static uint64_t draw(uint64_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % below;
}

struct message {
  unsigned from, to, tag;
  int any_source;
  uint64_t bytes, key;
};

struct posted {
  spl_rails_request request;
  const struct message* message;
  unsigned char* memory;
  int receives;
};

static void finish(struct posted* one) {
  spl_rails_status status;
  OK(spl_rails_wait(rails, one->request, &status));
  if (one->receives) {
    EXPECT(one->message->from, status.source);
    EXPECT(one->message->bytes, status.bytes);
    EXPECT(0, status.truncated);
    CHECK_BYTES(one->memory, one->message->key, one->message->bytes);
    for (int i = 0; i < guard_bytes; ++i) EXPECT(0xa5, one->memory[one->message->bytes + (uint64_t)i]);
  }
  free(one->memory);
}

/* Three pieces, one of them empty. */
static void cut(ptl_iovec_t pieces[3], unsigned char* memory, uint64_t bytes) {
  pieces[0] = (ptl_iovec_t){memory, bytes / 3};
  pieces[1] = (ptl_iovec_t){memory, 0};
  pieces[2] = (ptl_iovec_t){memory + bytes / 3, bytes - bytes / 3};
}

/* Sends and receives this rank's part of the list, in batches, so that some receives come after their messages. */
static void exchange(const struct message* list, unsigned count) {
  struct posted open[2 * under_way_max];
  unsigned under_way = 0;
  for (unsigned i = 0; i < count; ++i) {
    const struct message* const m = &list[i];
    const int late = i % 5 == 0;
    for (int pass = 0; pass < 2; ++pass) {
      const int receives = late ? pass == 1 : pass == 0;
      if ((receives ? m->to : m->from) != my_rank) continue;
      struct posted* const one = &open[under_way++];
      one->message = m;
      one->receives = receives;
      one->memory = some_memory(m->bytes + guard_bytes);
      const uint64_t tag = (uint64_t)m->tag << 8 | m->from;
      if (receives) {
        memset(one->memory, 0xa5, m->bytes + guard_bytes);
        const uint32_t source = m->any_source ? SPL_RAILS_ANY_SOURCE : m->from;
        ptl_iovec_t pieces[3];
        cut(pieces, one->memory, m->bytes);
        if (i % 3 == 0) {
          OK(spl_rails_receive_list(rails, pieces, 3, source, tag, 0, &one->request));
        } else {
          OK(spl_rails_receive(rails, one->memory, m->bytes, source, tag, 0, &one->request));
        }
      } else {
        fill(one->memory, m->key, m->bytes);
        ptl_iovec_t pieces[3];
        cut(pieces, one->memory, m->bytes);
        if (i % 4 == 0) {
          OK(spl_rails_send_list(rails, pieces, 3, m->to, tag, &one->request));
        } else {
          OK(spl_rails_send(rails, one->memory, m->bytes, m->to, tag, &one->request));
        }
      }
    }
    if (under_way + 2 > under_way_max || i + 1 == count) {
      for (unsigned j = 0; j < under_way; ++j) finish(&open[j]);
      under_way = 0;
    }
  }
}

static void reach_memory(void) {
  const uint64_t bytes = 3 << 20;
  unsigned char* const mine = some_memory(bytes);
  unsigned char* const copy = some_memory(bytes);
  uint64_t key;
  spl_rails_request request;
  OK(spl_rails_expose(rails, mine, bytes, SPL_RAILS_READ | SPL_RAILS_WRITE, &key));
  const unsigned to = (my_rank + 1) % ranks, from = (my_rank + ranks - 1) % ranks;
  fill(copy, my_rank, bytes);
  barrier();
  OK(spl_rails_put(rails, copy, bytes, to, key, 0, &request)); /* all ranks have the same number of keys */
  OK(spl_rails_wait(rails, request, NULL));
  barrier();
  CHECK_BYTES(mine, from, bytes);
  memset(copy, 0, bytes);
  OK(spl_rails_get(rails, copy, bytes - 5, to, key, 5, &request));
  OK(spl_rails_wait(rails, request, NULL));
  for (uint64_t i = 0; i < bytes - 5; i += 4099) EXPECT(letter(my_rank, i + 5), copy[i]);
  OK(spl_rails_get(rails, copy, 10, to, key, bytes - 5, &request));
  EXPECT(PTL_ARG_INVALID, spl_rails_wait(rails, request, NULL)); /* the bytes lie beyond the end */
  barrier();
  int withdrawn; /* the last acknowledgement of a get may be late */
  while ((withdrawn = spl_rails_withdraw(rails, key)) == PTL_IN_USE) OK(spl_rails_progress(rails));
  OK(withdrawn);
  barrier();
  OK(spl_rails_put(rails, copy, 8, to, key, 0, &request));
  EXPECT(PTL_ARG_INVALID, spl_rails_wait(rails, request, NULL));
  free(mine);
  free(copy);
}

static uint64_t heard[64], heard_wrong, answered;
static void hear_answer(void* argument, uint32_t source, const void* data, uint64_t bytes) {
  (void)argument, (void)source, (void)data;
  if (bytes != 3) ++heard_wrong;
  ++answered;
}

static void hear(void* argument, uint32_t source, const void* data, uint64_t bytes) {
  uint64_t number;
  if (bytes != sizeof number || argument != (void*)heard) {
    ++heard_wrong;
    return;
  }
  memcpy(&number, data, sizeof number);
  if (number != heard[source]) ++heard_wrong;
  ++heard[source];
  if (number % 50 == 0) OK(spl_rails_word(rails, source, 8, "yes", 3));
}

static void say_words(void) {
  memset(heard, 0, sizeof heard);
  answered = 0;
  OK(spl_rails_handle(rails, 7, hear, heard));
  OK(spl_rails_handle(rails, 8, hear_answer, NULL));
  barrier();
  for (uint64_t number = 0; number < 200; ++number) {
    for (unsigned to = 0; to < ranks; ++to) {
      if (number % 3 != 0) {
        OK(spl_rails_word(rails, to, 7, &number, sizeof number));
        continue;
      }
      unsigned char* const half = (unsigned char*)&number + 4;
      const ptl_iovec_t pieces[2] = {{&number, 4}, {half, 4}};
      spl_rails_request request;
      OK(spl_rails_word_list(rails, to, 7, pieces, 2, &request));
      OK(spl_rails_wait(rails, request, NULL));
    }
  }
  for (unsigned from = 0; from < ranks; ++from) {
    while (heard[from] < 200) {
      OK(spl_rails_progress(rails));
      usleep(20);
    }
  }
  while (answered < 4 * ranks) {
    OK(spl_rails_progress(rails));
    usleep(20);
  }
  EXPECT(0, heard_wrong);
  OK(spl_rails_flush(rails));
}

static void run(int matching, int rendezvous, uint64_t seed, unsigned count, uint32_t wanted) {
  spl_rails_options options = {.matching = matching, .rendezvous = rendezvous, .rails = wanted, .words = 1};
  OK(spl_rails_open(ni, &options, &rails));
  struct message* const list = some_memory(count * sizeof *list);
  state = seed;
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t kind = draw(10);
    list[i].from = (unsigned)draw(ranks);
    list[i].to = (unsigned)draw(ranks);
    list[i].tag = (unsigned)draw(tags);
    list[i].any_source = list[i].tag == tags - 1;
    list[i].bytes = kind < 4 ? draw(100) : kind < 7 ? draw(20000) : kind < 9 ? draw(300000) : draw(3000000);
    list[i].key = seed * 1000 + i;
  }
  exchange(list, count);
  barrier();
  reach_memory();
  say_words();
  barrier();
  OK(spl_rails_close(rails));
  rails = NULL;
  free(list);
}

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  const unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 60;
  const uint32_t wanted = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
  begin();
  if (ranks > 64) return 3;
  run(SPL_RAILS_BY_TAG, SPL_RAILS_GET, seed, count, wanted);
  run(SPL_RAILS_BY_WORD, SPL_RAILS_GET, seed, count, wanted);
  run(SPL_RAILS_BY_TAG, SPL_RAILS_PUT, seed + 1, count, wanted);
  run(SPL_RAILS_BY_WORD, SPL_RAILS_PUT, seed + 1, count, wanted);
  return end();
}
