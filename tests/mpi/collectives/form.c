#include "form.h"

#include <stdlib.h>
#include <string.h>

enum { span_max = 4 << 20, align = 8 };

Unit unit_of(Draw* draw) {
  static Unit const units[] = {
      {1, {4}, {0}, 4}, {1, {1}, {0}, 1},     {1, {2}, {0}, 2},
      {1, {8}, {0}, 8}, {2, {4, 8}, {0}, 12}, {3, {1, 2, 4}, {0}, 7},
  };
  Unit unit = units[one_in(draw, 2) ? 0 : below(draw, 6)];
  for (int i = 0; i < unit.parts; ++i) {
    int const bytes = unit.bytes[i];
    unit.type[i] = bytes == 1 ? MPI_CHAR : bytes == 2 ? MPI_SHORT : bytes == 4 ? MPI_INT : MPI_DOUBLE;
  }
  return unit;
}

static long rounded(long bytes) { return (bytes + align - 1) / align * align; }

static void piece(Form* form, long at, long length) {
  Piece* const last = form->pieces > 0 ? &form->piece[form->pieces - 1] : NULL;
  if (last && last->at + last->length == at) {
    last->length += length;
  } else {
    if (form->pieces == form->room)
      form->room = 2 * form->room + 16, form->piece = realloc(form->piece, (size_t)form->room * sizeof(Piece));
    form->piece[form->pieces++] = (Piece){at, length};
  }
  if (form->size == 0 || at < form->low) form->low = at;
  if (form->size == 0 || at + length > form->high) form->high = at + length;
  form->size += length;
}

/* `count` elements of a form, the first at `at`. */
static void place(Form* form, Form const* child, long at, long count) {
  for (long i = 0; i < count; ++i)
    for (long k = 0; k < child->pieces; ++k)
      piece(form, at + i * child->extent + child->piece[k].at, child->piece[k].length);
  form->units += count * child->units;
}

static void bounds(Form* form) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(form->type, &lb, &extent);
  form->extent = extent;
}

void form_free_type(Form* form) {
  if (form->type != MPI_DATATYPE_NULL) MPI_Type_free(&form->type);
}
void form_free(Form* form) {
  form_free_type(form);
  free(form->piece);
  form->piece = NULL;
}

Form form_empty(void) {
  Form form = {.type = MPI_DATATYPE_NULL};
  MPI_Type_contiguous(0, MPI_INT, &form.type);
  MPI_Type_commit(&form.type);
  return form;
}

long divisor_of(Draw* draw, long n) {
  for (int i = 0; i < 12; ++i) {
    long const d = 1 + below(draw, i < 6 ? n : n < 12 ? n : 12);
    if (n % d == 0) return d;
  }
  return one_in(draw, 2) ? 1 : n;
}

/* Gives a form another extent, which is at least as long as what it spans. */
static void resize(Form* form, long low, long extent) {
  MPI_Datatype const old = form->type;
  MPI_Type_create_resized(old, low, extent, &form->type);
  MPI_Datatype unused = old;
  MPI_Type_free(&unused);
  bounds(form);
}

/* The unit at this end: its basic types in their order, anywhere. */
static Form unit_form(Draw* draw, Unit const* unit) {
  Form form = {.type = MPI_DATATYPE_NULL, .units = 1};
  if (unit->parts == 1) {
    piece(&form, 0, unit->bytes[0]);
    MPI_Type_dup(unit->type[0], &form.type); /* every form has a type of its own to free */
    bounds(&form);
    return form;
  }
  int order[parts_max], lengths[parts_max];
  MPI_Aint at[parts_max], next = 0;
  for (int i = 0; i < unit->parts; ++i) order[i] = i, lengths[i] = 1;
  shuffle(draw, unit->parts, order);
  for (int i = 0; i < unit->parts; ++i) at[order[i]] = next, next += align * (1 + below(draw, 2));
  for (int i = 0; i < unit->parts; ++i) piece(&form, at[i], unit->bytes[i]);
  MPI_Type_create_struct(unit->parts, lengths, at, unit->type, &form.type);
  resize(&form, 0, next);
  return form;
}

static Form build(Draw* draw, Unit const* unit, long n, int depth);

