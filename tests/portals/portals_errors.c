/* Wrong arguments: what each call returns for each of them. One rank. */
#include <portals4_spin.h>

#include "portals_common.h"

enum { PT = 3, OTHER_PT = 4, FREE_PT = 9, NOWHERE = 1000, SIZE = 64 };
enum kind { PUT, GET, ATOMIC, FETCH_ATOMIC, SWAP, KINDS };

static ptl_handle_ni_t other; /* an interface without matching */
static ptl_handle_eq_t eq, other_eq, gone_eq;
static ptl_handle_ct_t ct, other_ct, gone_ct;
static ptl_handle_md_t md, all_md, other_md, gone_md; /* md and all_md have neither a queue nor a counter */
static ptl_handle_me_t gone_me;
static char memory[SIZE];

#define BAD(call) EXPECT(PTL_ARG_INVALID, call)

static ptl_md_t description(void) {
  ptl_md_t made = {.start = memory, .length = SIZE, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  return made;
}

static ptl_me_t entry(void) {
  ptl_me_t made = {.start = memory,
                   .length = SIZE,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET,
                   .match_id = {.rank = PTL_RANK_ANY}};
  return made;
}

static void make_objects(void) {
  ptl_pt_index_t pt;
  ptl_md_t all = {.length = PTL_SIZE_MAX, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  ptl_md_t part = description();
  ptl_me_t me = entry();
  MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &other));
  MUST(PtlEQAlloc(ni, 4, &gone_eq));
  MUST(PtlEQFree(gone_eq));
  MUST(PtlCTAlloc(ni, &gone_ct));
  MUST(PtlCTFree(gone_ct));
  MUST(PtlEQAlloc(ni, 4, &eq));
  MUST(PtlEQAlloc(other, 4, &other_eq));
  MUST(PtlCTAlloc(ni, &ct));
  MUST(PtlCTAlloc(other, &other_ct));
  MUST(PtlMDBind(ni, &part, &gone_md));
  MUST(PtlMDRelease(gone_md));
  MUST(PtlMDBind(ni, &part, &md));
  MUST(PtlMDBind(ni, &all, &all_md));
  MUST(PtlMDBind(other, &part, &other_md));
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
  MUST(PtlPTAlloc(other, 0, PTL_EQ_NONE, OTHER_PT, &pt));
  MUST(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &gone_me));
  MUST(PtlMEUnlink(gone_me));
}

/* Rules: P4F-3.5, P4F-3.6, P4F-3.7, P4F-3.15. */
static void openings(void) {
  ptl_handle_ni_t opened;
  for (unsigned options = 0; options < 64; ++options) {
    const unsigned matching = options & (PTL_NI_MATCHING | PTL_NI_NO_MATCHING);
    const unsigned naming = options & (PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
    const int is_good = (matching == PTL_NI_MATCHING || matching == PTL_NI_NO_MATCHING) &&
                        (naming == PTL_NI_LOGICAL || naming == PTL_NI_PHYSICAL) && options == (matching | naming);
    if (!is_good) BAD(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &opened));
  }
  for (ptl_interface_t iface = 1; iface < 4; ++iface)
    BAD(PtlNIInit(iface, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &opened));
}

/* Rules: P4F-3.39, P4F-16.3. */
static void interfaces_that_are_none(void) {
  const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, 0, ct, eq, gone_ct};
  ptl_process_t id = rank_of(0);
  ptl_uid_t uid;
  ptl_size_t size;
  ptl_pt_index_t pt;
  ptl_handle_any_t made;
  ptl_sr_value_t value;
  ptl_md_t what = description();
  ptl_me_t me = entry();
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) {
    const ptl_handle_ni_t bad = none[i];
    BAD(PtlNIFini(bad));
    BAD(PtlNIStatus(bad, PTL_SR_DROP_COUNT, &value));
    BAD(PtlGetUid(bad, &uid));
    BAD(PtlGetId(bad, &id));
    BAD(PtlGetPhysId(bad, &id));
    BAD(PtlSetMap(bad, 1, &id));
    BAD(PtlGetMap(bad, 1, &id, &size));
    BAD(PtlPTAlloc(bad, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt));
    BAD(PtlPTFree(bad, PT));
    BAD(PtlPTDisable(bad, PT));
    BAD(PtlPTEnable(bad, PT));
    BAD(PtlMDBind(bad, &what, &made));
    BAD(PtlMEAppend(bad, PT, &me, PTL_PRIORITY_LIST, NULL, &made));
    BAD(PtlLEAppend(bad, OTHER_PT, (ptl_le_t*)&me, PTL_PRIORITY_LIST, NULL, &made));
    BAD(PtlMESearch(bad, PT, &me, PTL_SEARCH_ONLY, NULL));
    BAD(PtlLESearch(bad, OTHER_PT, (ptl_le_t*)&me, PTL_SEARCH_ONLY, NULL));
    BAD(PtlTriggeredMEAppend(bad, PT, &me, PTL_PRIORITY_LIST, NULL, &made, ct, 1));
    BAD(PtlCTAlloc(bad, &made));
    BAD(PtlEQAlloc(bad, 1, &made));
    BAD(PtlStartBundle(bad));
    BAD(PtlEndBundle(bad));
  }
  const ptl_handle_any_t gone[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE, 0, gone_ct, gone_eq, gone_md, gone_me};
  for (unsigned i = 0; i < sizeof gone / sizeof *gone; ++i) BAD(PtlNIHandle(gone[i], &made));
}

