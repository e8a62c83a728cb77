/* Rounds in which ranks send each other a number of messages in all ways, and complete them in all ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "complete.h"
#include "context.h"

enum { forms_max = 3, messages_max = 64, repeats_max = 3, tag_room = 4096 };
enum { posted, arriving, persistent, styles }; /* receives first; sends first; all persistent */

typedef struct {
  int from, to, tag, form;
  long count, units;
  int taken; /* a receive has got it */
} Message;

typedef struct {
  int style, kind, repeats, messages, any_source, any_tag, unique, truncates, barrier, bottom;
  MPI_Comm comm;
  Unit unit;
  int out_forms, in_forms;
  Form out[forms_max], in[forms_max];
  int small; /* some receives have less room than their messages need */
  long units_max;
  Message message[messages_max];
} Round;

typedef struct {
  Op op; /* first */
  int message, freed, truncated;
  Buffer buffer;
  MPI_Datatype absolute; /* the type of the buffer's own address, for MPI_BOTTOM */
} Part;

#ifdef OPEN_MPI
enum { truncates_well = 0 }; /* Open MPI writes behind the buffer (single copy), and loses some of the requests */
#else
enum { truncates_well = 1 };
#endif

static uint64_t seed_of(Context const* context, int message, int repeat, int receives) {
  Draw draw = draw_from(context->seed + (uint64_t)context->thread * 65537, (uint64_t)context->round,
                        (uint64_t)(message * 16 + repeat * 2 + receives));
  return draw_next(&draw);
}

static long bytes_target(Draw* draw) {
  if (one_in(draw, 150)) return 1 + below(draw, 6 << 20);
  if (one_in(draw, 4)) return 1 + below(draw, 64 << 10);
  return magnitude(draw, 8 << 10);
}

static void draw_forms(Context* context, Round* round, long target) {
  Draw* const draw = &context->plan;
  long const units = target / round->unit.size + 1;
  long counts[forms_max];
  round->out_forms = 1 + (int)below(draw, forms_max);
  for (int i = 0; i < round->out_forms; ++i) {
    long n = one_in(draw, 30) ? 0 : one_in(draw, 4) ? units : magnitude(draw, units);
    if (n > 4096 && !one_in(draw, 4)) n = n / 64 * 64; /* a number with divisors */
    counts[i] = n == 0 ? 3 : units / n < 1 ? 1 : units / n;
    round->out[i] = form_of(draw, &round->unit, n, counts[i], 1);
  }
  for (int i = 0; i < round->messages; ++i) {
    Message* const message = &round->message[i];
    message->form = (int)below(draw, round->out_forms);
    message->count = one_in(draw, 3) ? counts[message->form] : below(draw, counts[message->form] + 1);
    message->units = message->count * round->out[message->form].units;
    if (message->units > round->units_max) round->units_max = message->units;
  }
  round->in_forms = 1 + (int)below(draw, forms_max);
  for (int i = 0; i < round->in_forms; ++i) {
    if (one_in(draw, 12)) {
      round->in[i] = form_packed();
      continue;
    }
    long const n = round->units_max == 0 ? below(draw, 3) : magnitude(draw, round->units_max);
    round->in[i] = form_of(draw, &round->unit, n, n == 0 ? 3 : (round->units_max + n - 1) / n + 1, 0);
  }
}

static void draw_round(Context* context, Round* round) {
  Draw* const draw = &context->plan;
  memset(round, 0, sizeof *round);
  round->style = (int)below(draw, styles);
  if (round->style == persistent && !allows(persistents)) round->style = posted;
  round->truncates = round->style != persistent && one_in(draw, 12) && allows(truncations) && truncates_well;
  round->kind = (int)below(draw, comm_kinds);
  round->comm = context->comm[round->kind];
  round->unit = unit_of(draw);
  long const target = bytes_target(draw);
  round->messages = 1 + (int)below(draw, target > 256 << 10 ? 4 : target > 16 << 10 ? 12 : messages_max);
  round->unique = round->style == persistent || one_in(draw, 2);
  int const wild = !round->truncates && one_in(draw, 2);
  round->any_source = wild && !one_in(draw, 3);
  round->any_tag =
      wild && (!round->any_source || one_in(draw, 2)) && !(context->threads > 1 && round->kind == comm_shared);
  if (round->truncates) round->unique = 1;
  round->barrier = one_in(draw, 2);
  round->repeats = round->style == persistent ? 1 + (int)below(draw, repeats_max) : 1;
  int const one_way = one_in(draw, 4) ? 1 + (int)below(draw, context->size - 1) : 0;
  for (int i = 0; i < round->messages; ++i) {
    Message* const message = &round->message[i];
    do {
      message->from = (int)below(draw, context->size);
      message->to = one_way ? (message->from + one_way) % context->size : (int)below(draw, context->size);
      if (message->from == message->to && !one_in(draw, 4)) message->to = (message->to + 1) % context->size;
      if (!joins(round->kind, message->from, message->to) && one_way) message->to = (message->from + 1) % context->size;
    } while (!joins(round->kind, message->from, message->to));
    message->tag = context->thread * tag_room + (round->unique ? i : (int)below(draw, 3));
  }
  draw_forms(context, round, target);
  snprintf(context->doing, sizeof context->doing,
           "exchange: style %d, comm %d, %d messages, units of %ld B, most %ld B%s%s%s%s", round->style, round->kind,
           round->messages, round->unit.size, round->units_max * round->unit.size,
           round->any_source ? ", any source" : "", round->any_tag ? ", any tag" : "",
           round->unique ? ", own tags" : "", round->truncates ? ", truncates" : "");
}

