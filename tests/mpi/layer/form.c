#include "form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { depth_max = 4, parts_max = 64, kinds_with_gaps = 4 };

typedef struct {
  MPI_Datatype type;
  int parts;
  int at[2], length[2];
  int elements;
} Kind;

static Kind kind_of(int number) {
  switch (number) {
    case 0: return (Kind){MPI_DOUBLE_INT, 2, {0, 8}, {8, 4}, 2};
    case 1: return (Kind){MPI_SHORT_INT, 2, {0, 4}, {2, 4}, 2};
    case 2: return (Kind){MPI_LONG_INT, 2, {0, 8}, {8, 4}, 2};
    case 3: return (Kind){MPI_LONG_DOUBLE_INT, 2, {0, 16}, {16, 4}, 2};
    case 4: return (Kind){MPI_FLOAT_INT, 1, {0}, {8}, 2};
    case 5: return (Kind){MPI_2INT, 1, {0}, {8}, 2};
    case 6: return (Kind){MPI_CHAR, 1, {0}, {1}, 1};
    case 7: return (Kind){MPI_BYTE, 1, {0}, {1}, 1};
    case 8: return (Kind){MPI_SHORT, 1, {0}, {2}, 1};
    case 9: return (Kind){MPI_INT, 1, {0}, {4}, 1};
    case 10: return (Kind){MPI_FLOAT, 1, {0}, {4}, 1};
    case 11: return (Kind){MPI_INT64_T, 1, {0}, {8}, 1};
    case 12: return (Kind){MPI_LONG_DOUBLE, 1, {0}, {16}, 1};
    case 13: return (Kind){MPI_C_DOUBLE_COMPLEX, 1, {0}, {16}, 1};
    default: return (Kind){MPI_DOUBLE, 1, {0}, {8}, 1};
  }
}
static int draw_kind(Draw* draw) {
  int const kind = (int)(one_in(draw, 8) ? below(draw, 6) : 6 + below(draw, 11));
#ifndef OPEN_MPI
  if (kind == 3 || kind == 12) return kind + 1; /* MPICH copies long double without its last six bytes */
#endif
  return kind;
}

#ifdef OPEN_MPI
enum { splits_pairs = 1 };
#else
enum { splits_pairs = 0 }; /* long messages of MPICH do not match such types */
#endif

static __thread MPI_Comm self_comm, all_comm;

void forms_begin(MPI_Comm self, MPI_Comm all) { self_comm = self, all_comm = all; }

Unit unit_of(Draw* draw) {
  Unit unit = {.kinds = one_in(draw, 3) ? 2 + (int)below(draw, unit_max - 1) : 1};
  for (int i = 0; i < unit.kinds; ++i) {
    unit.kind[i] = draw_kind(draw);
    Kind const kind = kind_of(unit.kind[i]);
    for (int part = 0; part < kind.parts; ++part) unit.size += kind.length[part];
    unit.elements += kind.elements;
  }
  return unit;
}

static void piece(Form* form, long at, long length) {
  if (length == 0) return;
  if (form->pieces > 0 && form->at[form->pieces - 1] + form->length[form->pieces - 1] == at) {
    form->length[form->pieces - 1] += length;
  } else {
    if (form->pieces == form->room) {
      form->room = 2 * form->room + 16;
      form->at = realloc(form->at, (size_t)form->room * sizeof(long));
      form->length = realloc(form->length, (size_t)form->room * sizeof(long));
    }
    form->at[form->pieces] = at;
    form->length[form->pieces++] = length;
  }
  if (form->size == 0 || at < form->low) form->low = at;
  if (form->size == 0 || at + length > form->high) form->high = at + length;
  form->size += length;
}

/* `count` elements of a form, the first at `at`. */
static void place(Form* form, Form const* child, long at, long count) {
  for (long i = 0; i < count; ++i)
    for (long k = 0; k < child->pieces; ++k) piece(form, at + i * child->extent + child->at[k], child->length[k]);
  form->units += count * child->units;
}

static Form begin(char const* name, Form const* child) {
  Form form = {.type = MPI_DATATYPE_NULL};
  if (child)
    snprintf(form.name, sizeof form.name, "%s(%.180s", name, child->name);
  else
    snprintf(form.name, sizeof form.name, "%s", name);
  return form;
}

static void bounds(Form* form) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(form->type, &lb, &extent);
  form->extent = extent;
}