/* Rules: P4F-5.1, P4F-5.2, P4F-5.3, P4F-5.4, P4F-5.8, P4F-5.25. */
static void portals(void) {
  ptl_pt_index_t pt;
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((PTL_PT_ALLOC_OPTIONS_MASK >> bit & 1) == 0) BAD(PtlPTAlloc(ni, 1u << bit, eq, FREE_PT, &pt));
  }
  EXPECT(PTL_PT_EQ_NEEDED, PtlPTAlloc(ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, FREE_PT, &pt));
  EXPECT(PTL_PT_IN_USE, PtlPTAlloc(ni, 0, eq, PT, &pt));
  BAD(PtlPTAlloc(ni, 0, eq, (ptl_pt_index_t)limits.max_pt_index + 1, &pt));
  BAD(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY - 1, &pt));
  const ptl_handle_any_t no_queue[] = {gone_eq, other_eq, ct, PTL_CT_NONE, PTL_INVALID_HANDLE};
  for (unsigned i = 0; i < sizeof no_queue / sizeof *no_queue; ++i) BAD(PtlPTAlloc(ni, 0, no_queue[i], FREE_PT, &pt));
  const ptl_pt_index_t not_there[] = {FREE_PT, OTHER_PT, (ptl_pt_index_t)limits.max_pt_index + 1, PTL_PT_ANY};
  for (unsigned i = 0; i < sizeof not_there / sizeof *not_there; ++i) {
    BAD(PtlPTFree(ni, not_there[i]));
    BAD(PtlPTDisable(ni, not_there[i]));
    BAD(PtlPTEnable(ni, not_there[i]));
  }
}

/* Rules: P4F-6.5, P4F-6.6, P4F-6.7, P4F-6.8, P4F-6.9, P4F-6.10, P4F-6.34. */
static void descriptors(void) {
  ptl_handle_md_t made;
  ptl_md_t what = description();
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((PTL_MD_OPTIONS_MASK >> bit & 1) != 0) continue;
    what.options = 1u << bit;
    BAD(PtlMDBind(ni, &what, &made));
  }
  const ptl_handle_any_t no_queue[] = {gone_eq, other_eq, ct}, no_counter[] = {gone_ct, other_ct, eq};
  for (unsigned i = 0; i < 3; ++i) {
    what = description();
    what.eq_handle = no_queue[i];
    BAD(PtlMDBind(ni, &what, &made));
    what = description();
    what.ct_handle = no_counter[i];
    BAD(PtlMDBind(ni, &what, &made));
  }
  ptl_iovec_t* const pieces = calloc((size_t)limits.max_iovecs + 1, sizeof *pieces);
  what = description();
  what.start = pieces;
  what.options = PTL_IOVEC;
  what.length = (ptl_size_t)limits.max_iovecs + 1;
  BAD(PtlMDBind(ni, &what, &made));
  --what.length;
  EXPECT(PTL_OK, PtlMDBind(ni, &what, &made));
  EXPECT(PTL_OK, PtlMDRelease(made));
  free(pieces);
  const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, 0, gone_md, ct, eq, ni};
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) BAD(PtlMDRelease(none[i]));
}

/* An append or a search, of an ME or of an LE, which begins as an ME does. */
static int enlist(int is_me, int searches, ptl_handle_ni_t at, ptl_pt_index_t pt, const ptl_me_t* me, unsigned which) {
  ptl_handle_me_t made;
  if (searches && is_me) return PtlMESearch(at, pt, me, (ptl_search_op_t)which, NULL);
  if (searches) return PtlLESearch(at, pt, (const ptl_le_t*)me, (ptl_search_op_t)which, NULL);
  const int code = is_me ? PtlMEAppend(at, pt, me, (ptl_list_t)which, NULL, &made)
                         : PtlLEAppend(at, pt, (const ptl_le_t*)me, (ptl_list_t)which, NULL, &made);
  if (code == PTL_OK) MUST(is_me ? PtlMEUnlink(made) : PtlLEUnlink(made));
  return code;
}

/* Rules: P4F-7.1, P4F-7.2, P4F-7.3, P4F-7.4, P4F-7.5, P4F-7.6, P4F-7.7, P4F-7.8, P4F-7.9, P4F-7.73, P4F-9.1,
 * P4F-9.2, P4F-9.3. */
