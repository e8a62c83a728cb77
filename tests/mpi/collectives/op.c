#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../layer/device.h"

enum { none, single, multiple }; /* blocks at one side */
enum { by_none, by_sender, by_receiver, by_pair };

typedef struct {
  char const* name;
  int out, in, out_style, in_style, by, rooted, in_place;
} Call;

static Call const about[calls + 1] = {
    [alltoall] = {"Alltoall", multiple, multiple, regular, regular, by_none, 0, 1},
    [alltoallv] = {"Alltoallv", multiple, multiple, by_extent, by_extent, by_pair, 0, 1},
    [alltoallw] = {"Alltoallw", multiple, multiple, by_byte, by_byte, by_pair, 0, 1},
    [gather] = {"Gather", single, multiple, regular, regular, by_none, 1, 1},
    [gatherv] = {"Gatherv", single, multiple, regular, by_extent, by_sender, 1, 1},
    [scatter] = {"Scatter", multiple, single, regular, regular, by_none, 1, 1},
    [scatterv] = {"Scatterv", multiple, single, by_extent, regular, by_receiver, 1, 1},
    [allgather] = {"Allgather", single, multiple, regular, regular, by_none, 0, 1},
    [allgatherv] = {"Allgatherv", single, multiple, regular, by_extent, by_sender, 0, 1},
    [bcast] = {"Bcast", single, single, regular, regular, by_none, 1, 0},
    [neighbor_allgather] = {"Neighbor_allgather", single, multiple, regular, regular, by_none, 0, 0},
    [neighbor_allgatherv] = {"Neighbor_allgatherv", single, multiple, regular, by_extent, by_sender, 0, 0},
    [neighbor_alltoall] = {"Neighbor_alltoall", multiple, multiple, regular, regular, by_none, 0, 0},
    [neighbor_alltoallv] = {"Neighbor_alltoallv", multiple, multiple, by_extent, by_extent, by_pair, 0, 0},
    [neighbor_alltoallw] = {"Neighbor_alltoallw", multiple, multiple, by_byte, by_byte, by_pair, 0, 0},
    [message] = {"a message", single, single, regular, regular, by_none, 0, 0},
};
enum { guard = 64, prime = 65521, row = 4 * 65536 };

static unsigned char known[row + prime];

void bytes_begin(void) {
  Draw draw = draw_from(1, 2, 3);
  for (int i = 0; i < prime; ++i) known[i] = (unsigned char)draw_next(&draw);
  for (int i = prime; i < (int)sizeof known; ++i) known[i] = known[i - prime];
}

static void copy_known(unsigned char* to, uint64_t seed, long length) {
  for (uint64_t at = seed % prime; length > 0;) {
    long const part = length < row ? length : row;
    memcpy(to, known + at, (size_t)part);
    to += part, length -= part, at = (at + (uint64_t)part) % prime;
  }
}

static int is_neighbors(Op const* op) { return op->call >= neighbor_allgather && op->call < calls; }

#if defined OPEN_MPI
enum { is_open_mpi = 1, is_mpich_4 = 0 };
#elif defined MPICH_NUMVERSION && MPICH_NUMVERSION < 50000000
enum { is_open_mpi = 0, is_mpich_4 = 1 };
#else
enum { is_open_mpi = 0, is_mpich_4 = 0 };
#endif

