/* Events and counts: which come for each operation, where, and what they say. One rank, which is rank 1 of a map of its
 * own, so that no field is right because it is 0. */
#include "portals_common.h"

enum { PT = 11, SIZE = 64, AT = 16, ASKED = 24, GIVEN = 20 }; /* entries have AT + GIVEN bytes */
enum { BITS = 0x123456789, DATA = 0x987654321 };
enum kind { PUT, GET, ATOMIC, FETCH_ATOMIC, SWAP, KINDS };
static const ptl_event_kind_t taken[KINDS] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC, PTL_EVENT_FETCH_ATOMIC,
                                              PTL_EVENT_FETCH_ATOMIC};

static ptl_handle_ni_t physical;
static ptl_handle_eq_t put_eq, get_eq, target_eq;
static ptl_handle_ct_t put_ct, get_ct;
static ptl_handle_md_t put_md, get_md;
static char memory[SIZE], out[SIZE], in[SIZE];
static int first_user, second_user, operation_user;

static ptl_me_t entry(ptl_match_bits_t bits, unsigned options) {
  ptl_me_t me = {.start = memory,
                 .length = AT + GIVEN,
                 .ct_handle = PTL_CT_NONE,
                 .uid = PTL_UID_ANY,
                 .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | options,
                 .match_id = {.rank = PTL_RANK_ANY},
                 .match_bits = bits};
  return me;
}

static ptl_handle_me_t append(const ptl_me_t* me, ptl_list_t list, void* user) {
  ptl_handle_me_t made;
  MUST(PtlMEAppend(ni, PT, me, list, user, &made));
  return made;
}

static ptl_event_t next(ptl_handle_eq_t eq) {
  ptl_event_t event;
  memset(&event, 0, sizeof event);
  MUST(PtlEQWait(eq, &event));
  return event;
}

static void expect_nothing(int line) {
  ptl_event_t event;
  const ptl_handle_eq_t all[] = {put_eq, get_eq, target_eq};
  for (unsigned i = 0; i < 3; ++i) expect(line, "an event more", PTL_EQ_EMPTY, (unsigned)PtlEQGet(all[i], &event));
}
#define EXPECT_NOTHING() expect_nothing(__LINE__)

static void expect_count(int line, ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure) {
  ptl_ct_event_t count;
  MUST(PtlCTGet(ct, &count));
  expect(line, "successes", success, count.success);
  expect(line, "failures", failure, count.failure);
  MUST(PtlCTSet(ct, (ptl_ct_event_t){0, 0}));
}
#define EXPECT_COUNT(...) expect_count(__LINE__, __VA_ARGS__)

static ptl_size_t length_of(enum kind kind) { return kind == GET ? ASKED + 2 : ASKED; }

static void start(enum kind kind, ptl_match_bits_t bits, ptl_ack_req_t ack, ptl_size_t length) {
  const ptl_process_t to = rank_of(1);
  void* const user = &operation_user;
  switch (kind) {
    case PUT: MUST(PtlPut(put_md, 1, length, ack, to, PT, bits, AT, user, DATA)); break;
    case GET: MUST(PtlGet(get_md, 2, length, to, PT, bits, AT, user)); break;
    case ATOMIC: MUST(PtlAtomic(put_md, 1, length, ack, to, PT, bits, AT, user, DATA, PTL_BOR, PTL_INT32_T)); break;
    case FETCH_ATOMIC:
      MUST(PtlFetchAtomic(get_md, 2, put_md, 1, length, to, PT, bits, AT, user, DATA, PTL_BOR, PTL_INT32_T));
      break;
    default: MUST(PtlSwap(get_md, 2, put_md, 1, length, to, PT, bits, AT, user, DATA, NULL, PTL_SWAP, PTL_INT32_T));
  }
}