static void entries(void) {
  ptl_iovec_t* const pieces = calloc((size_t)limits.max_iovecs + 1, sizeof *pieces);
  for (int is_me = 0; is_me < 2; ++is_me) {
    const ptl_handle_ni_t at = is_me ? ni : other, wrong_one = is_me ? other : ni;
    const ptl_pt_index_t pt = is_me ? PT : OTHER_PT, wrong_pt = is_me ? OTHER_PT : PT;
    const unsigned mask = is_me ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
    const ptl_handle_any_t no_counter[] = {gone_ct, is_me ? other_ct : ct, eq, PTL_INVALID_HANDLE};
    for (int searches = 0; searches < 2; ++searches) {
      ptl_me_t me = entry();
      EXPECT(PTL_OK, enlist(is_me, searches, at, pt, &me, 0));
      EXPECT(PTL_OK, enlist(is_me, searches, at, pt, &me, 1));
      BAD(enlist(is_me, searches, at, pt, &me, 2));
      BAD(enlist(is_me, searches, at, pt, &me, 255));
      BAD(enlist(is_me, searches, wrong_one, wrong_pt, &me, 0));
      const ptl_pt_index_t not_there[] = {FREE_PT, wrong_pt, (ptl_pt_index_t)limits.max_pt_index + 1, PTL_PT_ANY};
      for (unsigned i = 0; i < 4; ++i) BAD(enlist(is_me, searches, at, not_there[i], &me, 0));
      for (unsigned bit = 0; bit < 32; ++bit) {
        if ((mask >> bit & 1) != 0) continue;
        me.options = PTL_ME_OP_PUT | 1u << bit;
        BAD(enlist(is_me, searches, at, pt, &me, 0));
      }
      for (unsigned i = 0; i < 4; ++i) {
        me = entry();
        me.ct_handle = no_counter[i];
        BAD(enlist(is_me, searches, at, pt, &me, 0));
      }
      me = entry();
      me.options |= PTL_IOVEC;
      me.start = pieces;
      me.length = (ptl_size_t)limits.max_iovecs + 1;
      BAD(enlist(is_me, searches, at, pt, &me, 0));
      --me.length;
      EXPECT(PTL_OK, enlist(is_me, searches, at, pt, &me, 0));
    }
  }
  free(pieces);
  const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, 0, gone_me, ct, md, ni};
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) {
    BAD(PtlMEUnlink(none[i]));
    BAD(PtlLEUnlink(none[i]));
    BAD(PtlTriggeredMEUnlink(none[i], ct, 1));
  }
}

/* Rules: P4F-10.7, P4F-10.8, P4F-10.12, P4F-10.24, P4F-15.14, P4F-15.17. */
static void counters(void) {
  const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, PTL_CT_NONE, 0, gone_ct, eq, md, ni};
  const ptl_ct_event_t one = {1, 0}, both = {1, 1};
  const ptl_size_t tests[2] = {0, 0};
  ptl_ct_event_t count;
  unsigned which;
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) {
    const ptl_handle_ct_t bad = none[i], with_bad[2] = {ct, bad};
    BAD(PtlCTFree(bad));
    BAD(PtlCTCancelTriggered(bad));
    BAD(PtlCTGet(bad, &count));
    BAD(PtlCTWait(bad, 0, &count));
    BAD(PtlCTPoll(with_bad, tests, 2, 0, &count, &which));
    BAD(PtlCTSet(bad, one));
    BAD(PtlCTInc(bad, one));
    BAD(PtlTriggeredCTInc(bad, one, ct, 1));
    BAD(PtlTriggeredCTInc(ct, one, bad, 1));
    BAD(PtlTriggeredCTSet(bad, one, ct, 1));
    BAD(PtlTriggeredCTSet(ct, one, bad, 1));
  }
  BAD(PtlTriggeredCTInc(ct, one, other_ct, 1));
  BAD(PtlTriggeredCTSet(ct, one, other_ct, 1));
  BAD(PtlCTInc(ct, both));
  BAD(PtlTriggeredCTInc(ct, both, ct, 1));
  BAD(PtlCTPoll(&ct, tests, 0, 0, &count, &which));
  BAD(PtlCTPoll((ptl_handle_ct_t[]){ct, other_ct}, tests, 2, 0, &count, &which));
}

/* Rules: P4F-14.10, P4F-14.11, P4F-14.16. */
static void queues(void) {
  const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, 0, gone_eq, ct, md, ni};
  ptl_event_t event;
  unsigned which;
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) {
    const ptl_handle_eq_t bad = none[i], with_bad[2] = {eq, bad};
    BAD(PtlEQFree(bad));
    BAD(PtlEQGet(bad, &event));
    BAD(PtlEQWait(bad, &event));
    BAD(PtlEQPoll(with_bad, 2, 0, &event, &which));
  }
  BAD(PtlEQPoll(&eq, 0, 0, &event, &which));
  BAD(PtlEQPoll((ptl_handle_eq_t[]){eq, other_eq}, 2, 0, &event, &which));
}

struct operation {
  ptl_handle_md_t md, get_md;
  ptl_size_t offset, get_offset, length;
  ptl_ack_req_t ack;
  ptl_process_t target;
  ptl_pt_index_t pt;
  ptl_op_t op;
  ptl_datatype_t type;
  ptl_handle_ct_t trigger; /* PTL_CT_NONE: at once */
};

static int start(enum kind kind, struct operation o) {
  static const long double operand[2];
  const ptl_size_t late = 1000000;
  if (o.trigger == PTL_CT_NONE) {
    switch (kind) {
      case PUT: return PtlPut(o.md, o.offset, o.length, o.ack, o.target, o.pt, 0, 0, NULL, 0);
      case GET: return PtlGet(o.get_md, o.get_offset, o.length, o.target, o.pt, 0, 0, NULL);
      case ATOMIC: return PtlAtomic(o.md, o.offset, o.length, o.ack, o.target, o.pt, 0, 0, NULL, 0, o.op, o.type);
      case FETCH_ATOMIC:
        return PtlFetchAtomic(o.get_md, o.get_offset, o.md, o.offset, o.length, o.target, o.pt, 0, 0, NULL, 0, o.op,
                              o.type);
      default:
        return PtlSwap(o.get_md, o.get_offset, o.md, o.offset, o.length, o.target, o.pt, 0, 0, NULL, 0, operand, o.op,
                       o.type);
    }
  }
  switch (kind) {
    case PUT: return PtlTriggeredPut(o.md, o.offset, o.length, o.ack, o.target, o.pt, 0, 0, NULL, 0, o.trigger, late);
    case GET: return PtlTriggeredGet(o.get_md, o.get_offset, o.length, o.target, o.pt, 0, 0, NULL, o.trigger, late);
    case ATOMIC:
      return PtlTriggeredAtomic(o.md, o.offset, o.length, o.ack, o.target, o.pt, 0, 0, NULL, 0, o.op, o.type, o.trigger,
                                late);
    case FETCH_ATOMIC:
      return PtlTriggeredFetchAtomic(o.get_md, o.get_offset, o.md, o.offset, o.length, o.target, o.pt, 0, 0, NULL, 0,
                                     o.op, o.type, o.trigger, late);
    default:
      return PtlTriggeredSwap(o.get_md, o.get_offset, o.md, o.offset, o.length, o.target, o.pt, 0, 0, NULL, 0, operand,
                              o.op, o.type, o.trigger, late);
  }
}