/* The buffer, count and type that a call gets. */
typedef struct {
  void* buffer;
  int count;
  MPI_Datatype type;
} Named;

static Named named(Context* context, Part* part) {
  Buffer const* const buffer = &part->buffer;
  Named plain = {buffer->base, (int)buffer->count, buffer->form->type};
  if (buffer->form->type == MPI_PACKED || !one_in(&context->own, 10) || !allows(bottoms)) return plain;
  MPI_Aint at;
  int const count = (int)buffer->count;
  MPI_Get_address(buffer->base, &at);
  MPI_Type_create_hindexed(1, &count, &at, buffer->form->type, &part->absolute);
  MPI_Type_commit(&part->absolute);
  return (Named){MPI_BOTTOM, 1, part->absolute};
}

static Part part_for(Context* context, Round* round, int index, int repeat, int sends) {
  Draw* const own = &context->own;
  Message const* const message = &round->message[index];
  Part part = {.op.sends = sends, .message = index, .absolute = MPI_DATATYPE_NULL};
  part.op.request = MPI_REQUEST_NULL;
  if (sends) {
    part.buffer = buffer_make(&round->out[message->form], message->count, seed_of(context, index, repeat, 0));
    part.op.ignore = 1;
    return part;
  }
  Form const* const form = &round->in[below(own, round->in_forms)];
  long const of = form->type == MPI_PACKED ? 1 : form->units, most = form->type == MPI_PACKED ? round->unit.size : 1;
  long count = of == 0 ? below(own, 3) : (round->units_max * most + of - 1) / of + below(own, 2);
  if (round->truncates && one_in(own, 2) && count > 0 && message->from != message->to) count = 1 + below(own, count);
  part.buffer = buffer_make(form, count, seed_of(context, index, repeat, 1));
  part.truncated = form->size * count < message->units * round->unit.size;
  part.op.ignore = round->unique && !round->any_source && !round->any_tag && !round->truncates;
  return part;
}

static int source_of(Context* context, Round* round, Part* part) {
  return round->any_source ? MPI_ANY_SOURCE : rank_in(context, round->kind, round->message[part->message].from);
}
static int tag_of(Round* round, Part* part) { return round->any_tag ? MPI_ANY_TAG : round->message[part->message].tag; }

static void start_all(Context* context, Part** parts, int n) {
  if (n > 1 && one_in(&context->own, 2)) {
    MPI_Request* const requests = malloc((size_t)n * sizeof *requests);
    for (int i = 0; i < n; ++i) requests[i] = parts[i]->op.request;
    check(context, "Startall", MPI_Startall(n, requests));
    for (int i = 0; i < n; ++i)
      if (requests[i] != parts[i]->op.request) wrong(context, "Startall changes a request");
    free(requests);
  } else {
    for (int i = 0; i < n; ++i) check(context, "Start", MPI_Start(&parts[i]->op.request));
  }
  for (int i = 0; i < n; ++i) parts[i]->op.active = 1;
}

/* Frees an active request now and then: its message arrives all the same. */
static void maybe_free(Context* context, Part* part) {
  if (!part->op.active || !part->op.ignore || !one_in(&context->own, 40) || !allows(freed_requests)) return;
  if (!part->op.sends && (context->threads > 1 || part->truncated)) return;
  check(context, "Request_free", MPI_Request_free(&part->op.request));
  if (part->op.request != MPI_REQUEST_NULL) wrong(context, "Request_free leaves the request");
  part->op.active = 0, part->op.ignored = 1, part->op.persistent = 0;
  part->freed = 1;
}