/* Blocks of k children, with gaps, in any order. */
static void indexed(Draw* draw, Form* form, Form const* child, int k) {
  int const longest = k / 8 + 9, in_bytes = one_in(draw, 3), turned = (int)below(draw, 3);
  int *const lengths = malloc((size_t)k * sizeof(int)), *const starts = malloc((size_t)k * sizeof(int));
  int *const order = malloc((size_t)k * sizeof(int)), *const all = malloc(2 * (size_t)k * sizeof(int));
  MPI_Aint* const bytes = malloc((size_t)k * sizeof(MPI_Aint));
  int blocks = 0;
  for (int left = k, at = (int)below(draw, 4); left > 0; ++blocks) {
    int const length = 1 + (int)below(draw, longest);
    starts[blocks] = at, lengths[blocks] = length < left ? length : left;
    left -= lengths[blocks], at += lengths[blocks] + (int)below(draw, 9);
  }
  for (int i = 0; i < blocks; ++i) order[i] = turned == 1 ? blocks - 1 - i : i;
  if (turned == 2) shuffle(draw, blocks, order);
  for (int i = 0; i < blocks; ++i) {
    int const block = order[i];
    all[i] = lengths[block], all[k + i] = starts[block];
    bytes[i] = starts[block] * child->extent + (in_bytes ? align * block : 0);
    place(form, child, bytes[i], all[i]);
  }
  if (in_bytes)
    MPI_Type_create_hindexed(blocks, all, bytes, child->type, &form->type);
  else
    MPI_Type_indexed(blocks, all, all + k, child->type, &form->type);
  free(lengths), free(starts), free(order), free(all), free(bytes);
}

/* Blocks of one length, from the last to the first. */
static void backwards(Draw* draw, Form* form, Form const* child, int k) {
  int const length = (int)divisor_of(draw, k), blocks = k / length, step = length + (int)below(draw, 3);
  int* const starts = malloc((size_t)blocks * sizeof(int));
  for (int i = 0; i < blocks; ++i) {
    starts[i] = (blocks - 1 - i) * step;
    place(form, child, starts[i] * child->extent, length);
  }
  MPI_Type_create_indexed_block(blocks, length, starts, child->type, &form->type);
  free(starts);
}

static void strided(Draw* draw, Form* form, Form const* child, int k) {
  int const length = (int)divisor_of(draw, k), blocks = k / length, step = length + (int)below(draw, 4);
  int const in_bytes = one_in(draw, 2);
  MPI_Aint const stride = step * child->extent + (in_bytes ? align * below(draw, 3) : 0);
  for (int i = 0; i < blocks; ++i) place(form, child, i * stride, length);
  if (in_bytes)
    MPI_Type_create_hvector(blocks, length, stride, child->type, &form->type);
  else
    MPI_Type_vector(blocks, length, step, child->type, &form->type);
}

/* Children of two looks, in either order in memory. */
static void structure(Draw* draw, Unit const* unit, Form* form, Form const* child, int k, int depth) {
  Form other = build(draw, unit, child->units, depth);
  Form const* const of[2] = {child, &other};
  int const first = (int)below(draw, 2);
  int lengths[2] = {1 + (int)below(draw, k), 0};
  lengths[1] = k - lengths[0];
  MPI_Aint at[2], next = align * below(draw, 3);
  for (int i = 0; i < 2; ++i) {
    int const which = i ^ first;
    at[which] = next;
    if (lengths[which] > 0) next = rounded(at[which] + (lengths[which] - 1) * of[which]->extent + of[which]->high);
    next += align * below(draw, 3);
  }
  MPI_Datatype const types[2] = {child->type, other.type};
  for (int i = 0; i < 2; ++i) place(form, of[i], at[i], lengths[i]);
  MPI_Type_create_struct(2, lengths, at, types, &form->type);
  form_free(&other);
}

static void subarray(Draw* draw, Form* form, Form const* child, int k) {
  int const inner = (int)divisor_of(draw, k), fortran = one_in(draw, 2);
  int size[2], sub[2] = {k / inner, inner}, start[2];
  for (int i = 0; i < 2; ++i) {
    int const more = (int)below(draw, 4);
    size[i] = sub[i] + more, start[i] = (int)below(draw, more + 1);
  }
  for (int i = 0; i < sub[0]; ++i) place(form, child, ((start[0] + i) * size[1] + start[1]) * child->extent, sub[1]);
  if (fortran) {
    int const s[2] = {size[1], size[0]}, u[2] = {sub[1], sub[0]}, t[2] = {start[1], start[0]};
    MPI_Type_create_subarray(2, s, u, t, MPI_ORDER_FORTRAN, child->type, &form->type);
  } else {
    MPI_Type_create_subarray(2, size, sub, start, MPI_ORDER_C, child->type, &form->type);
  }
}