static struct operation operation(enum kind kind, ptl_handle_ct_t trigger) {
  struct operation made = {.md = md,
                           .get_md = md,
                           .length = 8,
                           .target = rank_of(my_rank),
                           .pt = NOWHERE,
                           .op = kind == SWAP ? PTL_SWAP : PTL_SUM,
                           .type = PTL_UINT64_T,
                           .trigger = trigger};
  return made;
}

/* Each line changes one argument of an operation that is good otherwise. */
#define WITH(kind, trigger, change)                                       \
  do {                                                                    \
    struct operation o = operation(kind, trigger);                        \
    change;                                                               \
    expect(__LINE__, #change, PTL_ARG_INVALID, (unsigned)start(kind, o)); \
  } while (0)

/* Rules: P4F-4.16, P4F-11.1, P4F-11.2, P4F-11.3, P4F-11.4, P4F-11.5, P4F-11.6, P4F-11.7, P4F-11.28, P4F-15.4,
 * P4F-15.14, P4F-15.17. */
static void operations(ptl_handle_ct_t trigger) {
  for (enum kind kind = PUT; kind < KINDS; ++kind) {
    const int puts = kind != GET, gets = kind != PUT && kind != ATOMIC, acks = kind == PUT || kind == ATOMIC;
    for (unsigned i = 0; i < 3; ++i) {
      struct operation good = operation(kind, trigger);
      good.pt = i == 0 ? PT : i == 1 ? NOWHERE : PTL_PT_ANY;
      EXPECT(PTL_OK, start(kind, good));
    }
    WITH(kind, trigger, o.length = SIZE + 1);
    WITH(kind, trigger, o.target = rank_of(ranks));
    WITH(kind, trigger, o.target = rank_of(PTL_RANK_ANY));
    const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, 0, gone_md, ct, eq, ni};
    for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) {
      if (puts) WITH(kind, trigger, o.md = none[i]);
      if (gets) WITH(kind, trigger, o.get_md = none[i]);
    }
    if (puts) {
      WITH(kind, trigger, o.offset = SIZE - 7);
      WITH(kind, trigger, o.offset = PTL_SIZE_MAX);
    }
    if (gets) {
      WITH(kind, trigger, o.get_offset = SIZE - 7);
      WITH(kind, trigger, o.get_offset = PTL_SIZE_MAX);
    }
    if (puts && gets) {
      WITH(kind, trigger, o.md = other_md);
      WITH(kind, trigger, o.get_md = other_md);
    }
    if (acks) {
      WITH(kind, trigger, o.ack = PTL_OC_ACK_REQ + 1);
      WITH(kind, trigger, o.ack = 255);
      WITH(kind, trigger, o.ack = PTL_ACK_REQ);
      WITH(kind, trigger, o.ack = PTL_CT_ACK_REQ);
    }
    WITH(kind, trigger, (o.md = o.get_md = all_md, o.length = limits.max_msg_size + 1));
    if (trigger == PTL_CT_NONE) continue;
    WITH(kind, trigger, o.trigger = gone_ct);
    WITH(kind, trigger, o.trigger = other_ct);
    WITH(kind, trigger, o.trigger = eq);
  }
}

/* On a physical interface a target is a node id and a process id; both must be those of a process of the job. */
/* Rules: P4F-4.20. */
static void physical_targets(void) {
  ptl_handle_ct_t trigger;
  ptl_process_t me;
  MUST(PtlGetId(other, &me));
  MUST(PtlCTAlloc(other, &trigger));
  const ptl_process_t nobodies[] = {{.phys = {me.phys.nid, me.phys.pid + 1}}, {.phys = {me.phys.nid, 0}},
                                    {.phys = {me.phys.nid, PTL_PID_ANY}},     {.phys = {PTL_NID_ANY, me.phys.pid}},
                                    {.phys = {PTL_NID_ANY, PTL_PID_ANY}},     {.phys = {me.phys.nid + 1, me.phys.pid}}};
  for (enum kind kind = PUT; kind < KINDS; ++kind) {
    for (int waits = 0; waits < 2; ++waits) {
      struct operation o = operation(kind, waits ? trigger : PTL_CT_NONE);
      o.md = o.get_md = other_md;
      o.target = me;
      EXPECT(PTL_OK, start(kind, o));
      for (unsigned i = 0; i < sizeof nobodies / sizeof *nobodies; ++i) {
        o.target = nobodies[i];
        BAD(start(kind, o));
      }
    }
  }
  EXPECT(PTL_OK, PtlCTFree(trigger));
}

