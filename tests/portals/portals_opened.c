/* The library and its interfaces: how they open and end, whose they are, which limits they have and keep. One rank,
 * which stands twice in a map of its own. */
#include "portals_common.h"

enum { KINDS = 4, SIZE = 64 };
static const unsigned kinds[KINDS] = {PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
                                      PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL};
static ptl_handle_ni_t nis[KINDS];
static ptl_ni_limits_t usual[KINDS];
static char memory[SIZE], out[SIZE];

static int is_matching(unsigned kind) { return (kinds[kind] & PTL_NI_MATCHING) != 0; }

static ptl_handle_ni_t opened(unsigned kind, const ptl_ni_limits_t* desired, ptl_ni_limits_t* actual) {
  ptl_handle_ni_t made = PTL_INVALID_HANDLE;
  EXPECT(PTL_OK, PtlNIInit(PTL_IFACE_DEFAULT, kinds[kind], PTL_PID_ANY, desired, actual, &made));
  return made;
}

static ptl_process_t own_id(ptl_handle_ni_t at) {
  ptl_process_t id;
  MUST(PtlGetId(at, &id));
  return id;
}

static ptl_me_t entry_of(void* start, ptl_size_t length, ptl_handle_ct_t ct) {
  ptl_me_t me = {.start = start,
                 .length = length,
                 .ct_handle = ct,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                 .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}}};
  return me;
}

static int append(unsigned kind, ptl_handle_ni_t at, ptl_pt_index_t pt, ptl_me_t me, ptl_list_t list,
                  ptl_handle_me_t* made) {
  if ((kinds[kind] & PTL_NI_LOGICAL) != 0) me.match_id.rank = PTL_RANK_ANY;
  return is_matching(kind) ? PtlMEAppend(at, pt, &me, list, NULL, made)
                           : PtlLEAppend(at, pt, (ptl_le_t*)&me, list, NULL, made);
}

/* Rules: P4F-3.1, P4F-3.3, P4F-4.1. */
static void library(void) {
  ptl_handle_ni_t made;
  ptl_uid_t uid;
  EXPECT(PTL_NO_INIT, PtlNIInit(PTL_IFACE_DEFAULT, kinds[0], PTL_PID_ANY, NULL, NULL, &made));
  EXPECT(PTL_NO_INIT, PtlGetUid(0, &uid));
  EXPECT(PTL_NO_INIT, PtlCTInc(0, (ptl_ct_event_t){1, 1}));
  EXPECT(PTL_NO_INIT, PtlTriggeredCTInc(0, (ptl_ct_event_t){1, 1}, 0, 1));
  EXPECT(PTL_OK, PtlInit());
  EXPECT(PTL_OK, PtlInit());
  const ptl_handle_ni_t at = opened(0, NULL, NULL);
  PtlFini();
  EXPECT(PTL_OK, PtlGetUid(at, &uid));
  EXPECT(geteuid(), uid);
  EXPECT(PTL_OK, PtlNIFini(at));
}

/* Rules: P4F-2.8, P4F-3.8, P4F-3.9, P4F-3.13, P4F-3.16, P4F-3.17, P4F-3.20, P4F-3.21, P4F-3.22, P4F-3.24, P4F-3.25,
 * P4F-3.38, P4F-3.40, P4F-4.3, P4F-4.4. */
static void all_kinds(void) {
  ptl_process_t first, id;
  for (unsigned kind = 0; kind < KINDS; ++kind) nis[kind] = opened(kind, NULL, &usual[kind]);
  MUST(PtlGetPhysId(nis[0], &first));
  EXPECT(1, first.phys.nid != PTL_NID_ANY && first.phys.pid != PTL_PID_ANY);
  for (unsigned kind = 0; kind < KINDS; ++kind) {
    const ptl_ni_limits_t* const l = &usual[kind];
    ptl_handle_ni_t owner = PTL_INVALID_HANDLE, again = PTL_INVALID_HANDLE;
    for (unsigned other = 0; other < KINDS; ++other) {
      EXPECT(other == kind, PtlHandleIsEqual(nis[kind], nis[other]) != 0);
    }
    EXPECT(PTL_OK, PtlNIHandle(nis[kind], &owner));
    EXPECT(nis[kind], owner);
    EXPECT(PTL_OK, PtlGetPhysId(nis[kind], &id));
    EXPECT(1, id.phys.nid == first.phys.nid && id.phys.pid == first.phys.pid);
    if ((kinds[kind] & PTL_NI_PHYSICAL) != 0) {
      EXPECT(PTL_OK, PtlGetId(nis[kind], &id));
      EXPECT(1, id.phys.nid == first.phys.nid && id.phys.pid == first.phys.pid);
    }
    EXPECT(1, l->max_entries >= 1024 && l->max_unexpected_headers >= 1024 && l->max_mds >= 1024);
    EXPECT(1, l->max_cts >= 1024 && l->max_eqs >= 1024 && l->max_iovecs >= 1024 && l->max_list_size >= 1024);
    EXPECT(1, l->max_triggered_ops >= 1024 && l->max_msg_size >= 1 << 30 && l->max_atomic_size >= 512);
    EXPECT(1, l->max_pt_index >= 63 && l->max_waw_ordered_size >= 64 && l->max_war_ordered_size >= 8);
    EXPECT(PTL_OK, PtlNIInit(0, kinds[kind], PTL_PID_ANY, NULL, NULL, &again));
    EXPECT(nis[kind], again);
    EXPECT(PTL_OK, PtlNIFini(again));
  }
}