/* Leaves out what an MPI is known to get wrong: Open MPI 4.1.4, MPICH 4.0.2, MPICH 5.0.1. */
static void leave_out(Op* op) {
  Group const* const group = op->group;
  int const is_alone = group->size == 1 && !group->is_inter;
  if (is_open_mpi && op->call == alltoallw) {
    /* Ialltoallw takes the number of neighbors for that of its types, and looks at the send types in place. */
    if (op->form == nonblocking && group->has_neighbors) op->form = blocking;
    if (op->form == nonblocking) op->in_place = 0;
    /* It takes no notice of displacements where a rank is alone. */
    if (is_alone) op->call = alltoallv;
  }
  /* Such a call ends at once at a rank that gets nothing, and its peers wait for its empty messages. */
  op->has_no_zeros = is_open_mpi && op->form == nonblocking && op->in_place;
  /* Long messages of several basic types are cut in pieces that are not put together; in MPICH 5, in a Gather of
   * four. */
  if (op->unit.parts > 1 && (is_mpich_4 || (!is_open_mpi && op->call == gather))) {
    if (op->same * op->unit.size > 400) op->same = op->step;
    if (op->top * op->step * op->unit.size > 400) op->top = 1;
  }
  if (is_mpich_4) {
    /* Allgatherv takes no notice of displacements where a rank is alone. */
    if (op->call == allgatherv && is_alone) op->call = allgather;
    /* Neighbor_alltoallw reads the counts of as many neighbors as there are ranks. */
    if (op->call == neighbor_alltoallw) op->large = 1;
    /* Long messages in place are cut short, and Ialltoallw puts them elsewhere. */
    if (op->call == alltoallv || op->call == alltoallw) op->in_place = 0;
  }
}

void op_draw(Draw* plan, Op* op, Group const* group, int call, int form) {
  static long const steps[] = {1, 1, 2, 4, 6, 12, 24, 36};
  int const extent = (int)below(plan, 12), large = (int)below(plan, 4) == 0;
  memset(op, 0, sizeof *op);
  op->seed = draw_next(plan), op->group = group, op->comm = group->comm, op->call = call, op->form = form;
  op->large = MPI_VERSION >= 4 && large;
  op->unit = unit_of(plan);
  long const bytes = extent < 7 ? 400 : extent < 11 ? 12000 : 200000;
  op->step = steps[below(plan, 8)];
  op->top = bytes / op->unit.size / op->step;
  op->same = one_in(plan, 8) ? 0 : op->step * (1 + below(plan, op->top));
  op->in_place = one_in(plan, 4), op->shared = one_in(plan, 6);
  op->root = (int)below(plan, 1 << 20);
  op->root = group->size > 0 ? op->root % group->size : 0;
  op->in_place = op->in_place && about[call].in_place && !group->is_inter;
  leave_out(op);
  Call const* const of = &about[op->call];
  op->shared = op->shared && of->by == by_pair && !op->in_place;
  op->request = MPI_REQUEST_NULL;
  snprintf(op->name, sizeof op->name, "%s%s%s%s%s on %s", op->form == nonblocking ? "I" : "", of->name,
           op->form == persistent ? "_init" : "", op->large ? "_c" : "", op->in_place ? " in place" : "", group->name);
}

/* The units from one rank to another, by their numbers in `everyone`. */
static long units_of(Op const* op, int from, int to) {
  int const by = op->shared ? by_sender : about[op->call].by;
  if (by == by_none) return op->same;
  if (by == by_sender) to = 0;
  if (by == by_receiver) from = 0;
  int const low = op->in_place && from > to ? to : from, high = from + to - low;
  Draw draw = draw_from(op->seed, (uint64_t)low, (uint64_t)high);
  return one_in(&draw, 5) && !op->has_no_zeros ? 0 : op->step * (1 + below(&draw, op->top));
}

static int peer_of(Op const* op, int rank) { return rank < 0 ? -1 : op->group->peer[rank]; }

/* The rank at the other end of a block, and whether anything is sent at all. */
static int other_end(Op const* op, Side const* side, int block) {
  Group const* const group = op->group;
  int const slot = side->slots[block];
  if (!is_neighbors(op)) return slot;
  return side == &op->in ? group->in[group->rank][slot] : group->out[group->rank][slot];
}

static void make_room(Draw* own, Side* side, Pool* pools) {
  int const where = (int)below(own, 4);
  long const aligned = (side->length + 15) / 16 * 16;
  side->allocated = where >= 2 || pools[where].left < aligned;
  if (side->allocated) {
    side->memory = device_alloc(side->length, &side->arena);
    return;
  }
  side->memory = side->arena = pools[where].at;
  pools[where].at += aligned, pools[where].left -= aligned;
}