static const ptl_size_t sizes[PTL_DATATYPE_LAST] = {1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32};

static int is_complex(unsigned type) {
  return type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX || type == PTL_LONG_DOUBLE_COMPLEX;
}
static int is_real(unsigned type) { return type == PTL_FLOAT || type == PTL_DOUBLE || type == PTL_LONG_DOUBLE; }

static int exists(unsigned op, unsigned type) {
  switch (op) {
    case PTL_SUM:
    case PTL_PROD:
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE: return 1;
    case PTL_MIN:
    case PTL_MAX:
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT: return !is_complex(type);
    default: return !is_complex(type) && !is_real(type);
  }
}

/* Rules: P4F-2.25, P4F-12.11, P4F-12.12, P4F-12.13, P4F-12.14, P4F-12.15, P4F-12.16, P4F-12.20, P4F-12.21,
 * P4F-15.4. */
static void atomics(ptl_handle_ct_t trigger) {
  for (enum kind kind = ATOMIC; kind < KINDS; ++kind) {
    for (unsigned op = 0; op <= PTL_OP_LAST; ++op) {
      const int is_swap = op >= PTL_SWAP && op < PTL_OP_LAST;
      for (unsigned type = 0; type <= PTL_DATATYPE_LAST; ++type) {
        struct operation o = operation(kind, trigger);
        o.op = (ptl_op_t)op;
        o.type = (ptl_datatype_t)type;
        o.length = type < PTL_DATATYPE_LAST ? sizes[type] : 8;
        const int is_good =
            op < PTL_OP_LAST && type < PTL_DATATYPE_LAST && is_swap == (kind == SWAP) && exists(op, type);
        if (is_good && trigger != PTL_CT_NONE) continue; /* they would wait */
        EXPECT(is_good ? PTL_OK : PTL_ARG_INVALID, start(kind, o));
        if (!is_good || op <= PTL_SWAP) continue;
        ++o.length;
        BAD(start(kind, o)); /* more than an element */
      }
    }
    WITH(kind, trigger, o.op = 255);
    WITH(kind, trigger, o.type = 255);
    struct operation part = operation(kind, trigger);
    part.length = 12;
    EXPECT(PTL_OK, start(kind, part));
  }
}