static Form one_kind(int number) {
  Kind const kind = kind_of(number);
  Form form = begin("basic", NULL);
  snprintf(form.name, sizeof form.name, "kind%d", number);
  for (int part = 0; part < kind.parts; ++part) piece(&form, kind.at[part], kind.length[part]);
  form.units = 1;
  MPI_Type_dup(kind.type, &form.type); /* every form has a type of its own to free */
  bounds(&form);
  return form;
}

/* The unit at this end: its basic types in their order, anywhere. */
static Form unit_form(Draw* draw, Unit const* unit) {
  Kind kinds[2 * unit_max];
  int n = 0;
  for (int i = 0; i < unit->kinds; ++i) {
    Kind const kind = kind_of(unit->kind[i]);
    if (splits_pairs && kind.elements == 2 && one_in(draw, 2)) { /* a pair is the same as its two parts */
      int const first = unit->kind[i];
      MPI_Datatype const of[] = {MPI_DOUBLE, MPI_SHORT, MPI_LONG, MPI_LONG_DOUBLE, MPI_FLOAT, MPI_INT};
      int bytes;
      MPI_Type_size(of[first], &bytes);
      kinds[n++] = (Kind){of[first], 1, {0}, {bytes}, 1};
      kinds[n++] = (Kind){MPI_INT, 1, {0}, {4}, 1};
    } else {
      kinds[n++] = kind;
    }
  }
  if (n == 1) return one_kind(unit->kind[0]);
  int order[2 * unit_max], length[2 * unit_max];
  MPI_Aint at[2 * unit_max];
  MPI_Datatype types[2 * unit_max];
  for (int i = 0; i < n; ++i) order[i] = i, length[i] = 1, types[i] = kinds[i].type;
  shuffle(draw, n, order);
  MPI_Aint next = 0;
  for (int i = 0; i < n; ++i) at[order[i]] = next, next += 16 * (1 + below(draw, 2)) + 16;
  Form form = begin("unit", NULL);
  MPI_Type_create_struct(n, length, at, types, &form.type);
  for (int i = 0; i < n; ++i) {
    Kind const kind = kinds[i];
    for (int part = 0; part < kind.parts; ++part) piece(&form, at[i] + kind.at[part], kind.length[part]);
  }
  form.units = 1;
  bounds(&form);
  return form;
}

static long divisor(Draw* draw, long n) {
  for (int tries = 0; tries < 8; ++tries) {
    long const d = 1 + below(draw, n < 64 ? n : 64);
    if (n % d == 0) return d;
  }
  return n % 2 == 0 ? 2 : 1;
}

/* Parts of n, each at least 1. */
static int split(Draw* draw, long n, int most, int* part) {
  int const parts = 1 + (int)below(draw, n < most ? n : most);
  long left = n;
  for (int i = 0; i < parts; ++i) {
    long const spare = left - (parts - 1 - i);
    part[i] = (int)(i == parts - 1 ? left : 1 + below(draw, spare < 2 * n / parts + 1 ? spare : 2 * n / parts + 1));
    left -= part[i];
  }
  return parts;
}

static long absolute(long n) { return n < 0 ? -n : n; }

/* Steps of the child's extent that keep `length` children in a row apart; sometimes too short, where that is legal. */
static long steps(Draw* draw, Form const* child, long length, int overlap) {
  long const extent = child->extent ? absolute(child->extent) : 1;
  long const needed = ((length - 1) * extent + child->high - child->low + extent - 1) / extent;
  long const step = overlap && one_in(draw, 4) ? below(draw, needed + 1) : needed + below(draw, 4);
  return one_in(draw, 5) ? -step : step;
}

static Form vector(Draw* draw, Form* child, long n, int overlap) {
  long const count = divisor(draw, n), length = n / count, step = steps(draw, child, length, overlap);
  int const bytes = one_in(draw, 2);
  long const odd = bytes && one_in(draw, 4) ? (step < 0 ? -1 : 1) * below(draw, 8) : 0;
  Form form = begin(bytes ? "hvector" : "vector", child);
  if (bytes)
    MPI_Type_create_hvector((int)count, (int)length, step * child->extent + odd, child->type, &form.type);
  else
    MPI_Type_vector((int)count, (int)length, (int)step, child->type, &form.type);
  for (long i = 0; i < count; ++i) place(&form, child, i * (step * child->extent + odd), length);
  return form;
}