static Form const* form_at(Side const* side, int block) { return &side->form[side->forms == 1 ? 0 : block]; }

/* The types of a side, and where its blocks lie. units[] is known. */
static void lay_out(Draw* own, Op* op, Side* side, Pool* pools) {
  int const n = side->blocks, shares = op->shared && side == &op->out;
  int const style = side->style, forms = style == by_byte && !shares ? n : 1, one = style != by_byte || shares;
  long *const counts = calloc((size_t)n + 1, sizeof(long)), *const places = calloc((size_t)n + 1, sizeof(long));
  int order[2 * degree_max + 1];
  side->forms = forms;
  side->form = calloc((size_t)forms + 1, sizeof(Form));
  side->at = calloc((size_t)n + 1, sizeof(long));
  for (int i = 0; i < n; ++i) order[i] = i;
  if (style != regular) shuffle(own, n, order);

  long low = 0, high = 0, next = 0;
  if (one) {
    /* Where the types at the ranks of an Allgatherv do not have the same size and extent, Open MPI and MPICH do not do
     * the same at each: they hang, or give wrong bytes. */
    Draw alike = draw_from(op->seed, 5, 6);
    Draw* const by = op->call == allgatherv ? &alike : own;
    long of = divisor_of(by, op->step), total = 0;
    if (op->call != allgatherv && (style == regular || shares) && n > 0 && side->units[0] > 0 && one_in(own, 2))
      of = side->units[0];
    /* At all ranks: where some have a count of 0 instead, MPICH waits at the others for what never comes. */
    int const empty = op->same == 0 && about[op->call].by == by_none && op->seed % 4 == 0;
    for (int k = 0; k < n; ++k) {
      int const i = order[k];
      counts[i] = empty ? 3 : side->units[i] / of;
      if (shares)
        places[i] = 0, total = counts[i];
      else
        places[i] = total + (style == by_extent ? below(own, 3) : 0), total = places[i] + counts[i];
    }
    /* Ranks between the root and others keep what these send in types of their own, side by side. */
    if (n == 1) total *= op->group->size;
    side->form[0] = empty ? form_empty() : form_of(by, &op->unit, of, total);
    for (int i = 0; i < n; ++i) side->at[i] = places[i] * side->form[0].extent;
  } else {
    for (int k = 0; k < n; ++k) {
      int const i = order[k];
      long const units = side->units[i],
                 of = units > 0 && one_in(own, 2) ? units : divisor_of(own, units > 0 ? units : op->step);
      Form* const form = &side->form[i];
      counts[i] = units / of;
      *form = form_of(own, &op->unit, of, counts[i]);
      side->at[i] = places[i] = next - form->low / 8 * 8;
      next = (places[i] + counts[i] * form->extent + form->high + 15) / 8 * 8 + 8 * below(own, 4);
    }
  }
  side->counts = calloc((size_t)n + 1, sizeof(int)), side->places = calloc((size_t)n + 1, sizeof(int));
  side->large_places = calloc((size_t)n + 1, sizeof(MPI_Aint));
  side->types = calloc((size_t)n + 1, sizeof(MPI_Datatype));
#if MPI_VERSION >= 4
  side->large_counts = calloc((size_t)n + 1, sizeof(MPI_Count));
#endif
  if (one) side->types[0] = side->form[0].type;
  if (style == regular && n == 0)
    counts[0] = side->form[0].size == 0 ? 3 : op->same / side->form[0].units; /* the usual number; nothing comes */
  for (int i = 0; i < (n > 0 ? n : one); ++i) {
    Form const* const form = form_at(side, i);
    side->counts[i] = (int)counts[i], side->places[i] = (int)places[i], side->large_places[i] = places[i];
    side->types[i] = form->type;
#if MPI_VERSION >= 4
    side->large_counts[i] = counts[i];
#endif
    if (n == 0 || counts[i] == 0 || form->size == 0) continue;
    long const from = side->at[i] + form->low, to = side->at[i] + (counts[i] - 1) * form->extent + form->high;
    if (from < low) low = from;
    if (to > high) high = to;
  }
  low = (low - 7) / 8 * 8;
  side->length = high - low + 2 * guard;
  make_room(own, side, pools);
  side->first = guard - low;
  side->base = side->memory + side->first;
  side->want = malloc((size_t)side->length);
  free(counts), free(places);
}