/* Pointers that are null, where the call needs what they point to, and other arguments that no table above has. */
/* Rules: P4F-3.28, P4F-16.1. */
static void pointers(void) {
  ptl_handle_any_t made;
  ptl_process_t id;
  ptl_size_t size = 0;
  ptl_pt_index_t pt;
  ptl_sr_value_t value;
  ptl_ct_event_t count;
  ptl_event_t event;
  unsigned which;
  ptl_md_t what = description();
  ptl_me_t me = entry();
  const unsigned options = PTL_NI_MATCHING | PTL_NI_LOGICAL;
  BAD(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, NULL));
  for (unsigned sr = PTL_SR_LAST; sr < PTL_SR_LAST + 3u; ++sr) BAD(PtlNIStatus(ni, (ptl_sr_index_t)sr, &value));
  BAD(PtlNIStatus(ni, (ptl_sr_index_t)0x7fffffff, &value));
  BAD(PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL));
  BAD(PtlNIHandle(ni, NULL));
  BAD(PtlGetUid(ni, NULL));
  BAD(PtlGetId(ni, NULL));
  BAD(PtlGetPhysId(ni, NULL));
  BAD(PtlSetMap(ni, 1, NULL));
  BAD(PtlGetMap(ni, 1, NULL, &size));
  BAD(PtlGetMap(other, 1, &id, &size));
  BAD(PtlPTAlloc(ni, 0, PTL_EQ_NONE, FREE_PT, NULL));
  EXPECT(PTL_OK, PtlPTAlloc(ni, 0, PTL_EQ_NONE, FREE_PT, &pt)); /* the call before has taken nothing */
  EXPECT(PTL_OK, PtlPTFree(ni, FREE_PT));
  BAD(PtlMDBind(ni, NULL, &made));
  BAD(PtlMDBind(ni, &what, NULL));
  what.eq_handle = PTL_INVALID_HANDLE;
  BAD(PtlMDBind(ni, &what, &made));
  what = description();
  what.ct_handle = PTL_INVALID_HANDLE;
  BAD(PtlMDBind(ni, &what, &made));
  BAD(PtlMEAppend(ni, PT, NULL, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, NULL));
  BAD(PtlLEAppend(other, OTHER_PT, NULL, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlLEAppend(other, OTHER_PT, (ptl_le_t*)&me, PTL_PRIORITY_LIST, NULL, NULL));
  BAD(PtlMESearch(ni, PT, NULL, PTL_SEARCH_ONLY, NULL));
  BAD(PtlLESearch(other, OTHER_PT, NULL, PTL_SEARCH_ONLY, NULL));
  me.start = NULL;
  BAD(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlLEAppend(other, OTHER_PT, (ptl_le_t*)&me, PTL_PRIORITY_LIST, NULL, &made));
  me.options |= PTL_IOVEC; /* a list of no place, of an element without one, and of more bytes than there are */
  BAD(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &made));
  const ptl_iovec_t lists[2][2] = {{{memory, 8}, {NULL, 8}}, {{memory, PTL_SIZE_MAX}, {memory, 8}}};
  for (unsigned i = 0; i < 2; ++i) {
    me.start = (void*)lists[i];
    me.length = 2;
    BAD(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &made));
    what = description();
    what.start = (void*)lists[i];
    what.length = 2;
    what.options = PTL_IOVEC;
    BAD(PtlMDBind(ni, &what, &made));
  }
  BAD(PtlCTAlloc(ni, NULL));
  BAD(PtlCTGet(ct, NULL));
  BAD(PtlCTWait(ct, 0, NULL));
  BAD(PtlCTPoll(NULL, &size, 1, 0, &count, &which));
  BAD(PtlCTPoll(&ct, NULL, 1, 0, &count, &which));
  BAD(PtlCTPoll(&ct, &size, 1, 0, NULL, &which));
  BAD(PtlCTPoll(&ct, &size, 1, 0, &count, NULL));
  BAD(PtlEQAlloc(ni, 4, NULL));
  BAD(PtlEQGet(eq, NULL));
  BAD(PtlEQWait(eq, NULL));
  BAD(PtlEQPoll(NULL, 1, 0, &event, &which));
  BAD(PtlEQPoll(&eq, 1, 0, NULL, &which));
  BAD(PtlEQPoll(&eq, 1, 0, &event, NULL));
  const ptl_process_t self = rank_of(my_rank);
  for (ptl_op_t op = PTL_CSWAP; op <= PTL_MSWAP; ++op) {
    BAD(PtlSwap(md, 0, md, 8, 8, self, NOWHERE, 0, 0, NULL, 0, NULL, op, PTL_UINT64_T));
    BAD(PtlTriggeredSwap(md, 0, md, 8, 8, self, NOWHERE, 0, 0, NULL, 0, NULL, op, PTL_UINT64_T, ct, 1000000));
  }
  BAD(PtlPut(all_md, 0, 8, PTL_NO_ACK_REQ, self, NOWHERE, 0, 0, NULL, 0)); /* eight bytes at NULL */
  BAD(PtlEndBundle(ni)); /* none has begun */
  EXPECT(PTL_OK, PtlStartBundle(ni));
  EXPECT(PTL_OK, PtlEndBundle(ni));
  BAD(PtlEndBundle(ni));
  me = entry();
  const ptl_handle_ct_t no_counters[] = {gone_ct, other_ct, eq, PTL_CT_NONE, PTL_INVALID_HANDLE, 0};
  EXPECT(PTL_OK, PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &made));
  for (unsigned i = 0; i < sizeof no_counters / sizeof *no_counters; ++i) {
    ptl_handle_me_t later;
    BAD(PtlTriggeredMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &later, no_counters[i], 1));
    BAD(PtlTriggeredMEUnlink(made, no_counters[i], 1));
  }
  BAD(PtlTriggeredMEAppend(ni, PT, NULL, PTL_PRIORITY_LIST, NULL, &made, ct, 1));
  BAD(PtlTriggeredMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, NULL, ct, 1));
  BAD(PtlTriggeredMEAppend(ni, PT, &me, 2, NULL, &made, ct, 1));
  BAD(PtlTriggeredMEAppend(ni, FREE_PT, &me, PTL_PRIORITY_LIST, NULL, &made, ct, 1));
  BAD(PtlTriggeredMEAppend(other, OTHER_PT, &me, PTL_PRIORITY_LIST, NULL, &made, other_ct, 1));
  EXPECT(PTL_OK, PtlMEUnlink(made));
}