/* Checks what a message's event says at its target, whatever its kind. */
static void expect_message(int line, enum kind kind, const ptl_event_t* event, const void* user, ptl_list_t list) {
  ptl_uid_t uid;
  MUST(PtlGetUid(ni, &uid));
  expect(line, "start", (unsigned long long)(memory + AT), (unsigned long long)event->start);
  expect(line, "user_ptr", (unsigned long long)user, (unsigned long long)event->user_ptr);
  expect(line, "match_bits", BITS, event->match_bits);
  expect(line, "rlength", length_of(kind), event->rlength);
  expect(line, "mlength", GIVEN, event->mlength);
  expect(line, "remote_offset", AT, event->remote_offset);
  expect(line, "initiator", 1, event->initiator.rank);
  expect(line, "uid", uid, event->uid);
  expect(line, "pt_index", PT, event->pt_index);
  expect(line, "ptl_list", list, event->ptl_list);
  expect(line, "ni_fail_type", PTL_NI_OK, event->ni_fail_type);
  if (kind != GET) expect(line, "hdr_data", DATA, event->hdr_data);
  if (kind != ATOMIC && kind != FETCH_ATOMIC && kind != SWAP) return;
  expect(line, "atomic_operation", kind == SWAP ? PTL_SWAP : PTL_BOR, event->atomic_operation);
  expect(line, "atomic_type", PTL_INT32_T, event->atomic_type);
}
#define EXPECT_MESSAGE(...) expect_message(__LINE__, __VA_ARGS__)

/* Checks what the last event of an operation says at its initiator. */
static void expect_end(int line, enum kind kind, ptl_list_t list) {
  const int replies = kind != PUT && kind != ATOMIC;
  const ptl_event_t event = next(replies ? get_eq : put_eq);
  expect(line, "its kind", replies ? PTL_EVENT_REPLY : PTL_EVENT_ACK, event.type);
  expect(line, "user_ptr", (unsigned long long)&operation_user, (unsigned long long)event.user_ptr);
  expect(line, "mlength", GIVEN, event.mlength);
  expect(line, "remote_offset", AT, event.remote_offset);
  expect(line, "ptl_list", list, event.ptl_list);
  expect(line, "ni_fail_type", PTL_NI_OK, event.ni_fail_type);
}
#define EXPECT_END(...) expect_end(__LINE__, __VA_ARGS__)

static void expect_sent(int line) {
  const ptl_event_t event = next(put_eq);
  expect(line, "its kind", PTL_EVENT_SEND, event.type);
  expect(line, "user_ptr", (unsigned long long)&operation_user, (unsigned long long)event.user_ptr);
  expect(line, "ni_fail_type", PTL_NI_OK, event.ni_fail_type);
}
#define EXPECT_SENT() expect_sent(__LINE__)

static void expect_entry(int line, ptl_event_kind_t kind, const void* user) {
  const ptl_event_t event = next(target_eq);
  expect(line, "its kind", kind, event.type);
  expect(line, "user_ptr", (unsigned long long)user, (unsigned long long)event.user_ptr);
  expect(line, "pt_index", PT, event.pt_index);
  expect(line, "ni_fail_type", PTL_NI_OK, event.ni_fail_type);
}
#define EXPECT_ENTRY(...) expect_entry(__LINE__, __VA_ARGS__)

/* Rules: P4F-4.15, P4F-6.13, P4F-6.14, P4F-6.15, P4F-7.69, P4F-7.70, P4F-8.12, P4F-8.13, P4F-11.9,
 * P4F-11.10, P4F-11.12, P4F-11.16, P4F-11.17, P4F-11.18, P4F-11.19, P4F-11.20, P4F-11.21, P4F-11.27, P4F-13.1,
 * P4F-13.2, P4F-13.3, P4F-13.7, P4F-13.9, P4F-13.10, P4F-13.11, P4F-13.12, P4F-13.16. */
static void expected_messages(void) {
  for (enum kind kind = PUT; kind < KINDS; ++kind) {
    const ptl_me_t me = entry(BITS, 0);
    const ptl_handle_me_t stays = append(&me, PTL_PRIORITY_LIST, &first_user);
    EXPECT_ENTRY(PTL_EVENT_LINK, &first_user);
    start(kind, BITS, PTL_ACK_REQ, length_of(kind));
    if (kind != GET) EXPECT_SENT();
    EXPECT_END(kind, PTL_PRIORITY_LIST);
    const ptl_event_t event = next(target_eq);
    EXPECT(taken[kind], event.type);
    EXPECT_MESSAGE(kind, &event, &first_user, PTL_PRIORITY_LIST);
    /* The descriptor for puts counts departures and acknowledgements, the one for gets replies. */
    EXPECT_COUNT(put_ct, kind == GET ? 0 : kind == PUT || kind == ATOMIC ? 2 : 1, 0);
    EXPECT_COUNT(get_ct, kind == PUT || kind == ATOMIC ? 0 : 1, 0);
    EXPECT(PTL_OK, PtlMEUnlink(stays));
    EXPECT_NOTHING();
  }
}