static void fill_slots(Op* op, Side* side, int kind, int neighbors) {
  Group const* const group = op->group;
  int const own = group->rank, is_in = side == &op->in;
  side->is_used = kind != none;
  side->blocks = kind == none     ? 0
                 : kind == single ? 1
                 : !neighbors     ? group->size
                 : is_in          ? group->ins[own]
                                  : group->outs[own];
  side->units = calloc((size_t)side->blocks + 1, sizeof(long));
  for (int i = 0; i < side->blocks; ++i) side->slots[i] = kind == single ? (is_in ? op->root : own) : i;
}

void op_prepare(Draw* own, Op* op, Pool* pools) {
  Call const* const of = &about[op->call];
  Group const* const group = op->group;
  int const at_root = group->rank == op->root, neighbors = is_neighbors(op);
  int out = of->out, in = of->in;
  if (of->rooted) {
    if (op->call == bcast)
      out = at_root ? single : none, in = at_root ? none : single;
    else if (out == single)
      in = at_root ? in : none, out = at_root && op->in_place ? none : out;
    else
      out = at_root ? out : none, in = at_root && op->in_place ? none : in;
  } else if (op->in_place) {
    out = none;
  }
  op->out.style = of->out_style, op->in.style = of->in_style;
  fill_slots(op, &op->out, out, neighbors), fill_slots(op, &op->in, in, neighbors);
  for (int i = 0; i < op->out.blocks; ++i) {
    int const to = out == single ? (of->rooted ? peer_of(op, op->root) : 0) : peer_of(op, other_end(op, &op->out, i));
    op->out.units[i] = units_of(op, group->own, to);
  }
  for (int i = 0; i < op->in.blocks; ++i)
    op->in.units[i] = units_of(op, peer_of(op, other_end(op, &op->in, i)), group->own);
  lay_out(own, op, &op->out, pools), lay_out(own, op, &op->in, pools);
}

/* The seed of the bytes that a rank sends by its block of this number. */
static uint64_t sent(Op const* op, int start, int from, int slot) {
  int const once = about[op->call].out == single || op->shared;
  Draw draw = draw_from(op->seed + (uint64_t)start, (uint64_t)from, once ? 0 : (uint64_t)slot);
  return draw_next(&draw);
}

static void put(Op const* op, Side const* side, int block, uint64_t seed, unsigned char* arena) {
  long const bytes = side->units[block] * op->unit.size;
  if (bytes == 0) return;
  Form const* const form = form_at(side, block);
  unsigned char* const packed = malloc((size_t)bytes);
  copy_known(packed, seed, bytes);
  form_put(form, side->counts[block], arena + side->first + side->at[block], packed);
  free(packed);
}

static void fill_side(Op const* op, Side* side, int start) {
  Draw draw = draw_from(op->seed + (uint64_t)start, 77, side == &op->in);
  copy_known(side->arena, draw_next(&draw), side->length);
}

void op_fill(Op* op, int start) {
  Group const* const group = op->group;
  Side *const out = &op->out, *const in = &op->in;
  Call const* const of = &about[op->call];
  fill_side(op, out, start), fill_side(op, in, start);
  for (int i = 0; i < out->blocks; ++i) put(op, out, i, sent(op, start, group->own, out->slots[i]), out->arena);
  if (op->in_place) {
    for (int i = 0; i < in->blocks; ++i) {
      int const mine = in->slots[i] == group->rank, exchanged = of->out == multiple && !of->rooted;
      if (exchanged || (mine && of->out == single && of->in == multiple))
        put(op, in, i, sent(op, start, group->own, in->slots[i]), in->arena);
    }
  }
  memcpy(out->want, out->arena, (size_t)out->length), memcpy(in->want, in->arena, (size_t)in->length);
  op->messages = 0;
}