/* Rules: P4F-3.10, P4F-3.11, P4F-3.12. */
static void opened_twice(void) {
  const ptl_ni_limits_t small = {.max_entries = 1, .max_mds = 1, .max_cts = 1, .max_eqs = 1};
  ptl_ni_limits_t actual;
  ptl_handle_ct_t first, second;
  ptl_handle_ni_t again;
  memset(&actual, 0xee, sizeof actual);
  MUST(PtlCTAlloc(nis[0], &first));
  EXPECT(PTL_OK, PtlNIInit(PTL_IFACE_DEFAULT, kinds[0], PTL_PID_ANY, &small, &actual, &again));
  EXPECT(nis[0], again);
  EXPECT(0, memcmp(&actual, &usual[0], sizeof actual));
  EXPECT(PTL_OK, PtlCTAlloc(nis[0], &second));
  EXPECT(PTL_OK, PtlNIFini(again));
  EXPECT(PTL_OK, PtlCTFree(first));
  EXPECT(PTL_OK, PtlCTFree(second));
  again = opened(0, NULL, NULL);
  EXPECT(PTL_OK, PtlNIFini(again));
  EXPECT(PTL_OK, PtlNIFini(again));
  EXPECT(PTL_ARG_INVALID, PtlNIFini(again));
  nis[0] = opened(0, NULL, NULL);
}

/* Rules: P4F-3.37, P4F-3.40. */
static void owners(void) {
  for (unsigned kind = 0; kind < KINDS; ++kind) {
    const ptl_md_t what = {.start = out, .length = SIZE, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    ptl_handle_any_t made[4], owner;
    ptl_pt_index_t pt;
    MUST(PtlMDBind(nis[kind], &what, &made[0]));
    MUST(PtlCTAlloc(nis[kind], &made[1]));
    MUST(PtlEQAlloc(nis[kind], 1, &made[2]));
    MUST(PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, 5, &pt));
    MUST(append(kind, nis[kind], 5, entry_of(memory, SIZE, made[1]), PTL_PRIORITY_LIST, &made[3]));
    for (unsigned i = 0; i < 4; ++i) {
      owner = PTL_INVALID_HANDLE;
      EXPECT(PTL_OK, PtlNIHandle(made[i], &owner));
      EXPECT(nis[kind], owner);
      EXPECT(0, PtlHandleIsEqual(made[i], made[(i + 1) % 4]));
    }
    MUST(is_matching(kind) ? PtlMEUnlink(made[3]) : PtlLEUnlink(made[3]));
    MUST(PtlPTFree(nis[kind], 5));
    MUST(PtlEQFree(made[2]));
    MUST(PtlCTFree(made[1]));
    MUST(PtlMDRelease(made[0]));
  }
}

/* Rules: P4F-3.19, P4F-6.5, P4F-6.11, P4F-7.9, P4F-7.10, P4F-7.11, P4F-10.2, P4F-11.2, P4F-14.15, P4F-15.7,
 * P4F-15.8, P4F-22.3. */