static Form list(Draw* draw, Form* child, long n, int overlap) {
  int part[parts_max], order[parts_max], parts = split(draw, n, parts_max, part), in_bytes = one_in(draw, 2);
  int steps_to[parts_max], same = one_in(draw, 4);
  MPI_Aint at[parts_max];
  if (same) {
    parts = (int)divisor(draw, n);
    for (int i = 0; i < parts; ++i) part[i] = (int)(n / parts);
  }
  for (int i = 0; i < parts; ++i) order[i] = i;
  if (one_in(draw, 2)) shuffle(draw, parts, order);
  long next = below(draw, 4) - 1;
  for (int i = 0; i < parts; ++i) {
    steps_to[order[i]] = (int)next, at[order[i]] = next * child->extent;
    next += absolute(steps(draw, child, part[order[i]], overlap));
  }
  Form form = begin(same ? "block" : in_bytes ? "hindexed" : "indexed", child);
  if (same && in_bytes)
    MPI_Type_create_hindexed_block(parts, part[0], at, child->type, &form.type);
  else if (same)
    MPI_Type_create_indexed_block(parts, part[0], steps_to, child->type, &form.type);
  else if (in_bytes)
    MPI_Type_create_hindexed(parts, part, at, child->type, &form.type);
  else
    MPI_Type_indexed(parts, part, steps_to, child->type, &form.type);
  for (int i = 0; i < parts; ++i) place(&form, child, at[i], part[i]);
  return form;
}

static Form subarray(Draw* draw, Form* child, long n) {
  int size[3], sub[3], start[3], dimensions = 1 + (int)below(draw, 3), c_order = one_in(draw, 2);
  long left = n;
  for (int i = 0; i < dimensions; ++i) {
    sub[i] = (int)(i == dimensions - 1 ? left : divisor(draw, left));
    left /= sub[i];
    start[i] = (int)below(draw, 3), size[i] = sub[i] + start[i] + (int)below(draw, 3);
  }
  for (int i = dimensions; i < 3; ++i) sub[i] = size[i] = 1, start[i] = 0;
  Form form = begin("subarray", child);
  MPI_Type_create_subarray(dimensions, size, sub, start, c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child->type,
                           &form.type);
  int const slow = c_order ? 0 : 2, fast = c_order ? 2 : 0;
  long step[3];
  step[fast] = child->extent, step[1] = step[fast] * size[fast], step[slow] = step[1] * size[1];
  for (int i = 0; i < sub[slow]; ++i)
    for (int j = 0; j < sub[1]; ++j)
      place(&form, child, (start[slow] + i) * step[slow] + (start[1] + j) * step[1] + start[fast] * step[fast],
            sub[fast]);
  return form;
}