static void post_receive(Context* context, Round* round, Part* part, int start) {
  Named const in = named(context, part);
  int const large = one_in(&context->own, 4), source = source_of(context, round, part), tag = tag_of(round, part);
  part->op.active = start;
  /* Open MPI loses a persistent request whose message is too long. */
  if (!start || (!round->truncates && one_in(&context->own, 4) && allows(persistents))) {
    part->op.persistent = 1;
    check(context, "Recv_init",
          COUNTED(large, MPI_Recv_init, in.buffer, in.count, in.type, source, tag, round->comm, &part->op.request));
    if (start) start_all(context, &part, 1);
  } else {
    check(context, "Irecv",
          COUNTED(large, MPI_Irecv, in.buffer, in.count, in.type, source, tag, round->comm, &part->op.request));
  }
  if (start) maybe_free(context, part);
}

static void init_send(Context* context, Round* round, Part* part, int ready) {
  Named const out = named(context, part);
  int const large = one_in(&context->own, 4), how = (int)below(&context->own, ready ? 3 : 2);
  Message const* const message = &round->message[part->message];
  int const to = rank_in(context, round->kind, message->to), tag = message->tag;
  MPI_Request* const request = &part->op.request;
  part->op.persistent = 1;
  if (how == 0)
    check(context, "Send_init",
          COUNTED(large, MPI_Send_init, out.buffer, out.count, out.type, to, tag, round->comm, request));
  else if (how == 1)
    check(context, "Ssend_init",
          COUNTED(large, MPI_Ssend_init, out.buffer, out.count, out.type, to, tag, round->comm, request));
  else
    check(context, "Rsend_init",
          COUNTED(large, MPI_Rsend_init, out.buffer, out.count, out.type, to, tag, round->comm, request));
}

/* blocking: its receive is posted, or it need not be; ready: it is. */
static void send_part(Context* context, Round* round, Part* part, int blocking, int ready) {
  Draw* const own = &context->own;
  Message const* const message = &round->message[part->message];
  int const to = rank_in(context, round->kind, message->to), tag = message->tag, large = one_in(own, 4);
  MPI_Comm const comm = round->comm;
  MPI_Request* const request = &part->op.request;
  if (one_in(own, 5) && allows(persistents)) {
    init_send(context, round, part, ready);
    start_all(context, &part, 1);
    maybe_free(context, part);
    return;
  }
  Named const out = named(context, part);
  int how = (int)below(own, blocking ? 8 : 4);
  if ((how == 2 || how == 6) && !ready) --how;
  if ((how == 3 || how == 7) && (part->buffer.form->size * part->buffer.count > 8192 || !round->unique))
    how -= 3; /* MPICH's Bsend overtakes */
  part->op.active = how < 4;
  switch (how) {
    case 0:
      check(context, "Isend", COUNTED(large, MPI_Isend, out.buffer, out.count, out.type, to, tag, comm, request));
      break;
    case 1:
      check(context, "Issend", COUNTED(large, MPI_Issend, out.buffer, out.count, out.type, to, tag, comm, request));
      break;
    case 2:
      check(context, "Irsend", COUNTED(large, MPI_Irsend, out.buffer, out.count, out.type, to, tag, comm, request));
      break;
    case 3:
      check(context, "Ibsend", COUNTED(large, MPI_Ibsend, out.buffer, out.count, out.type, to, tag, comm, request));
      break;
    case 4: check(context, "Send", COUNTED(large, MPI_Send, out.buffer, out.count, out.type, to, tag, comm)); break;
    case 5: check(context, "Ssend", COUNTED(large, MPI_Ssend, out.buffer, out.count, out.type, to, tag, comm)); break;
    case 6: check(context, "Rsend", COUNTED(large, MPI_Rsend, out.buffer, out.count, out.type, to, tag, comm)); break;
    default: check(context, "Bsend", COUNTED(large, MPI_Bsend, out.buffer, out.count, out.type, to, tag, comm));
  }
  maybe_free(context, part);
}

static int bytes_in(MPI_Status const* status) {
  int bytes = 0;
  MPI_Get_elements(status, MPI_BYTE, &bytes);
  return bytes;
}

