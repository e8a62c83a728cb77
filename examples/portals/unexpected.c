/* Unexpected messages: what comes before its entry waits in an overflow entry, and an event queue tells of both.
 *
 *     spinloom sim -n 4 examples/portals/unexpected.c
 *
 * Ranks 1.. put one message each before rank 0 has asked for it, and one after. */
#include <portals4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    const int code = (call);                                                   \
    if (code != PTL_OK) {                                                      \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, code); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

enum { overflow_bytes = 4096, early_bits = 1, late_bits = 2 };

static const char* name_of(ptl_event_kind_t kind) {
  switch (kind) {
    case PTL_EVENT_PUT: return "PUT";
    case PTL_EVENT_PUT_OVERFLOW: return "PUT_OVERFLOW";
    case PTL_EVENT_AUTO_UNLINK: return "AUTO_UNLINK";
    case PTL_EVENT_AUTO_FREE: return "AUTO_FREE";
    case PTL_EVENT_LINK: return "LINK";
    default: return "another";
  }
}

static void receive(ptl_handle_ni_t ni, ptl_size_t senders) {
  static char overflow[overflow_bytes];
  ptl_handle_eq_t queue;
  ptl_pt_index_t portal;
  ptl_handle_me_t handle;
  ptl_event_t event;
  CHECK(PtlEQAlloc(ni, 64, &queue));
  CHECK(PtlPTAlloc(ni, 0, queue, 0, &portal));
  ptl_me_t entry = {.start = overflow,
                    .length = sizeof overflow,
                    .ct_handle = PTL_CT_NONE,
                    .uid = PTL_UID_ANY,
                    .options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE,
                    .match_id = {.rank = PTL_RANK_ANY},
                    .ignore_bits = ~(ptl_match_bits_t)0};
  CHECK(PtlMEAppend(ni, portal, &entry, PTL_OVERFLOW_LIST, (void*)"overflow", &handle));

  /* The early messages come: nobody has asked for them. */
  for (ptl_size_t sender = 1; sender <= senders; ++sender) {
    CHECK(PtlEQWait(queue, &event));
    printf("%s of rank %u, %llu B, entry %s\n", name_of(event.type), event.initiator.rank,
           (unsigned long long)event.mlength, (const char*)event.user_ptr);
  }
  /* One entry for each message: the first finds its header, the second waits. */
  static char in[64];
  for (ptl_rank_t sender = 1; sender <= senders; ++sender) {
    entry.start = in;
    entry.length = sizeof in;
    entry.options = PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE;
    entry.match_id.rank = sender;
    entry.ignore_bits = 0;
    for (entry.match_bits = early_bits; entry.match_bits <= late_bits; ++entry.match_bits) {
      memset(in, 0, sizeof in);
      CHECK(PtlMEAppend(ni, portal, &entry, PTL_PRIORITY_LIST, (void*)"exact", &handle));
      CHECK(PtlEQWait(queue, &event));
      printf("%s of rank %u, '%s'\n", name_of(event.type), event.initiator.rank, (const char*)event.start);
    }
  }
}

static void send(ptl_handle_ni_t ni, ptl_rank_t rank) {
  ptl_handle_ct_t sent;
  ptl_handle_md_t md;
  ptl_ct_event_t count;
  char out[64];
  CHECK(PtlCTAlloc(ni, &sent));
  const ptl_md_t memory = {
      .start = out, .length = sizeof out, .options = PTL_MD_EVENT_CT_SEND, .eq_handle = PTL_EQ_NONE, .ct_handle = sent};
  CHECK(PtlMDBind(ni, &memory, &md));
  for (ptl_match_bits_t bits = early_bits; bits <= late_bits; ++bits) {
    /* Early: rank 0 has its overflow entry. Late: it waits for this one. */
    nanosleep(&(struct timespec){0, (bits == early_bits ? 100000 : 1000000) + 1000 * (long)rank}, NULL);
    const int length = snprintf(out, sizeof out, "%s %u", bits == early_bits ? "early" : "late", rank) + 1;
    CHECK(PtlPut(md, 0, (ptl_size_t)length, PTL_NO_ACK_REQ, (ptl_process_t){.rank = 0}, 0, bits, 0, NULL, 0));
    CHECK(PtlCTWait(sent, bits, &count));
  }
}

int main(void) {
  ptl_handle_ni_t ni;
  ptl_process_t me;
  ptl_size_t ranks;
  CHECK(PtlInit());
  CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  CHECK(PtlGetId(ni, &me));
  CHECK(PtlGetMap(ni, 0, NULL, &ranks));
  if (me.rank == 0) {
    receive(ni, ranks - 1);
  } else {
    send(ni, me.rank);
  }
  CHECK(PtlNIFini(ni));
  PtlFini();
  return 0;
}