void op_free_types(Op* op) {
  for (int s = 0; s < 2; ++s) {
    Side* const side = s ? &op->in : &op->out;
    for (int i = 0; i < side->forms; ++i) form_free_type(&side->form[i]);
  }
}

static long differences(unsigned char const* a, unsigned char const* b, long length) {
  long wrong = 0;
  if (memcmp(a, b, (size_t)length) == 0) return 0;
  for (long i = 0; i < length; ++i) wrong += a[i] != b[i];
  return wrong;
}

/* Finds the slot of the neighbour's message that a block holds, among those that no other block has taken. */
static int matched(Op* op, int start, int block, unsigned char* taken) {
  Group const* const group = op->group;
  Side const* const in = &op->in;
  int const from = other_end(op, in, block);
  long const bytes = in->units[block] * op->unit.size;
  int found = -1, first = -1, several = 0;
  Form const* const form = form_at(in, block);
  unsigned char *const got = malloc((size_t)bytes), *const packed = malloc((size_t)bytes);
  form_get(form, in->counts[block], in->arena + in->first + in->at[block], got);
  for (int slot = 0; slot < group->outs[from]; ++slot) {
    if (group->out[from][slot] != group->rank) continue;
    ++several;
    if (taken[from * degree_max + slot]) continue;
    if (first < 0) first = slot;
    copy_known(packed, sent(op, start, group->peer[from], slot), bytes);
    if (found < 0 && memcmp(packed, got, (size_t)bytes) == 0) found = slot;
  }
  free(got), free(packed);
  if (several > 1 && about[op->call].out == multiple && !op->shared) {
    Draw draw =
        draw_from(op->seed + (uint64_t)start, (uint64_t)group->own, (uint64_t)(block * degree_max + found + 1));
    op->order += draw_next(&draw);
  }
  if (found < 0) found = first;
  taken[from * degree_max + found] = 1;
  return found;
}

long op_wrong(Op* op, int start) {
  Group const* const group = op->group;
  Side* const in = &op->in;
  unsigned char taken[ranks_max * degree_max] = {0};
  for (int i = 0; i < in->blocks; ++i) {
    int const from = other_end(op, in, i);
    if (from < 0 || in->units[i] == 0) continue;
    ++op->messages;
    /* what a rank sends here is its block of this rank's number, or one of its edges to this rank */
    int const slot = is_neighbors(op) ? matched(op, start, i, taken) : group->rank;
    put(op, in, i, sent(op, start, group->peer[from], slot), in->want);
  }
  return differences(op->out.arena, op->out.want, op->out.length) + differences(in->arena, in->want, in->length);
}

void message_prepare(Draw* own, Op* op, Pool* pools) {
  fill_slots(op, &op->out, single, 0), fill_slots(op, &op->in, single, 0);
  op->out.units[0] = op->in.units[0] = op->same;
  lay_out(own, op, &op->out, pools), lay_out(own, op, &op->in, pools);
}
long message_wrong(Op* op, int from, uint64_t seed) {
  uint64_t const own = op->seed;
  op->messages = op->same > 0;
  op->seed = seed;
  put(op, &op->in, 0, sent(op, 0, op->group->peer[from], 0), op->in.want);
  op->seed = own;
  return differences(op->out.arena, op->out.want, op->out.length) +
         differences(op->in.arena, op->in.want, op->in.length);
}

void op_free(Op* op) {
  op_free_types(op);
  for (int s = 0; s < 2; ++s) {
    Side* const side = s ? &op->in : &op->out;
    for (int i = 0; i < side->forms; ++i) form_free(&side->form[i]);
    free(side->form), free(side->units), free(side->at), free(side->counts), free(side->places), free(side->types);
    free(side->large_places), free(side->want);
#if MPI_VERSION >= 4
    free(side->large_counts);
#endif
    if (side->allocated) device_free(side->memory, side->arena);
  }
}