/* A receive when its message may have come: by a probe or not, blocking or not. */
static void receive_part(Context* context, Round* round, Part* part) {
  Draw* const own = &context->own;
  int source = source_of(context, round, part), tag = tag_of(round, part), flag = 0, how = (int)below(own, 8), code;
  int const large = one_in(own, 4);
  MPI_Status seen, *const status = &part->op.status;
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Request* const request = &part->op.request;
  memset(&seen, 0, sizeof seen);
  if (how <= 1) {
    post_receive(context, round, part, 1);
    return;
  }
  Named const in = named(context, part);
  if (how == 3) check(context, "Probe", MPI_Probe(source, tag, round->comm, &seen));
  if (how == 4)
    while (!flag) check(context, "Iprobe", MPI_Iprobe(source, tag, round->comm, &flag, &seen));
  if (how == 5 || how == 6) check(context, "Mprobe", MPI_Mprobe(source, tag, round->comm, &handle, &seen));
  if (how == 7)
    while (!flag) check(context, "Improbe", MPI_Improbe(source, tag, round->comm, &flag, &handle, &seen));
  int const probed = how >= 3;
  if (probed) {
    if (one_in(own, 2)) source = seen.MPI_SOURCE;
    if (one_in(own, 2)) tag = seen.MPI_TAG;
  }
  if (how == 4 && one_in(own, 2)) {
    source = seen.MPI_SOURCE, tag = seen.MPI_TAG;
    check(context, "Irecv", COUNTED(large, MPI_Irecv, in.buffer, in.count, in.type, source, tag, round->comm, request));
    part->op.active = 1;
    return;
  }
  /* A receive with wildcards could get another message than the probed one, which came meanwhile from elsewhere. So
   * after a probe it names the source and the tag that the probe has seen. */
  if (how <= 4) {
    if (how > 2) source = seen.MPI_SOURCE, tag = seen.MPI_TAG;
    int const ignored = part->op.ignore && one_in(own, 4);
    code = COUNTED(large, MPI_Recv, in.buffer, in.count, in.type, source, tag, round->comm,
                   ignored ? MPI_STATUS_IGNORE : status);
    part->op.ignored = ignored;
  } else if (how == 5) {
    code = COUNTED(large, MPI_Mrecv, in.buffer, in.count, in.type, &handle, status);
    if (code == MPI_SUCCESS && handle != MPI_MESSAGE_NULL) wrong(context, "Mrecv leaves the message's handle");
  } else {
    check(context, "Imrecv", COUNTED(large, MPI_Imrecv, in.buffer, in.count, in.type, &handle, request));
    if (handle != MPI_MESSAGE_NULL) wrong(context, "Imrecv leaves the message's handle");
    part->op.active = 1;
    return;
  }
  part->op.code = code;
  if (probed && code == MPI_SUCCESS && !part->op.ignored &&
      (seen.MPI_SOURCE != status->MPI_SOURCE || seen.MPI_TAG != status->MPI_TAG || bytes_in(&seen) != bytes_in(status)))
    wrong(context, "probed %d bytes from %d with tag %d, received %d from %d with %d", bytes_in(&seen), seen.MPI_SOURCE,
          seen.MPI_TAG, bytes_in(status), status->MPI_SOURCE, status->MPI_TAG);
}

/* Before anything is received, a probe sees the first message of its source and tag. */
static void look_ahead(Context* context, Round* round) {
  int const index = (int)below(&context->own, round->messages);
  Message const* message = &round->message[index];
  if (message->to != context->rank) return;
  MPI_Status seen;
  for (int i = index - 1; i >= 0; --i) {
    Message const* const before = &round->message[i];
    if (before->to == message->to && before->from == message->from && before->tag == message->tag) message = before;
  }
  check(context, "Probe", MPI_Probe(rank_in(context, round->kind, message->from), message->tag, round->comm, &seen));
  if (bytes_in(&seen) != message->units * round->unit.size)
    wrong(context, "a probe sees %d bytes of %ld", bytes_in(&seen), message->units * round->unit.size);
}

/* Returns the message that a receive has got, and marks it as taken. */
static Message* message_of(Context* context, Round* round, Part* part) {
  if (part->op.ignored || part->op.code != MPI_SUCCESS) {
    round->message[part->message].taken = 1;
    return &round->message[part->message];
  }
  int const from = world_of(context, round->kind, part->op.status.MPI_SOURCE);
  for (int i = 0; i < round->messages; ++i) {
    Message* const message = &round->message[i];
    if (message->taken || message->to != context->rank || message->from != from ||
        message->tag != part->op.status.MPI_TAG)
      continue;
    message->taken = 1;
    return message;
  }
  wrong(context, "a receive for message %d got one from rank %d with tag %d, which nobody sent", part->message, from,
        part->op.status.MPI_TAG);
  return NULL;
}