/* A form whose extent is as long as what it spans, or longer. */
static Form build(Draw* draw, Unit const* unit, long n, int depth) {
  if (n == 1 && (depth == 0 || one_in(draw, 3))) return unit_form(draw, unit);
  long const c = depth == 0 ? 1 : divisor_of(draw, n);
  int const k = (int)(n / c);
  Form child = depth == 0 ? unit_form(draw, unit) : build(draw, unit, c, depth - 1), form = {.type = MPI_DATATYPE_NULL};
  switch (below(draw, 8)) {
    case 0:
    case 1: strided(draw, &form, &child, k); break;
    case 2: indexed(draw, &form, &child, k); break;
    case 3: backwards(draw, &form, &child, k); break;
    case 4: structure(draw, unit, &form, &child, k, depth > 0 ? depth - 1 : 0); break;
    case 5: subarray(draw, &form, &child, k); break;
    default: place(&form, &child, 0, k); MPI_Type_contiguous(k, child.type, &form.type);
  }
  form_free(&child);
  bounds(&form);
  if (form.extent < form.high - form.low || one_in(draw, 5)) {
    long const low = align * (below(draw, 4) - 1);
    resize(&form, low, rounded(form.high - form.low) + align * below(draw, 3));
  }
  return form;
}

/* A column of a matrix: elements lie one unit apart, each between the numbers of the others. */
static Form column(Draw* draw, Unit const* unit, long n, long elements) {
  Form child = unit_form(draw, unit), form = {.type = MPI_DATATYPE_NULL};
  long const stride = elements + below(draw, 3), extent = child.extent;
  for (long i = 0; i < n; ++i) place(&form, &child, i * stride * extent, 1);
  MPI_Type_vector((int)n, 1, (int)stride, child.type, &form.type);
  form_free(&child);
  resize(&form, 0, extent);
  return form;
}

static MPI_Comm self;
void forms_begin(void) { MPI_Comm_dup(MPI_COMM_SELF, &self); }
void forms_end(void) { MPI_Comm_free(&self); }

static Form row(Draw* draw, Unit const* unit, long units) {
  Form child = unit_form(draw, unit), form = {.type = MPI_DATATYPE_NULL};
  place(&form, &child, 0, units);
  MPI_Type_contiguous((int)units, child.type, &form.type);
  form_free(&child);
  bounds(&form);
  return form;
}

/* True if the MPI moves the bytes that the form says, in messages to this rank itself. */
static int works(Form const* form, long count) {
  long const bytes = count * form->size, length = (count - 1) * form->extent + form->high - form->low;
  unsigned char *const memory = malloc(4 * (size_t)length + 2 * (size_t)bytes), *const from = memory,
                       *const to = from + length;
  unsigned char *const there = to + length, *const want = there + length, *const packed = want + length;
  unsigned char* const ours = packed + bytes;
  for (long i = 0; i < length; ++i) from[i] = (unsigned char)(i * 167 + (i >> 8) * 13);
  memset(to, 1, (size_t)length), memset(want, 1, (size_t)length), memset(there, 1, (size_t)length);
  form_get(form, count, from - form->low, ours), form_put(form, count, want - form->low, ours);
  MPI_Sendrecv(from - form->low, (int)count, form->type, 0, 1, packed, (int)bytes, MPI_BYTE, 0, 1, self,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(ours, (int)bytes, MPI_BYTE, 0, 1, to - form->low, (int)count, form->type, 0, 1, self, MPI_STATUS_IGNORE);
  MPI_Sendrecv(from - form->low, (int)count, form->type, 0, 1, there - form->low, (int)count, form->type, 0, 1, self,
               MPI_STATUS_IGNORE);
  int const good = memcmp(packed, ours, (size_t)bytes) == 0 && memcmp(to, want, (size_t)length) == 0 &&
                   memcmp(there, want, (size_t)length) == 0;
  free(memory);
  return good;
}

Form form_of(Draw* draw, Unit const* unit, long units, long elements) {
  if (elements < 1) elements = 1;
  for (int tries = 0;; ++tries) {
    int const as_column = units > 1 && one_in(draw, 6) && units * elements * 3 * align < span_max;
    Form form = tries == 4  ? row(draw, unit, units)
                : as_column ? column(draw, unit, units, elements)
                            : build(draw, unit, units, (int)below(draw, 3));
    int const has_room = elements * form.extent + form.high < span_max;
    MPI_Type_commit(&form.type);
    if (tries == 4 || (has_room && works(&form, elements))) return form;
    form_free(&form);
  }
}

void form_get(Form const* form, long count, unsigned char const* base, unsigned char* packed) {
  for (long j = 0; j < count; ++j)
    for (long i = 0; i < form->pieces; packed += form->piece[i++].length)
      memcpy(packed, base + j * form->extent + form->piece[i].at, (size_t)form->piece[i].length);
}

void form_put(Form const* form, long count, unsigned char* base, unsigned char const* packed) {
  for (long j = 0; j < count; ++j)
    for (long i = 0; i < form->pieces; packed += form->piece[i++].length)
      memcpy(base + j * form->extent + form->piece[i].at, packed, (size_t)form->piece[i].length);
}