/* The calls of portals4_spin.h. */
/* Rules: SPIN-3.1, SPIN-3.7, SPIN-8.12. */
static void extensions(void) {
  static const char* const image = "pingpong";
  const ptl_process_t self = rank_of(my_rank);
  const ptl_region_t all_bytes = {0, 8}, outside = {SIZE - 4, 8}, wraps = {PTL_SIZE_MAX, 2}, too_long = {0, 9};
  const ptl_handle_any_t none[] = {PTL_INVALID_HANDLE, 0, gone_ct, ct, eq, ni};
  ptl_hpu_md_h state = 0, gone_state;
  ptl_handle_any_t made, filling, sput;
  ptl_size_t count;
  ptl_spin_t good = {.image = image, .payload_handler = "payload_handler", .hpu_memory = PTL_HPU_MEM_NONE};
  ptl_spin_t spin;
  ptl_me_t me = entry();
  for (unsigned i = 0; i < 5; ++i) {
    BAD(PtlHPUAllocMem(8, none[i], &state));
    BAD(PtlSpinMEAppend(none[i], PT, &me, &good, PTL_PRIORITY_LIST, NULL, &made));
    BAD(PtlSpinContextAlloc(none[i], &good, &made));
    BAD(PtlSpinTelemetry(none[i], PTL_INVALID_HANDLE, PTL_SPIN_BYTES, &count));
  }
  BAD(PtlHPUAllocMem(0, ni, &state));
  BAD(PtlHPUAllocMem(8, ni, NULL));
  EXPECT(PTL_NO_SPACE, PtlHPUAllocMem(PTL_SIZE_MAX, ni, &state));
  EXPECT(PTL_OK, PtlHPUAllocMem(64, ni, &state));
  gone_state = state;
  EXPECT(PTL_OK, PtlHPUFreeMem(&state));
  EXPECT(PTL_HPU_MEM_NONE, state);
  BAD(PtlHPUFreeMem(&state));
  BAD(PtlHPUFreeMem(&gone_state));
  BAD(PtlHPUFreeMem(NULL));
  EXPECT(PTL_OK, PtlHPUAllocMem(64, ni, &state));

/* Each line changes one member of a description that is good otherwise. */
#define SPIN(change)                                                          \
  do {                                                                        \
    spin = good;                                                              \
    change;                                                                   \
    BAD(PtlSpinMEAppend(ni, PT, &me, &spin, PTL_PRIORITY_LIST, NULL, &made)); \
    BAD(PtlSpinContextAlloc(ni, &spin, &made));                               \
  } while (0)
  SPIN(spin.image = NULL);
  SPIN(spin.image = "no such image");
  SPIN(spin.payload_handler = "no_such_handler");
  SPIN(spin.header_handler = "no_such_handler");
  SPIN(spin.completion_handler = "");
  SPIN(spin.payload_handler = NULL); /* no handler at all */
  SPIN(spin.hpu_memory = gone_state);
  SPIN(spin.hpu_memory = ct);
  SPIN((spin.hpu_initial_state = memory, spin.hpu_initial_state_length = 1)); /* more than the memory has */
  SPIN((spin.hpu_memory = state, spin.hpu_initial_state = memory, spin.hpu_initial_state_length = 65));
  SPIN(spin.constants_length = 1); /* there are none */
  SPIN(spin.user_header_length = (ptl_size_t)1 << 32);
  SPIN((spin.options = PTL_SPIN_HANDLER_IOVEC, spin.handler_host_mem_length = 1));
  for (unsigned bit = 0; bit < 32; ++bit)
    if ((PTL_SPIN_OPTIONS_MASK >> bit & 1) == 0) SPIN(spin.options = 1u << bit);
  SPIN(spin.packets_in_row = 1); /* there is no virtual HPU */
  const uint64_t no_cores = 0;
  SPIN((spin.core_mask = &no_cores, spin.core_mask_words = 1));
  BAD(PtlSpinMEAppend(ni, PT, NULL, &good, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlSpinMEAppend(ni, PT, &me, NULL, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlSpinMEAppend(ni, PT, &me, &good, 2, NULL, &made));
  BAD(PtlSpinMEAppend(ni, PT, &me, &good, PTL_PRIORITY_LIST, NULL, NULL));
  BAD(PtlSpinMEAppend(ni, FREE_PT, &me, &good, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlSpinMEAppend(other, OTHER_PT, &me, &good, PTL_PRIORITY_LIST, NULL, &made));
  BAD(PtlSpinContextAlloc(ni, NULL, &made));
  BAD(PtlSpinContextAlloc(ni, &good, NULL));

  ptl_handle_me_t plain, active, inactive;
  MUST(PtlMEAppend(ni, PT, &me, PTL_PRIORITY_LIST, NULL, &plain));
  MUST(PtlSpinMEAppend(ni, PT, &me, &good, PTL_PRIORITY_LIST, NULL, &active));
  spin = good;
  spin.options = PTL_SPIN_INACTIVE;
  MUST(PtlSpinMEAppend(ni, PT, &me, &spin, PTL_PRIORITY_LIST, NULL, &inactive));
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i) {
    BAD(PtlSpinActivate(none[i]));
    BAD(PtlSpinInvoke(none[i], memory, 8, 0));
    if (none[i] != PTL_INVALID_HANDLE) BAD(PtlSpinTelemetry(ni, none[i], PTL_SPIN_BYTES, &count));
    BAD(PtlSpinContextFree(none[i]));
    BAD(PtlSPutStream(none[i], all_bytes, 1));
    if (none[i] == ct) continue;
    BAD(PtlCTPersist(none[i], 1));
    BAD(PtlCTAutoReset(none[i], 1));
  }
  BAD(PtlSpinActivate(plain));
  BAD(PtlSpinActivate(active));
  EXPECT(PTL_OK, PtlSpinActivate(inactive));
  BAD(PtlSpinActivate(inactive));
  BAD(PtlSpinInvoke(plain, memory, 8, 0));
  BAD(PtlSpinInvoke(active, NULL, 8, 0));
  BAD(PtlSpinInvoke(active, memory, (ptl_size_t)1 << 40, 0)); /* more than a packet */
  BAD(PtlSpinTelemetry(ni, plain, PTL_SPIN_BYTES, &count));
  BAD(PtlSpinTelemetry(ni, active, PTL_SPIN_COUNT_LAST, &count));
  BAD(PtlSpinTelemetry(ni, active, 255, &count));
  BAD(PtlSpinTelemetry(ni, active, PTL_SPIN_BYTES, NULL));
  BAD(PtlSpinTelemetry(other, active, PTL_SPIN_BYTES, &count)); /* the entry is another interface's */
  EXPECT(PTL_OK, PtlSpinTelemetry(ni, active, PTL_SPIN_BYTES, &count));
  EXPECT(PTL_OK, PtlMEUnlink(plain));
  EXPECT(PTL_OK, PtlMEUnlink(active));
  EXPECT(PTL_OK, PtlMEUnlink(inactive));

  /* Streaming puts, which end where all bytes are named. */
  const ptl_size_t too_much = limits.max_msg_size + 1;
  const ptl_ack_req_t no_ack = PTL_NO_ACK_REQ;
  ptl_iovec_t piece = {memory, SIZE};
  ptl_md_t list = {
      .start = &piece, .length = 1, .options = PTL_IOVEC, .eq_handle = PTL_EQ_NONE, .ct_handle = PTL_CT_NONE};
  ptl_handle_md_t list_md;
  MUST(PtlMDBind(ni, &list, &list_md));
  const ptl_handle_md_t no_md[] = {PTL_INVALID_HANDLE, 0, gone_md, ct, list_md};
  MUST(PtlSpinContextAlloc(ni, &good, &filling));
  for (unsigned i = 0; i < sizeof no_md / sizeof *no_md; ++i) {
    BAD(PtlSPutStart(no_md[i], 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, all_bytes, &sput));
    BAD(PtlProcessPut(no_md[i], 0, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, filling));
  }
  BAD(PtlSPutStart(md, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, all_bytes, NULL));
  BAD(PtlSPutStart(md, 8, no_ack, rank_of(ranks), NOWHERE, 0, 0, NULL, 0, all_bytes, &sput));
  BAD(PtlSPutStart(md, 8, PTL_ACK_REQ, self, NOWHERE, 0, 0, NULL, 0, all_bytes, &sput));
  BAD(PtlSPutStart(md, 8, 255, self, NOWHERE, 0, 0, NULL, 0, all_bytes, &sput));
  BAD(PtlSPutStart(md, too_much, no_ack, self, NOWHERE, 0, 0, NULL, 0, all_bytes, &sput));
  BAD(PtlSPutStart(md, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, outside, &sput));
  BAD(PtlSPutStart(md, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, wraps, &sput));
  BAD(PtlSPutStart(md, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, too_long, &sput));
  EXPECT(PTL_OK, PtlSPutStart(md, 16, no_ack, self, NOWHERE, 0, 0, NULL, 0, all_bytes, &sput));
  BAD(PtlSPutStream(sput, outside, 0));
  BAD(PtlSPutStream(sput, wraps, 0));
  BAD(PtlSPutStream(sput, too_long, 0));
  BAD(PtlSPutStream(sput, (ptl_region_t){0, 4}, 1)); /* four bytes are missing */
  EXPECT(PTL_OK, PtlSPutStream(sput, all_bytes, 1));
  BAD(PtlSPutStream(sput, (ptl_region_t){0, 0}, 1));

  /* Process-puts: their context fills packets, and does nothing else. */
  ptl_handle_any_t others[4];
  spin = good;
  spin.header_handler = "header_handler";
  MUST(PtlSpinContextAlloc(ni, &spin, &others[0]));
  spin = good;
  spin.completion_handler = "completion_handler";
  MUST(PtlSpinContextAlloc(ni, &spin, &others[1]));
  spin = good;
  spin.user_header_length = 8;
  MUST(PtlSpinContextAlloc(ni, &spin, &others[2]));
  spin = good;
  spin.payload_handler = NULL;
  spin.completion_handler = "completion_handler";
  MUST(PtlSpinContextAlloc(ni, &spin, &others[3]));
  for (unsigned i = 0; i < 4; ++i) {
    BAD(PtlProcessPut(md, 0, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, others[i]));
    EXPECT(PTL_OK, PtlSpinContextFree(others[i]));
    BAD(PtlSpinContextFree(others[i]));
    BAD(PtlProcessPut(md, 0, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, others[i]));
  }
  for (unsigned i = 0; i < sizeof none / sizeof *none; ++i)
    BAD(PtlProcessPut(md, 0, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, none[i]));
  BAD(PtlProcessPut(other_md, 0, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, filling)); /* another interface's */
  BAD(PtlProcessPut(md, SIZE - 4, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, filling));
  BAD(PtlProcessPut(md, PTL_SIZE_MAX, 8, 8, no_ack, self, NOWHERE, 0, 0, NULL, 0, filling));
  BAD(PtlProcessPut(md, 0, 8, too_much, no_ack, self, NOWHERE, 0, 0, NULL, 0, filling));
  BAD(PtlProcessPut(md, 0, 8, 8, no_ack, rank_of(ranks), NOWHERE, 0, 0, NULL, 0, filling));
  BAD(PtlProcessPut(md, 0, 8, 8, PTL_CT_ACK_REQ, self, NOWHERE, 0, 0, NULL, 0, filling));
  EXPECT(PTL_OK, PtlMDRelease(list_md));
  EXPECT(PTL_OK, PtlSpinContextFree(filling));
  EXPECT(PTL_OK, PtlHPUFreeMem(&state));

  /* Counters that reset themselves, and memory of the heap. */
  ptl_handle_ct_t rounds;
  void* block = memory;
  MUST(PtlCTAlloc(ni, &rounds));
  EXPECT(PTL_OK, PtlTriggeredCTInc(ct, (ptl_ct_event_t){0, 0}, rounds, 1000));
  BAD(PtlCTAutoReset(rounds, 5)); /* an operation waits for it */
  EXPECT(PTL_OK, PtlCTFree(rounds));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapFree(memory));
  EXPECT(PTL_ARG_INVALID, PtlSpinHeapAlloc(8, NULL));
  EXPECT(PTL_NO_SPACE, PtlSpinHeapAlloc(PTL_SIZE_MAX, &block));
}

int main(void) {
  begin();
  make_objects();
  openings();
  interfaces_that_are_none();
  portals();
  descriptors();
  entries();
  counters();
  queues();
  operations(PTL_CT_NONE);
  operations(ct);
  physical_targets();
  atomics(PTL_CT_NONE);
  atomics(ct);
  pointers();
  extensions();
  EXPECT(PTL_OK, PtlCTCancelTriggered(ct));
  return end();
}