static void check_counts(Context* context, Round* round, Part* part, Message const* message) {
  long const bytes = message->units * round->unit.size;
  Form const* const form = part->buffer.form;
  int count = 0, elements = 0;
  if (bytes_in(&part->op.status) != bytes)
    wrong(context, "message %d: the status has %d bytes of %ld", part->message, bytes_in(&part->op.status), bytes);
  if (form->type == MPI_DATATYPE_NULL || form->size == 0) return;
  MPI_Get_count(&part->op.status, form->type, &count);
#ifdef OPEN_MPI
  int const may_count = 1;
#else
  int const may_count = 0; /* MPICH's Get_elements divides by zero bytes, and asserts at arrays */
#endif
  int const counts = may_count && form->type != MPI_PACKED && round->unit.elements == round->unit.kinds;
  if (counts) MPI_Get_elements(&part->op.status, form->type, &elements);
  if (count != (bytes % form->size == 0 ? bytes / form->size : MPI_UNDEFINED))
    wrong(context, "message %d: Get_count gives %d for %ld bytes and elements of %ld", part->message, count, bytes,
          form->size);
  if (counts && elements != message->units * round->unit.elements)
    wrong(context, "message %d: Get_elements gives %d of %ld", part->message, elements,
          message->units * round->unit.elements);
}