/* Rules: P4F-7.58, P4F-7.59, P4F-7.62, P4F-7.63, P4F-7.64, P4F-7.78, P4F-7.79, P4F-7.80, P4F-8.9,
 * P4F-8.14, P4F-8.15, P4F-9.5, P4F-9.6, P4F-13.4, P4F-13.5, P4F-13.7, P4F-13.10, P4F-13.11. */
static void unexpected_messages(void) {
  for (enum kind kind = PUT; kind < KINDS; ++kind) {
    const ptl_me_t me = entry(BITS, PTL_ME_USE_ONCE), elsewhere = entry(BITS + 1, 0);
    const ptl_handle_me_t aside = append(&elsewhere, PTL_PRIORITY_LIST, NULL);
    next(target_eq);
    append(&me, PTL_OVERFLOW_LIST, &first_user);
    EXPECT_ENTRY(PTL_EVENT_LINK, &first_user);
    start(kind, BITS, PTL_ACK_REQ, length_of(kind));
    if (kind != GET) EXPECT_SENT();
    EXPECT_END(kind, PTL_OVERFLOW_LIST);
    ptl_event_t event = next(target_eq);
    EXPECT(taken[kind], event.type);
    EXPECT_MESSAGE(kind, &event, &first_user, PTL_OVERFLOW_LIST);
    EXPECT_ENTRY(PTL_EVENT_AUTO_UNLINK, &first_user);
    EXPECT_NOTHING();
    EXPECT(PTL_OK, PtlMESearch(ni, PT, &me, PTL_SEARCH_ONLY, &second_user));
    event = next(target_eq);
    EXPECT(PTL_EVENT_SEARCH, event.type);
    EXPECT_MESSAGE(kind, &event, &second_user, PTL_OVERFLOW_LIST);
    EXPECT_NOTHING();
    const ptl_handle_me_t dead = append(&me, PTL_PRIORITY_LIST, &second_user);
    event = next(target_eq);
    EXPECT(taken[kind] + 1, event.type); /* each overflow event follows its kind */
    EXPECT_MESSAGE(kind, &event, &second_user, PTL_OVERFLOW_LIST);
    EXPECT_ENTRY(PTL_EVENT_AUTO_FREE, &first_user);
    EXPECT_ENTRY(PTL_EVENT_AUTO_UNLINK, &second_user);
    EXPECT_NOTHING();
    EXPECT(PTL_ARG_INVALID, PtlMEUnlink(dead));
    EXPECT(PTL_OK, PtlMEUnlink(aside));
    EXPECT_COUNT(put_ct, kind == GET ? 0 : kind == PUT || kind == ATOMIC ? 2 : 1, 0);
    EXPECT_COUNT(get_ct, kind == PUT || kind == ATOMIC ? 0 : 1, 0);
  }
}

/* Rules: P4F-9.7, P4F-9.8, P4F-9.20, P4F-13.6. */
static void searches_that_find_nothing(void) {
  static const unsigned disabled = PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
  for (unsigned how = 0; how < 4; ++how) {
    const ptl_search_op_t search = how % 2 == 0 ? PTL_SEARCH_ONLY : PTL_SEARCH_DELETE;
    ptl_me_t me = entry(BITS, how < 2 ? PTL_ME_USE_ONCE : 0);
    if (search == PTL_SEARCH_DELETE) me.options |= disabled | PTL_ME_EVENT_COMM_DISABLE;
    EXPECT(PTL_OK, PtlMESearch(ni, PT, &me, search, &second_user));
    const ptl_event_t event = next(target_eq);
    EXPECT(PTL_EVENT_SEARCH, event.type);
    EXPECT(&second_user, event.user_ptr);
    EXPECT(PT, event.pt_index);
    EXPECT(PTL_NI_NO_MATCH, event.ni_fail_type);
    EXPECT_NOTHING();
  }
}

static ptl_handle_eq_t small_eq;