static void limits_hold(unsigned kind) {
  const ptl_ni_limits_t wanted = {.max_entries = 3,
                                  .max_unexpected_headers = 2,
                                  .max_mds = 2,
                                  .max_cts = 3,
                                  .max_eqs = 2,
                                  .max_pt_index = 63,
                                  .max_iovecs = 2,
                                  .max_list_size = 2,
                                  .max_triggered_ops = 2,
                                  .max_msg_size = 40,
                                  .max_atomic_size = 16,
                                  .max_fetch_atomic_size = 8};
  const ptl_ct_event_t one = {1, 0};
  ptl_ni_limits_t granted;
  ptl_handle_any_t md[2], eq[2], ct[3], entries[3], none;
  ptl_pt_index_t pt;
  const ptl_handle_ni_t at = opened(kind, &wanted, &granted);
  EXPECT(1, granted.max_entries == 3 && granted.max_unexpected_headers == 2 && granted.max_mds == 2);
  EXPECT(1, granted.max_cts == 3 && granted.max_eqs == 2 && granted.max_iovecs == 2 && granted.max_list_size == 2);
  EXPECT(1, granted.max_triggered_ops == 2 && granted.max_msg_size == 40);
  EXPECT(1, granted.max_atomic_size == 16 && granted.max_fetch_atomic_size == 8);
  for (unsigned i = 0; i < 3; ++i) MUST(PtlCTAlloc(at, &ct[i]));
  EXPECT(PTL_NO_SPACE, PtlCTAlloc(at, &none));
  for (unsigned i = 0; i < 2; ++i) MUST(PtlEQAlloc(at, 4, &eq[i]));
  EXPECT(PTL_NO_SPACE, PtlEQAlloc(at, 4, &none));
  ptl_iovec_t pieces[3] = {{out, 8}, {out + 8, 8}, {out + 16, 8}};
  ptl_md_t what = {
      .start = pieces, .length = 3, .options = PTL_IOVEC, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  EXPECT(PTL_ARG_INVALID, PtlMDBind(at, &what, &md[0]));
  what.length = 2;
  MUST(PtlMDBind(at, &what, &md[0]));
  what.start = out;
  what.length = SIZE;
  what.options = 0;
  MUST(PtlMDBind(at, &what, &md[1]));
  EXPECT(PTL_NO_SPACE, PtlMDBind(at, &what, &none));
  MUST(PtlPTAlloc(at, 0, PTL_EQ_NONE, 0, &pt));
  ptl_me_t me = entry_of(pieces, 3, ct[0]);
  me.options |= PTL_IOVEC;
  EXPECT(PTL_ARG_INVALID, append(kind, at, 0, me, PTL_PRIORITY_LIST, &none));
  me = entry_of(memory, SIZE, ct[0]);
  MUST(append(kind, at, 0, me, PTL_PRIORITY_LIST, &entries[0]));
  MUST(append(kind, at, 0, me, PTL_PRIORITY_LIST, &entries[1]));
  EXPECT(PTL_NO_SPACE, append(kind, at, 0, me, PTL_PRIORITY_LIST, &none)); /* the list */
  MUST(append(kind, at, 0, me, PTL_OVERFLOW_LIST, &entries[2]));
  EXPECT(PTL_NO_SPACE, append(kind, at, 0, me, PTL_OVERFLOW_LIST, &none)); /* the interface */
  MUST(is_matching(kind) ? PtlMEUnlink(entries[2]) : PtlLEUnlink(entries[2]));
  MUST(append(kind, at, 0, me, PTL_OVERFLOW_LIST, &entries[2]));

  /* Two operations may wait for a counter; what finds no space keeps neither descriptor nor counter. */
  const ptl_process_t to = own_id(at);
  EXPECT(PTL_ARG_INVALID, PtlPut(md[1], 0, 41, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0));
  EXPECT(PTL_OK, PtlPut(md[1], 0, 40, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0));
  EXPECT(PTL_ARG_INVALID, PtlAtomic(md[1], 0, 24, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_OK, PtlAtomic(md[1], 0, 16, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  EXPECT(PTL_ARG_INVALID, PtlFetchAtomic(md[1], 0, md[1], 0, 16, to, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
  for (unsigned i = 0; i < 2; ++i) {
    EXPECT(PTL_OK, PtlTriggeredPut(md[0], 0, 8, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0, ct[1], 9));
  }
  EXPECT(PTL_NO_SPACE, PtlTriggeredPut(md[1], 0, 8, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0, ct[1], 9));
  EXPECT(PTL_NO_SPACE, PtlTriggeredGet(md[1], 0, 8, to, 0, 0, 0, NULL, ct[1], 9));
  EXPECT(PTL_NO_SPACE,
         PtlTriggeredAtomic(md[1], 0, 8, PTL_NO_ACK_REQ, to, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, ct[1], 9));
  EXPECT(PTL_NO_SPACE,
         PtlTriggeredFetchAtomic(md[1], 0, md[1], 8, 8, to, 0, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T, ct[1], 9));
  EXPECT(PTL_NO_SPACE,
         PtlTriggeredSwap(md[1], 0, md[1], 8, 8, to, 0, 0, 0, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T, ct[1], 9));
  EXPECT(PTL_OK, PtlTriggeredCTInc(ct[2], one, ct[1], 9));
  EXPECT(PTL_OK, PtlTriggeredCTSet(ct[2], one, ct[1], 9));
  ptl_ct_event_t count;
  MUST(PtlCTWait(ct[0], 2, &count)); /* the put and the atomic have ended */
  while (PtlMDRelease(md[1]) == PTL_ARG_INVALID) MUST(PtlCTGet(ct[0], &count));
  EXPECT(PTL_ARG_INVALID, PtlMDRelease(md[0]));
  EXPECT(PTL_OK, PtlCTFree(ct[1]));
  EXPECT(PTL_OK, PtlMDRelease(md[0]));
  EXPECT(PTL_OK, PtlNIFini(at));
}

/* Rules: P4F-3.18, P4F-3.23. */
static void wishes(void) {
  static const int all_bytes[] = {0, 0xff, 0x7f, 0xa5};
  for (unsigned i = 0; i < 4; ++i) {
    ptl_ni_limits_t wanted, granted;
    memset(&wanted, all_bytes[i], sizeof wanted);
    memset(&granted, 0xee, sizeof granted);
    const ptl_handle_ni_t at = opened(3, &wanted, &granted);
    EXPECT(1, granted.max_pt_index >= 63 && granted.max_waw_ordered_size >= 64 && granted.max_war_ordered_size >= 8);
    EXPECT(1, granted.max_entries >= 0 && granted.max_mds >= 0 && granted.max_eqs >= 0 && granted.max_iovecs >= 0);
    EXPECT(PTL_TARGET_BIND_INACCESSIBLE, granted.features & PTL_TARGET_BIND_INACCESSIBLE);
    EXPECT(0, granted.features & PTL_TOTAL_DATA_ORDERING); /* it is not there, wished or not */
    EXPECT(PTL_OK, PtlNIFini(at));
  }
}

/* Rules: P4F-4.2, P4F-4.5, P4F-4.6, P4F-4.8, P4F-4.9, P4F-4.10, P4F-4.11, P4F-4.12, P4F-4.13,
 * P4F-4.19. */
static void maps(void) {
  ptl_process_t map[3], found[4];
  ptl_size_t size = 99;
  MUST(PtlGetPhysId(nis[0], &map[0]));
  const ptl_process_t me = map[0];
  map[1] = map[0];
  EXPECT(PTL_ARG_INVALID, PtlSetMap(nis[1], 2, map));
  EXPECT(PTL_ARG_INVALID, PtlSetMap(nis[0], 0, map));
  const ptl_process_t nobodies[] = {{.phys = {me.phys.nid, me.phys.pid + 1}},
                                    {.phys = {me.phys.nid, PTL_PID_ANY}},
                                    {.phys = {me.phys.nid, 0}},
                                    {.phys = {PTL_NID_ANY, me.phys.pid}},
                                    {.phys = {me.phys.nid + 1, me.phys.pid}}}; /* there is one node */
  for (unsigned i = 0; i < 5; ++i) {
    map[1] = nobodies[i];
    EXPECT(PTL_ARG_INVALID, PtlSetMap(nis[0], 2, map));
    EXPECT(PTL_ARG_INVALID, PtlSetMap(nis[0], 1, map + 1));
  }
  map[1] = me;
  EXPECT(PTL_OK, PtlSetMap(nis[0], 2, map));
  EXPECT(1, own_id(nis[0]).rank);
  memset(map, 0, sizeof map);
  memset(found, 0xee, sizeof found);
  EXPECT(PTL_OK, PtlGetMap(nis[0], 0, NULL, &size));
  EXPECT(2, size);
  EXPECT(PTL_OK, PtlGetMap(nis[0], 1, found, &size));
  EXPECT(2, size);
  EXPECT(1, found[0].phys.nid == me.phys.nid && found[0].phys.pid == me.phys.pid);
  EXPECT(0xeeeeeeee, found[1].phys.nid);
  EXPECT(PTL_OK, PtlGetMap(nis[0], 4, found, NULL));
  EXPECT(1, found[1].phys.nid == me.phys.nid && found[1].phys.pid == me.phys.pid);
  EXPECT(0xeeeeeeee, found[2].phys.nid);
  map[0] = me;
  EXPECT(PTL_IGNORED, PtlSetMap(nis[0], 1, map));
  EXPECT(1, own_id(nis[0]).rank);
  EXPECT(PTL_OK, PtlGetMap(nis[0], 0, NULL, &size));
  EXPECT(2, size);
}

/* Rules: P4F-4.18, P4F-5.3, P4F-5.5, P4F-5.6, P4F-5.7. */
static void portal_tables(void) {
  for (unsigned kind = 0; kind < KINDS; ++kind) {
    const ptl_pt_index_t last = (ptl_pt_index_t)usual[kind].max_pt_index;
    ptl_pt_index_t got = 99;
    MUST(PtlNIFini(nis[kind]));
    nis[kind] = opened(kind, NULL, NULL); /* nothing was allocated yet */
    for (ptl_pt_index_t pt = 0; pt < 3; ++pt) {
      EXPECT(PTL_OK, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, PTL_PT_ANY, &got));
      EXPECT(pt, got);
    }
    EXPECT(PTL_OK, PtlPTFree(nis[kind], 1));
    EXPECT(PTL_OK, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, PTL_PT_ANY, &got));
    EXPECT(3, got);
    EXPECT(PTL_OK, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, last, &got));
    EXPECT(PTL_PT_IN_USE, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, last, &got));
    EXPECT(PTL_OK, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, PTL_PT_ANY, &got));
    EXPECT(1, got);
    unsigned others = 0;
    for (; PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, PTL_PT_ANY, &got) == PTL_OK; ++others) EXPECT(4 + others, got);
    EXPECT(last - 4, others);
    EXPECT(PTL_PT_FULL, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, PTL_PT_ANY, &got));
    EXPECT(PTL_OK, PtlPTFree(nis[kind], 7));
    EXPECT(PTL_OK, PtlPTAlloc(nis[kind], 0, PTL_EQ_NONE, PTL_PT_ANY, &got));
    EXPECT(7, got);
  }
}