static void check_part(Context* context, Round* round, Part* part, int repeat) {
  if (part->op.sends) {
    if (part->op.code != MPI_SUCCESS)
      wrong(context, "send of message %d ends with class %d", part->message, class_of(part->op.code));
    if (buffer_wrong(&part->buffer, NULL, 0, 0) != all_right)
      wrong(context, "the send buffer of message %d has changed", part->message);
    return;
  }
  if (!part->op.ignored && class_of(part->op.code) != (part->truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
    wrong(context, "receive of message %d, %s, ends with class %d", part->message,
          part->truncated ? "too short" : "long enough", class_of(part->op.code));
  Message const* const message = message_of(context, round, part);
  if (message == NULL) return;
  if (part->op.code == MPI_SUCCESS && !part->op.ignored) check_counts(context, round, part, message);
  Sent const sent = {&round->out[message->form], message->count,
                     seed_of(context, (int)(message - round->message), repeat, 0)};
  long const at = buffer_wrong(&part->buffer, &sent, message->units * round->unit.size, part->truncated);
  if (at == all_right) return;
  wrong(context,
        "message %d of %ld bytes from rank %d: wrong byte %ld of %ld..%ld; sent %ld of %s, received as %ld of %s",
        (int)(message - round->message), message->units * round->unit.size, message->from, at - part->buffer.first,
        -part->buffer.first, part->buffer.length - part->buffer.first, message->count, sent.form->name,
        part->buffer.count, part->buffer.form->name);
}

/* A receive that was freed ends some time while the rank is in MPI. */
static void await_freed(Context* context, Round* round, Part* part, int repeat) {
  Message const* const message = &round->message[part->message];
  Sent const sent = {&round->out[message->form], message->count, seed_of(context, part->message, repeat, 0)};
  for (long tries = 0; tries < 20000000; ++tries) {
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, context->comm[comm_own], &flag, MPI_STATUS_IGNORE);
    if (tries % 64 == 0 && buffer_wrong(&part->buffer, &sent, message->units * round->unit.size, 0) == all_right)
      return;
  }
}

static void receive_and_send(Context* context, Round* round, Part* in, int ins, Part* out, int outs) {
  Draw* const own = &context->own;
  Op* ops[2 * messages_max];
  for (int i = 0; i < ins; ++i) ops[i] = &in[i].op;
  for (int i = 0; i < outs; ++i) ops[ins + i] = &out[i].op;
  if (round->style == posted) {
    for (int i = 0; i < ins; ++i) post_receive(context, round, &in[i], 1);
    if (round->barrier) MPI_Barrier(context->comm[comm_own]);
    for (int i = 0; i < outs; ++i) {
      send_part(context, round, &out[i], 1, round->barrier);
      if (one_in(own, 8)) complete_some(context, ops, ins + i + 1);
    }
  } else {
    for (int i = 0; i < outs; ++i) send_part(context, round, &out[i], 0, 0);
    if (round->barrier) MPI_Barrier(context->comm[comm_own]);
    if (allows(looks) && one_in(own, 4)) look_ahead(context, round);
    for (int i = 0; i < ins; ++i) {
      receive_part(context, round, &in[i]);
      if (one_in(own, 8)) complete_some(context, ops, i + 1);
    }
  }
  if (one_in(own, 4) && allows(early_frees)) {
    for (int i = 0; i < round->in_forms; ++i) form_free_type(&round->in[i]);
    for (int i = 0; i < round->out_forms; ++i) form_free_type(&round->out[i]);
  }
  complete(context, ops, ins + outs);
}

static void run_persistent(Context* context, Round* round, Part* in, int ins, Part* out, int outs) {
  Op* ops[2 * messages_max];
  Part* parts[2 * messages_max];
  int order[2 * messages_max];
  for (int i = 0; i < ins; ++i) post_receive(context, round, &in[i], 0), ops[i] = &in[i].op;
  for (int i = 0; i < outs; ++i) init_send(context, round, &out[i], 0), ops[ins + i] = &out[i].op;
  if (one_in(&context->own, 4) && allows(early_frees)) {
    for (int i = 0; i < round->in_forms; ++i) form_free_type(&round->in[i]);
    for (int i = 0; i < round->out_forms; ++i) form_free_type(&round->out[i]);
  }
  for (int repeat = 0; repeat < round->repeats; ++repeat) {
    if (repeat > 0) {
      for (int i = 0; i < round->messages; ++i) round->message[i].taken = 0;
      for (int i = 0; i < ins; ++i) buffer_refill(&in[i].buffer, seed_of(context, in[i].message, repeat, 1));
      for (int i = 0; i < outs; ++i) buffer_refill(&out[i].buffer, seed_of(context, out[i].message, repeat, 0));
    }
    for (int i = 0; i < ins + outs; ++i) order[i] = i;
    shuffle(&context->own, ins + outs, order);
    for (int i = 0; i < ins + outs; ++i) parts[i] = order[i] < ins ? &in[order[i]] : &out[order[i] - ins];
    for (int first = 0, n; first < ins + outs; first += n) {
      n = 1 + (int)below(&context->own, ins + outs - first);
      start_all(context, parts + first, n);
    }
    complete(context, ops, ins + outs);
    for (int i = 0; i < ins; ++i) check_part(context, round, &in[i], repeat);
    for (int i = 0; i < outs; ++i) check_part(context, round, &out[i], repeat);
    /* Without wildcards a rank may be ahead by a start; with them, it must not. */
    if (round->any_source || round->any_tag || one_in(&context->plan, 2)) MPI_Barrier(context->comm[comm_own]);
  }
}

void exchange_round(Context* context) {
  static __thread Round round;
  static __thread Part in[messages_max], out[messages_max];
  int ins = 0, outs = 0, order[messages_max];
  draw_round(context, &round);
  for (int i = 0; i < round.messages; ++i) {
    if (round.message[i].to == context->rank) order[ins++] = i;
    if (round.message[i].from == context->rank) out[outs++] = part_for(context, &round, i, 0, 1);
  }
  shuffle(&context->own, ins, order);
  for (int i = 0; i < ins; ++i) in[i] = part_for(context, &round, order[i], 0, 0);
  if (round.style == persistent)
    run_persistent(context, &round, in, ins, out, outs);
  else
    receive_and_send(context, &round, in, ins, out, outs);

  for (int i = 0; i < ins && !context->wrong; ++i)
    if (in[i].freed) await_freed(context, &round, &in[i], 0);
  if (round.style != persistent) {
    for (int i = 0; i < ins; ++i) check_part(context, &round, &in[i], 0);
    for (int i = 0; i < outs; ++i) check_part(context, &round, &out[i], 0);
  }
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < (k ? outs : ins); ++i) {
      Part* const part = k ? &out[i] : &in[i];
      if (part->op.persistent) check(context, "Request_free", MPI_Request_free(&part->op.request));
      if (part->absolute != MPI_DATATYPE_NULL) MPI_Type_free(&part->absolute);
    }
  context->messages += (long)round.messages * round.repeats;
  MPI_Barrier(context->comm[comm_own]); /* freed sends are under way until then */
  for (int i = 0; i < ins; ++i) buffer_free(&in[i].buffer);
  for (int i = 0; i < outs; ++i) buffer_free(&out[i].buffer);
  for (int i = 0; i < round.in_forms; ++i) form_free(&round.in[i]);
  for (int i = 0; i < round.out_forms; ++i) form_free(&round.out[i]);
}
