/* Each rank puts its rank to the next one, whose handlers of the shipped image `pingpong` put it back: what comes back
 * must be what left. Prints "rank R: N ranks, good". */
#include <portals4_spin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD(call)                                                     \
  do {                                                                 \
    const int code = (call);                                           \
    if (code != PTL_OK) {                                              \
      fprintf(stderr, "line %d: %s gave %d\n", __LINE__, #call, code); \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

enum { there_bits = 1, back_bits = 2, bytes = 1000 };

int main(void) {
  ptl_handle_ni_t ni;
  ptl_process_t me, next;
  ptl_size_t ranks;
  ptl_pt_index_t portal;
  ptl_handle_ct_t back, acked, served;
  ptl_handle_me_t entry;
  ptl_handle_md_t md;
  ptl_hpu_md_h state;
  ptl_ct_event_t count;
  static unsigned char out[bytes], in[bytes], unused[bytes];
  GOOD(PtlInit());
  GOOD(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni));
  GOOD(PtlGetId(ni, &me));
  GOOD(PtlGetMap(ni, 0, NULL, &ranks));
  GOOD(PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &portal));
  GOOD(PtlCTAlloc(ni, &back));
  GOOD(PtlCTAlloc(ni, &acked));
  GOOD(PtlCTAlloc(ni, &served));

  ptl_me_t where;
  memset(&where, 0, sizeof where);
  where.start = in;
  where.length = bytes;
  where.ct_handle = back;
  where.uid = PTL_UID_ANY;
  where.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
  where.match_id.rank = PTL_RANK_ANY;
  where.match_bits = back_bits;
  GOOD(PtlMEAppend(ni, portal, &where, PTL_PRIORITY_LIST, NULL, &entry));

  const uint32_t constants[] = {1 /* stream */, back_bits, 4096};
  ptl_spin_t handlers;
  memset(&handlers, 0, sizeof handlers);
  GOOD(PtlHPUAllocMem(64, ni, &state));
  handlers.image = "pingpong";
  handlers.header_handler = "header_handler";
  handlers.payload_handler = "payload_handler";
  handlers.completion_handler = "completion_handler";
  handlers.hpu_memory = state;
  handlers.constants = constants;
  handlers.constants_length = sizeof constants;
  where.start = unused;
  where.ct_handle = served;
  where.match_bits = there_bits;
  GOOD(PtlSpinMEAppend(ni, portal, &where, &handlers, PTL_PRIORITY_LIST, NULL, &entry));

  for (int i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 7 + (int)me.rank);
  ptl_md_t what;
  memset(&what, 0, sizeof what);
  what.start = out;
  what.length = bytes;
  what.options = PTL_MD_EVENT_CT_ACK;
  what.eq_handle = PTL_EQ_NONE;
  what.ct_handle = acked;
  GOOD(PtlMDBind(ni, &what, &md));
  next.rank = (ptl_rank_t)((me.rank + 1) % ranks);
  do { /* this ends when the next rank has its entry */
    const ptl_ct_event_t none = {0, 0};
    GOOD(PtlCTSet(acked, none));
    GOOD(PtlPut(md, 0, bytes, PTL_CT_ACK_REQ, next, portal, there_bits, 0, NULL, 0));
    GOOD(PtlCTWait(acked, 1, &count));
  } while (count.success == 0);
  GOOD(PtlCTWait(back, 1, &count));
  GOOD(PtlCTWait(served, 1, &count)); /* the rank that puts to this one needs it until then */
  if (memcmp(in, out, bytes) != 0) {
    fprintf(stderr, "rank %u: what came back differs\n", me.rank);
    return 1;
  }
  printf("rank %u: %u ranks, good\n", me.rank, (unsigned)ranks);
  GOOD(PtlNIFini(ni));
  PtlFini();
  return 0;
}