/* A rank's share of an array that is dealt out; every rank's share is equally large. */
static Form darray(Draw* draw, Form* child, long n) {
  int share[2] = {(int)divisor(draw, n)}, sizes[2], grid[2], how[2], argument[2], c_order = one_in(draw, 2);
  share[1] = (int)(n / share[0]);
  for (int i = 0; i < 2; ++i) {
    how[i] = one_in(draw, 3) ? MPI_DISTRIBUTE_NONE : one_in(draw, 2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
    grid[i] = how[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + (int)below(draw, 3);
    sizes[i] = share[i] * grid[i];
    argument[i] = how[i] == MPI_DISTRIBUTE_CYCLIC ? (int)divisor(draw, share[i]) : MPI_DISTRIBUTE_DFLT_DARG;
  }
  int const ranks = grid[0] * grid[1], rank = (int)below(draw, ranks), mine[2] = {rank / grid[1], rank % grid[1]};
  Form form = begin("darray", child);
  MPI_Type_create_darray(ranks, rank, 2, sizes, how, argument, grid, c_order ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                         child->type, &form.type);
  int const slow = c_order ? 0 : 1, fast = 1 - slow;
  for (int i = 0; i < share[slow]; ++i)
    for (int j = 0; j < share[fast]; ++j) {
      long index[2];
      int const of[2] = {slow == 0 ? i : j, slow == 0 ? j : i};
      for (int d = 0; d < 2; ++d) {
        int const block = how[d] == MPI_DISTRIBUTE_CYCLIC ? argument[d] : share[d];
        index[d] = (long)(of[d] / block * grid[d] + mine[d]) * block + of[d] % block;
      }
      place(&form, child, (index[slow] * sizes[fast] + index[fast]) * child->extent, 1);
    }
  return form;
}

static Form any(Draw* draw, Unit const* unit, long n, int depth, int overlap);

/* Several forms, one behind the other in packed order, anywhere in memory. */
static Form structure(Draw* draw, Unit const* unit, long n, int depth, int overlap) {
  int part[5], order[5], length[5], parts = split(draw, n, 5, part);
  MPI_Datatype types[5];
  MPI_Aint at[5], next = below(draw, 64) - 32;
  Form child[5];
  for (int i = 0; i < parts; ++i) {
    length[i] = (int)divisor(draw, part[i]), order[i] = i;
    child[i] = any(draw, unit, part[i] / length[i], depth + 1, overlap);
    types[i] = child[i].type;
  }
  shuffle(draw, parts, order);
  for (int k = 0; k < parts; ++k) {
    int const i = order[k];
    long const run = (length[i] - 1) * child[i].extent, back = run < 0 ? -run : 0;
    at[i] = next - child[i].low + back;
    next = at[i] + child[i].high + (run > 0 ? run : 0) + below(draw, 16);
  }
  Form form = begin("struct", &child[0]);
  MPI_Type_create_struct(parts, length, at, types, &form.type);
  for (int i = 0; i < parts; ++i) place(&form, &child[i], at[i], length[i]);
  for (int i = 0; i < parts; ++i) form_free(&child[i]);
  return form;
}

/* Columns of a matrix, one behind the other. */
static Form transpose(Draw* draw, Form* child, long n) {
  long const columns = divisor(draw, n), rows = n / columns;
  MPI_Datatype column, stepped;
  MPI_Type_vector((int)rows, 1, (int)columns, child->type, &column);
  MPI_Type_create_resized(column, 0, child->extent, &stepped);
  Form form = begin("transpose", child);
  MPI_Type_contiguous((int)columns, stepped, &form.type);
  MPI_Type_free(&column), MPI_Type_free(&stepped);
  for (long j = 0; j < columns; ++j)
    for (long i = 0; i < rows; ++i) place(&form, child, (i * columns + j) * child->extent, 1);
  return form;
}

static Form any(Draw* draw, Unit const* unit, long n, int depth, int overlap) {
#ifndef OPEN_MPI
  if (n == 0) { /* MPICH divides by the zero bytes of other empty types */
    Form empty = begin("empty", NULL);
    MPI_Type_contiguous(0, MPI_INT, &empty.type);
    bounds(&empty);
    return empty;
  }
#endif
  int const kind = n == 0 ? 0 : (int)below(draw, depth >= depth_max ? 6 : 11);
  Form form;
  if (kind == 10) {
    form = structure(draw, unit, n, depth, overlap);
    bounds(&form);
    return form;
  }
  long inner = 1;
  if (depth < depth_max && n > 1 && one_in(draw, 2)) inner = divisor(draw, n);
  Form child = inner > 1 ? any(draw, unit, inner, depth + 1, overlap) : unit_form(draw, unit);
  n /= inner;
  switch (kind) {
    case 1:
    case 2: form = vector(draw, &child, n, overlap); break;
    case 3:
    case 4: form = list(draw, &child, n, overlap); break;
    case 5: form = subarray(draw, &child, n); break;
    case 6: form = darray(draw, &child, n); break;
    case 7: form = transpose(draw, &child, n); break;
    case 8: { /* other bounds */
      Form whole = begin("contiguous", &child);
      MPI_Type_contiguous((int)n, child.type, &whole.type);
      place(&whole, &child, 0, n);
      form = begin("resized", &whole);
      long const lb = whole.low - below(draw, 32), extent = whole.high - whole.low + below(draw, 64);
#ifdef OPEN_MPI
      int const steps_back = one_in(draw, 8);
#else
      int const steps_back = 0; /* MPICH reads beyond the buffer */
#endif
      MPI_Type_create_resized(whole.type, lb, steps_back ? -extent : extent, &form.type);
      place(&form, &whole, 0, 1);
      form.units = n * child.units;
      form_free(&whole);
      break;
    }
    case 9:
      form = begin("dup", &child);
      if (n == 1) {
        MPI_Type_dup(child.type, &form.type);
      } else {
        MPI_Datatype row;
        MPI_Type_contiguous((int)n, child.type, &row);
        MPI_Type_dup(row, &form.type);
        MPI_Type_free(&row);
      }
      place(&form, &child, 0, n);
      break;
    default:
      form = begin("contiguous", &child);
      MPI_Type_contiguous((int)n, child.type, &form.type);
      place(&form, &child, 0, n);
  }
  form_free(&child);
  bounds(&form);
  return form;
}

void form_span(Form const* form, long count, long* low, long* high) {
  long const last = count > 0 ? (count - 1) * form->extent : 0;
  *low = form->low + (last < 0 ? last : 0);
  *high = form->high + (last > 0 ? last : 0);
}

static int overlaps(Form const* form, long count) {
  long low, high, bad = 0;
  form_span(form, count, &low, &high);
  unsigned char* const seen = calloc((size_t)(high - low + 1), 1);
  for (long j = 0; j < count && !bad; ++j)
    for (long i = 0; i < form->pieces && !bad; ++i) {
      unsigned char* const at = seen + j * form->extent + form->at[i] - low;
      bad = memchr(at, 1, (size_t)form->length[i]) != NULL;
      memset(at, 1, (size_t)form->length[i]);
    }
  free(seen);
  return bad != 0;
}

/* True if the MPI moves the bytes that the form says. */
static int works(Form const* form, long count, int overlap) {
  long low, high, bytes;
  if (count > 3) count = 3;
  bytes = form->size * count;
  if (bytes > 1 << 20) bytes = form->size, count = 1;
  form_span(form, count, &low, &high);
  size_t const length = (size_t)(high - low);
  unsigned char *const memory = malloc(2 * length + 2 * (size_t)bytes + 1), *const copy = memory + length;
  unsigned char *const packed = copy + length, *const ours = packed + bytes;
  for (size_t i = 0; i < length; ++i) memory[i] = (unsigned char)(i * 167 + (i >> 8) * 13);
  memset(copy, 1, length), memset(packed, 1, (size_t)bytes);
  form_gather(form, count, bytes, memory - low, ours);
  MPI_Sendrecv(memory - low, (int)count, form->type, 0, 1, packed, (int)bytes, MPI_BYTE, 0, 1, self_comm,
               MPI_STATUS_IGNORE);
  int good = memcmp(packed, ours, (size_t)bytes) == 0;
  if (good && !overlap) {
    MPI_Sendrecv(packed, (int)bytes, MPI_BYTE, 0, 1, copy - low, (int)count, form->type, 0, 1, self_comm,
                 MPI_STATUS_IGNORE);
    memset(memory, 1, length);
    form_scatter(form, count, bytes, memory - low, packed);
    good = memcmp(memory, copy, length) == 0;
  }
  free(memory);
  return good;
}

static Form plain_row(Draw* draw, Unit const* unit, long n) {
  Form row = unit_form(draw, unit), all = begin("plain", &row);
  MPI_Type_contiguous((int)n, row.type, &all.type);
  place(&all, &row, 0, n);
  bounds(&all);
  form_free(&row);
  return all;
}

Form form_of(Draw* draw, Unit const* unit, long n, long count, int overlap) {
  for (int tries = 0;; ++tries) {
    int const last = tries == 20;
    Form form = last ? plain_row(draw, unit, n) : any(draw, unit, n, one_in(draw, 3) ? 3 : 0, overlap);
    long low, high;
    form_span(&form, count, &low, &high);
    MPI_Type_commit(&form.type);
    int const sparse = high - low > 64 * (form.size * count + 256);
    int mine = last || (!sparse && (overlap || !overlaps(&form, count)) && works(&form, count, overlap)), all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, all_comm);
    if (all) return form;
    form_free(&form);
  }
}

Form form_packed(void) {
  Form form = begin("packed", NULL);
  form.type = MPI_PACKED, form.extent = 1;
  piece(&form, 0, 1);
  return form;
}

void form_free_type(Form* form) {
  if (form->type != MPI_DATATYPE_NULL && form->type != MPI_PACKED) MPI_Type_free(&form->type);
}

void form_free(Form* form) {
  form_free_type(form);
  free(form->at), free(form->length);
  form->at = form->length = NULL;
}

void form_gather(Form const* form, long count, long bytes, unsigned char const* base, unsigned char* packed) {
  for (long j = 0; j < count && bytes > 0; ++j)
    for (long i = 0; i < form->pieces && bytes > 0; ++i) {
      long const length = form->length[i] < bytes ? form->length[i] : bytes;
      memcpy(packed, base + j * form->extent + form->at[i], (size_t)length);
      packed += length, bytes -= length;
    }
}

void form_scatter(Form const* form, long count, long bytes, unsigned char* base, unsigned char const* packed) {
  for (long j = 0; j < count && bytes > 0; ++j)
    for (long i = 0; i < form->pieces && bytes > 0; ++i) {
      long const length = form->length[i] < bytes ? form->length[i] : bytes;
      memcpy(base + j * form->extent + form->at[i], packed, (size_t)length);
      packed += length, bytes -= length;
    }
}