/* Rules: P4F-4.17, P4F-4.18, P4F-8.4. */
static void messages_stay_apart(void) {
  ptl_handle_ct_t landed[KINDS], acked;
  ptl_ct_event_t count;
  ptl_handle_md_t md;
  for (unsigned kind = 0; kind < KINDS; ++kind) {
    ptl_handle_me_t made;
    MUST(PtlCTAlloc(nis[kind], &landed[kind]));
    MUST(append(kind, nis[kind], 2, entry_of(memory, SIZE, landed[kind]), PTL_PRIORITY_LIST, &made));
  }
  for (unsigned from = 0; from < KINDS; ++from) {
    MUST(PtlCTAlloc(nis[from], &acked));
    const ptl_md_t what = {
        .start = out, .length = 8, .options = PTL_MD_EVENT_CT_ACK, .eq_handle = PTL_EQ_NONE, .ct_handle = acked};
    MUST(PtlMDBind(nis[from], &what, &md));
    /* On interfaces without matching the bits do not matter. */
    const ptl_match_bits_t bits = is_matching(from) ? 0 : 1234567;
    MUST(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, own_id(nis[from]), 2, bits, 0, NULL, 0));
    MUST(PtlCTWait(acked, 1, &count));
    EXPECT(0, count.failure);
    for (unsigned to = 0; to < KINDS; ++to) {
      MUST(PtlCTGet(landed[to], &count));
      EXPECT(to <= from, count.success);
    }
  }
}