/* Rules: P4F-13.8. */
static void disabled_portal(void) {
  ptl_pt_index_t pt;
  MUST(PtlEQAlloc(ni, 4, &small_eq));
  MUST(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, small_eq, PT + 1, &pt));
  MUST(PtlPut(put_md, 0, 8, PTL_ACK_REQ, rank_of(1), pt, 0, 0, NULL, 0));
  EXPECT(PTL_NI_PT_DISABLED, ended(put_eq));
  const ptl_event_t event = next(small_eq);
  EXPECT(PTL_EVENT_PT_DISABLED, event.type);
  EXPECT(PT + 1, event.pt_index);
  EXPECT(PTL_NI_PT_DISABLED, event.ni_fail_type);
  EXPECT_COUNT(put_ct, 1, 1);
}

/* Rules: P4F-6.12, P4F-11.8, P4F-11.11, P4F-11.13, P4F-11.14, P4F-11.15, P4F-11.23, P4F-11.24, P4F-11.25,
 * P4F-11.26. */
static void answers_asked_for(void) {
  const ptl_me_t me = entry(BITS, PTL_ME_EVENT_LINK_DISABLE);
  const ptl_handle_me_t stays = append(&me, PTL_PRIORITY_LIST, NULL);
  ptl_ct_event_t count;
  for (enum kind kind = PUT; kind <= ATOMIC; kind = kind == PUT ? ATOMIC : KINDS) {
    for (ptl_ack_req_t ack = PTL_CT_ACK_REQ; ack <= PTL_OC_ACK_REQ; ++ack) {
      for (ptl_size_t length = 0; length <= ASKED; length += ASKED) {
        start(kind, BITS, ack, length);
        MUST(PtlCTWait(put_ct, 2, &count));
        EXPECT(taken[kind], next(target_eq).type);
        EXPECT_SENT();
        EXPECT_NOTHING();
        EXPECT_COUNT(put_ct, 2, 0);
      }
      start(kind, BITS + 7, ack, ASKED); /* nothing takes it */
      do {
        MUST(PtlCTGet(put_ct, &count));
      } while (count.failure == 0 || count.success == 0);
      EXPECT_SENT();
      EXPECT_NOTHING();
      EXPECT_COUNT(put_ct, 1, 1);
    }
    /* Without a request there is the departure only; the next operation's end says that the first has ended. */
    start(kind, BITS, PTL_NO_ACK_REQ, ASKED);
    start(kind, BITS + 7, PTL_NO_ACK_REQ, ASKED);
    EXPECT_SENT();
    EXPECT_SENT();
    start(GET, BITS + 7, PTL_NO_ACK_REQ, ASKED);
    ptl_event_t event = next(get_eq);
    EXPECT(PTL_EVENT_REPLY, event.type);
    EXPECT(PTL_NI_DROPPED, event.ni_fail_type);
    EXPECT(0, event.mlength);
    EXPECT(taken[kind], next(target_eq).type);
    EXPECT_NOTHING();
    EXPECT_COUNT(put_ct, 2, 0);
    EXPECT_COUNT(get_ct, 0, 1);
    start(kind, BITS + 7, PTL_ACK_REQ, ASKED);
    EXPECT_SENT();
    event = next(put_eq);
    EXPECT(PTL_EVENT_ACK, event.type);
    EXPECT(PTL_NI_DROPPED, event.ni_fail_type);
    EXPECT(0, event.mlength);
    EXPECT_COUNT(put_ct, 1, 1);
  }
  start(GET, BITS, PTL_NO_ACK_REQ, 0);
  EXPECT(PTL_EVENT_REPLY, next(get_eq).type);
  EXPECT(PTL_EVENT_GET, next(target_eq).type);
  start(FETCH_ATOMIC, BITS, PTL_NO_ACK_REQ, 0);
  EXPECT(PTL_EVENT_REPLY, next(get_eq).type);
  EXPECT(PTL_EVENT_FETCH_ATOMIC, next(target_eq).type);
  EXPECT_SENT();
  EXPECT_COUNT(put_ct, 1, 0);
  EXPECT_COUNT(get_ct, 2, 0);
  /* An event queue alone, and a counter alone. */
  ptl_md_t alone = {.start = out, .length = SIZE, .eq_handle = put_eq, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t md;
  MUST(PtlMDBind(ni, &alone, &md));
  MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, rank_of(1), PT, BITS, 0, &operation_user, 0));
  EXPECT_SENT();
  EXPECT(PTL_EVENT_ACK, next(put_eq).type);
  EXPECT(PTL_OK, PtlMDRelease(md));
  alone.eq_handle = PTL_EQ_NONE;
  alone.ct_handle = put_ct;
  alone.options = PTL_MD_EVENT_CT_ACK;
  MUST(PtlMDBind(ni, &alone, &md));
  MUST(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, rank_of(1), PT, BITS, 0, NULL, 0));
  MUST(PtlCTWait(put_ct, 1, &count));
  EXPECT(PTL_OK, PtlMDRelease(md));
  for (int i = 0; i < 2; ++i) EXPECT(PTL_EVENT_PUT, next(target_eq).type);
  EXPECT_NOTHING();
  EXPECT_COUNT(put_ct, 1, 0);
  EXPECT(PTL_OK, PtlMEUnlink(stays));
}

