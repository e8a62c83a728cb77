/* Unexpected messages: what comes before its entry waits in an overflow entry, and an event queue tells of both.
 *
 *     spinloom sim -n 4 examples/portals/unexpected.c
 *
 * Ranks 1.. put one message each before rank 0 has asked for it, and one after. */
#include <string.h>

#include "example.h"

enum { overflow_bytes = 4096, early_bits = 1, late_bits = 2, data_portal = 0, ask_portal = 1 };

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
  CHECK(PtlPTAlloc(ni, 0, queue, data_portal, &portal));
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
      if (entry.match_bits == late_bits) wait_until_ready(ni, ask_portal, sender); /* asks for it */
      CHECK(PtlEQWait(queue, &event));
      printf("%s of rank %u, '%s'\n", name_of(event.type), event.initiator.rank, (const char*)event.start);
    }
  }
}

static void send(ptl_handle_ni_t ni, ptl_rank_t rank) {
  ptl_handle_ct_t asked;
  ptl_pt_index_t portal;
  ptl_ct_event_t count;
  char out[64];
  CHECK(PtlCTAlloc(ni, &asked));
  CHECK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, ask_portal, &portal));
  say_ready(ni, portal, asked);
  for (ptl_match_bits_t bits = early_bits; bits <= late_bits; ++bits) {
    /* Early: as soon as rank 0 has its overflow entry. Late: rank 0 has asked. */
    if (bits == late_bits) CHECK(PtlCTWait(asked, 1, &count));
    const int length = snprintf(out, sizeof out, "%s %u", bits == early_bits ? "early" : "late", rank) + 1;
    put_until_taken(ni, out, (ptl_size_t)length, (ptl_process_t){.rank = 0}, data_portal, bits);
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