/* Rules: P4F-3.41. */
static void left_behind(unsigned kind) {
  const ptl_ct_event_t one = {1, 0};
  for (int times = 0; times < 3; ++times) {
    const ptl_handle_ni_t at = opened(kind, NULL, NULL);
    ptl_handle_any_t md, eq, go, sent, made;
    ptl_pt_index_t pt;
    ptl_ct_event_t count;
    MUST(PtlEQAlloc(at, 8, &eq));
    MUST(PtlCTAlloc(at, &go));
    MUST(PtlCTAlloc(at, &sent));
    const ptl_md_t what = {
        .start = out, .length = 8, .options = PTL_MD_EVENT_CT_SEND, .eq_handle = eq, .ct_handle = sent};
    MUST(PtlMDBind(at, &what, &md));
    EXPECT(PTL_OK, PtlPTAlloc(at, 0, eq, 0, &pt)); /* the one before is gone */
    MUST(append(kind, at, pt, entry_of(memory, SIZE, sent), PTL_OVERFLOW_LIST, &made));
    for (int i = 0; i < 1024; ++i) {
      MUST(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, own_id(at), pt, 0, 0, NULL, 0, go, 1));
    }
    EXPECT(PTL_NO_SPACE, PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, own_id(at), pt, 0, 0, NULL, 0, go, 1));
    MUST(PtlCTInc(go, one));
    MUST(PtlCTWait(sent, 1024, &count));
    EXPECT(PTL_OK, PtlNIFini(at));
    EXPECT(PTL_ARG_INVALID, PtlCTGet(go, &count));
    EXPECT(PTL_ARG_INVALID, PtlMDRelease(md));
  }
}