/* Rules: P4F-8.6, P4F-8.7, P4F-13.15. */
static void processes(void) {
  ptl_handle_eq_t eq, own_eq;
  ptl_handle_md_t md;
  ptl_pt_index_t pt;
  ptl_process_t me;
  MUST(PtlEQAlloc(physical, 64, &eq));
  MUST(PtlEQAlloc(physical, 64, &own_eq));
  MUST(PtlPTAlloc(physical, 0, eq, PT, &pt));
  const ptl_md_t what = {.start = out, .length = SIZE, .eq_handle = own_eq, .ct_handle = PTL_CT_NONE};
  MUST(PtlMDBind(physical, &what, &md));
  MUST(PtlGetPhysId(physical, &me));
  const struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
    int takes;
  } rows[] = {{me.phys.nid, me.phys.pid, 1},     {PTL_NID_ANY, me.phys.pid, 1},     {me.phys.nid, PTL_PID_ANY, 1},
              {PTL_NID_ANY, PTL_PID_ANY, 1},     {me.phys.nid + 1, me.phys.pid, 0}, {me.phys.nid + 1, PTL_PID_ANY, 0},
              {me.phys.nid, me.phys.pid + 1, 0}, {PTL_NID_ANY, me.phys.pid + 1, 0}};
  for (unsigned i = 0; i < sizeof rows / sizeof *rows; ++i) {
    ptl_me_t from = entry(0, PTL_ME_EVENT_LINK_DISABLE);
    ptl_handle_me_t made;
    ptl_event_t event;
    from.match_id.phys.nid = rows[i].nid;
    from.match_id.phys.pid = rows[i].pid;
    MUST(PtlMEAppend(physical, PT, &from, PTL_PRIORITY_LIST, NULL, &made));
    MUST(PtlPut(md, 0, 8, PTL_ACK_REQ, me, PT, 0, 0, NULL, 0));
    EXPECT(rows[i].takes ? PTL_NI_OK : PTL_NI_DROPPED, ended(own_eq));
    EXPECT(PTL_OK, PtlMEUnlink(made));
    if (!rows[i].takes) continue;
    MUST(PtlEQWait(eq, &event));
    EXPECT(me.phys.nid, event.initiator.phys.nid);
    EXPECT(me.phys.pid, event.initiator.phys.pid);
  }
}

int main(void) {
  ptl_process_t map[2];
  ptl_pt_index_t pt;
  begin();
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &physical));
  MUST(PtlGetPhysId(ni, &map[0]));
  map[1] = map[0];
  MUST(PtlSetMap(ni, 2, map));
  MUST(PtlEQAlloc(ni, 64, &put_eq));
  MUST(PtlEQAlloc(ni, 64, &get_eq));
  MUST(PtlEQAlloc(ni, 64, &target_eq));
  MUST(PtlCTAlloc(ni, &put_ct));
  MUST(PtlCTAlloc(ni, &get_ct));
  MUST(PtlPTAlloc(ni, 0, target_eq, PT, &pt));
  const unsigned all = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK;
  const ptl_md_t puts = {.start = out, .length = SIZE, .options = all, .eq_handle = put_eq, .ct_handle = put_ct};
  const ptl_md_t gets = {
      .start = in, .length = SIZE, .options = PTL_MD_EVENT_CT_REPLY, .eq_handle = get_eq, .ct_handle = get_ct};
  MUST(PtlMDBind(ni, &puts, &put_md));
  MUST(PtlMDBind(ni, &gets, &get_md));
  expected_messages();
  unexpected_messages();
  searches_that_find_nothing();
  disabled_portal();
  answers_asked_for();
  processes();
  return end();
}