/* Puts of the process to itself are under way when its interface ends, behind a long one that nothing takes: none of
 * them meets what the next interface has. */
/* Rules: P4F-3.42. */
static void under_way(unsigned kind) {
  enum { PT = 6, NOWHERE = 7, PUTS = 20, LONG = 4 << 20 };
  static uint64_t in[PUTS], values[4];
  static char nothing[LONG];
  for (uint64_t times = 1; times < 4; ++times) {
    const ptl_handle_ni_t at = opened(kind, NULL, NULL);
    ptl_handle_any_t md, long_md, landed, acked, made;
    ptl_pt_index_t pt;
    ptl_ct_event_t count;
    ptl_sr_value_t dropped = 99;
    memset(in, 0, sizeof in);
    MUST(PtlCTAlloc(at, &landed));
    MUST(PtlCTAlloc(at, &acked));
    const ptl_md_t what = {.start = &values[times],
                           .length = 8,
                           .options = PTL_MD_EVENT_CT_ACK,
                           .eq_handle = PTL_EQ_NONE,
                           .ct_handle = acked};
    const ptl_md_t all = {.start = nothing, .length = LONG, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
    values[times] = times;
    MUST(PtlMDBind(at, &what, &md));
    MUST(PtlMDBind(at, &all, &long_md));
    MUST(PtlPTAlloc(at, 0, PTL_EQ_NONE, PT, &pt));
    MUST(append(kind, at, PT, entry_of(in, sizeof in, landed), PTL_PRIORITY_LIST, &made));
    MUST(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, own_id(at), PT, 0, 0, NULL, 0));
    MUST(PtlCTWait(acked, 1, &count)); /* it is behind those of the interface before */
    MUST(PtlCTGet(landed, &count));
    EXPECT(1, count.success);
    EXPECT(times, in[0]);
    for (unsigned i = 1; i < PUTS; ++i) EXPECT(0, in[i]);
    MUST(PtlNIStatus(at, PTL_SR_DROP_COUNT, &dropped));
    EXPECT(0, dropped);
    MUST(PtlPut(long_md, 0, LONG, PTL_NO_ACK_REQ, own_id(at), NOWHERE, 0, 0, NULL, 0));
    for (unsigned i = 0; i < PUTS; ++i) MUST(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, own_id(at), PT, 0, 8 * i, NULL, 0));
    EXPECT(PTL_OK, PtlNIFini(at));
  }
}

/* Rules: P4F-3.2, P4F-3.4. */
static void library_ends(void) {
  ptl_uid_t uid;
  ptl_ct_event_t count;
  ptl_handle_ni_t made;
  PtlFini();
  EXPECT(PTL_NO_INIT, PtlGetUid(nis[0], &uid));
  EXPECT(PTL_NO_INIT, PtlCTGet(0, &count));
  EXPECT(PTL_NO_INIT, PtlNIFini(nis[0]));
  EXPECT(PTL_NO_INIT, PtlNIInit(PTL_IFACE_DEFAULT, kinds[0], PTL_PID_ANY, NULL, NULL, &made));
  EXPECT(PTL_FAIL, PtlInit());
}

int main(void) {
  library();
  wishes();
  limits_hold(2);
  limits_hold(3);
  limits_hold(1);
  left_behind(0);
  left_behind(3);
  under_way(0);
  under_way(3);
  all_kinds();
  opened_twice();
  owners();
  maps();
  portal_tables();
  messages_stay_apart();
  library_ends();
  printf("rank 0: %d answers\n", answers);
  fflush(stdout);
  return wrong == 0 ? 0 : 1;
}
