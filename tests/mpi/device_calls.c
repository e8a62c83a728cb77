/* Calls with buffers in a GPU's memory that tests/mpi/layer and tests/mpi/collectives do not draw:
 *   reduce SEED ROUNDS   reductions of random operations, types and forms, each compared with sums made here
 *   pack SEED ROUNDS     MPI_Pack and MPI_Unpack of random types, at random places of the packed buffer
 *   errors WHAT          one call that must fail, by the error handler of its communicator
 * Ends with "calls N wrong 0" from rank 0, or with the error's text. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/device.h"
#include "layer/form.h"

enum { guard = 64, ranks_max = 8 };

static int rank, size, all_wrong;
static long calls;

typedef struct {
  unsigned char *memory, *window, *expected;
  long length;
} Room;

static Room room_of(long bytes, Draw* draw) {
  Room room = {.length = bytes + 2 * guard};
  room.memory = device_alloc(room.length, &room.window);
  room.expected = malloc((size_t)room.length);
  for (long i = 0; i < room.length; ++i) room.expected[i] = room.window[i] = (unsigned char)draw_next(draw);
  return room;
}
static void check_room(Room const* room, char const* what, long round) {
  for (long i = 0; i < room->length; ++i) {
    if (room->window[i] == room->expected[i]) continue;
    if (all_wrong++ < 4)
      fprintf(stderr, "rank %d, round %ld, %s: byte %ld of %ld is wrong\n", rank, round, what, i - guard,
              room->length - 2 * guard);
    return;
  }
}
static void room_free(Room* room) { device_free(room->memory, room->window), free(room->expected); }

/* ---- reductions ---- */

typedef struct {
  char const* name;
  MPI_Datatype type;
  MPI_Op op;
  long extent;
  int kind;
} Operand;
enum { of_int, of_double, of_pair, of_spaced };

/* Two ints with an int's gap between them. */
static void add_spaced(void* in, void* out, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) {
    int const* const from = (int const*)in + 4L * i;
    int* const to = (int*)out + 4L * i;
    to[0] += from[0], to[2] += from[2];
  }
}

static int value_of(uint64_t seed, long round, int of_rank, long index) {
  Draw draw = draw_from(seed + (uint64_t)round * 131, (uint64_t)of_rank, (uint64_t)index);
  return (int)below(&draw, 2000) - 1000;
}
static int both(Operand const* operand, int a, int b) {
  if (operand->op == MPI_MAX || operand->op == MPI_MAXLOC) return a > b ? a : b;
  if (operand->op == MPI_BXOR) return a ^ b;
  return a + b;
}

/* Writes element `index` of the reduction over ranks first..last. */
static void put_element(Operand const* operand, unsigned char* at, uint64_t seed, long round, long index, int first,
                        int last) {
  int value = value_of(seed, round, first, index), second = value_of(seed, round, first, -1 - index), owner = first;
  for (int from = first + 1; from <= last; ++from) {
    int const other = value_of(seed, round, from, index);
    if (other > value) owner = from;
    value = both(operand, value, other), second = both(operand, second, value_of(seed, round, from, -1 - index));
  }
  double const real = value;
  switch (operand->kind) {
    case of_int: memcpy(at, &value, sizeof value); break;
    case of_double: memcpy(at, &real, sizeof real); break;
    case of_pair: memcpy(at, &real, sizeof real), memcpy(at + 8, &owner, sizeof owner); break;
    default: memcpy(at, &value, sizeof value), memcpy(at + 8, &second, sizeof second);
  }
}
static void put_row(Operand const* operand, unsigned char* at, uint64_t seed, long round, long begin, long count,
                    int first, int last) {
  for (long i = 0; i < count; ++i) put_element(operand, at + i * operand->extent, seed, round, begin + i, first, last);
}

#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 50000000
enum { reduces_badly = 1 }; /* MPICH 4.0.2 reads MPI_IN_PLACE as an address in MPI_Reduce, also without the layer */
#else
enum { reduces_badly = 0 };
#endif
enum { reduce, allreduce, scan, exscan, scatter_block, scatter, reductions };
#define REDUCE(waits, upper, lower, ...) ((waits) ? MPI_I##lower(__VA_ARGS__, &request) : MPI_##upper(__VA_ARGS__))

static void reduce_round(Draw* plan, uint64_t seed, long round, Operand const* operands, int kinds) {
  Operand const* const operand = &operands[below(plan, kinds)];
  int const what = (int)below(plan, reductions), waits = one_in(plan, 2);
  int const in_place = one_in(plan, 3) && what != exscan && (what != reduce || waits || !reduces_badly);
  int const root = (int)below(plan, size);
  long const each = 1 + magnitude(plan, 3000);
  int counts[ranks_max];
  long all = 0, before = 0;
  for (int i = 0; i < size; ++i) {
    counts[i] = what == scatter ? (int)below(plan, each) : (int)each;
    if (i < rank) before += counts[i];
    all += counts[i];
  }
  int const spreads = what == scatter_block || what == scatter;
  /* In place, every rank's buffer has all parts. */
  long const given = spreads ? all : each, got = spreads && !in_place ? counts[rank] : given;
  Draw own = draw_from(seed, (uint64_t)round, 100 + (uint64_t)rank);
  Room in = room_of(given * operand->extent, &own), out = room_of(got * operand->extent, &own);
  Room* const source = in_place ? &out : &in;
  put_row(operand, source->window + guard, seed, round, 0, given, rank, rank);
  memcpy(source->expected, source->window, (size_t)source->length);
  int const is_root = what != reduce || rank == root;
  if (is_root) {
    int const last = what == scan ? rank : what == exscan ? rank - 1 : size - 1;
    if (last >= 0)
      put_row(operand, out.expected + guard, seed, round, spreads ? before : 0, spreads ? counts[rank] : each, 0, last);
  }
  void const* const from = in_place && is_root ? MPI_IN_PLACE : source->memory + guard;
  void* const to = is_root ? out.memory + guard : NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Datatype const type = operand->type;
  MPI_Op const op = operand->op;
  MPI_Comm const comm = MPI_COMM_WORLD;
  int code;
  switch (what) {
    case reduce: code = REDUCE(waits, Reduce, reduce, from, to, (int)each, type, op, root, comm); break;
    case allreduce: code = REDUCE(waits, Allreduce, allreduce, from, to, (int)each, type, op, comm); break;
    case scan: code = REDUCE(waits, Scan, scan, from, to, (int)each, type, op, comm); break;
    case exscan: code = REDUCE(waits, Exscan, exscan, from, to, (int)each, type, op, comm); break;
    case scatter_block:
      code = REDUCE(waits, Reduce_scatter_block, reduce_scatter_block, from, to, (int)each, type, op, comm);
      break;
    default: code = REDUCE(waits, Reduce_scatter, reduce_scatter, from, to, counts, type, op, comm);
  }
  if (waits && code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) ++all_wrong, fprintf(stderr, "round %ld: reduction %d gives %d\n", round, what, code);
  char name[100];
  snprintf(name, sizeof name, "reduction %d of %ld %s%s%s, root %d", what, each, operand->name,
           in_place ? ", in place" : "", waits ? ", waits" : "", root);
  /* In place, what lies behind this rank's part is anybody's. */
  if (spreads && in_place)
    memcpy(out.expected + guard + counts[rank] * operand->extent, out.window + guard + counts[rank] * operand->extent,
           (size_t)((given - counts[rank]) * operand->extent));
  check_room(&in, name, round), check_room(&out, name, round);
  room_free(&in), room_free(&out);
  ++calls;
}

static void run_reductions(uint64_t seed, long rounds) {
  MPI_Datatype pair, spaced;
  MPI_Op add;
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
  MPI_Type_create_resized(pair, 0, 16, &spaced);
  MPI_Type_commit(&spaced);
  MPI_Op_create(add_spaced, 1, &add);
  Operand const operands[] = {{"ints", MPI_INT, MPI_SUM, 4, of_int},
                              {"ints", MPI_INT, MPI_BXOR, 4, of_int},
                              {"doubles", MPI_DOUBLE, MPI_SUM, 8, of_double},
                              {"doubles", MPI_DOUBLE, MPI_MAX, 8, of_double},
                              {"pairs", MPI_DOUBLE_INT, MPI_MAXLOC, 16, of_pair},
                              {"spaced ints", spaced, add, 16, of_spaced}};
  for (long round = 0; round < rounds; ++round) {
    Draw plan = draw_from(seed, (uint64_t)round, 0);
    reduce_round(&plan, seed, round, operands, (int)(sizeof operands / sizeof *operands));
  }
  MPI_Op_free(&add), MPI_Type_free(&spaced), MPI_Type_free(&pair);
}

/* ---- packing ---- */

static void run_packing(uint64_t seed, long rounds) {
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  forms_begin(self, MPI_COMM_WORLD);
  for (long round = 0; round < rounds; ++round) {
    Draw plan = draw_from(seed, (uint64_t)round, 0);
    Unit const unit = unit_of(&plan);
    long const units = magnitude(&plan, 2000 / unit.size + 1), count = 1 + below(&plan, 20);
    Form form = form_of(&plan, &unit, units, count, 0);
    long low, high;
    form_span(&form, count, &low, &high);
    long const bytes = form.size * count, before = below(&plan, 100), behind = below(&plan, 100);
    Room memory = room_of(high - low, &plan), packed = room_of(before + bytes + behind, &plan);
    unsigned char* const base = memory.memory + guard - low;
    int position = (int)before;
    form_gather(&form, count, bytes, memory.window + guard - low, packed.expected + guard + before);
    int code = MPI_Pack(base, (int)count, form.type, packed.memory + guard, (int)(before + bytes), &position, self);
    if (code != MPI_SUCCESS || position != before + bytes)
      ++all_wrong, fprintf(stderr, "Pack gives %d and position %d\n", code, position);
    check_room(&memory, "Pack's source", round), check_room(&packed, form.name, round);
    for (long i = 0; i < bytes; ++i)
      packed.expected[guard + before + i] = packed.window[guard + before + i] = (unsigned char)draw_next(&plan);
    form_scatter(&form, count, bytes, memory.expected + guard - low, packed.expected + guard + before);
    position = (int)before;
    code = MPI_Unpack(packed.memory + guard, (int)(before + bytes), &position, base, (int)count, form.type, self);
    if (code != MPI_SUCCESS || position != before + bytes)
      ++all_wrong, fprintf(stderr, "Unpack gives %d and position %d\n", code, position);
    check_room(&packed, "Unpack's source", round), check_room(&memory, form.name, round);
    room_free(&memory), room_free(&packed);
    form_free(&form);
    calls += 2;
  }
  MPI_Comm_free(&self);
}

/* ---- errors: on two ranks ---- */

static int heard;
static char heard_text[MPI_MAX_ERROR_STRING];
static void hear(MPI_Comm* comm, int* code, ...) {
  int length;
  (void)comm;
  MPI_Error_string(*code, heard_text, &length);
  ++heard;
}

static int run_error(char const* what) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Datatype both_memories;
  MPI_Request request = MPI_REQUEST_NULL;
  Draw draw = draw_from(1, 2, 3);
  int code = MPI_SUCCESS, none = 0;
  long const bytes = 1 << 20;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(hear, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  Room room = room_of(bytes, &draw);
  char host[64] = {0};
  if (strcmp(what, "send") == 0 && rank == 0) code = MPI_Send(room.memory, (int)bytes, MPI_BYTE, 1, 0, comm);
  if (strcmp(what, "freed") == 0) {
    if (rank == 0) {
      MPI_Irecv(room.memory, (int)bytes, MPI_BYTE, 1, 0, comm, &request);
      device_free(room.memory, room.window), room.memory = NULL;
      MPI_Send(&none, 1, MPI_INT, 1, 1, comm);
      code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&none, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);
      MPI_Send(host, 64, MPI_BYTE, 0, 0, comm);
    }
  }
  if (strcmp(what, "mixed") == 0 && rank == 0) { /* one buffer with bytes in both memories */
    int const lengths[2] = {64, 64};
    MPI_Aint places[2];
    MPI_Get_address(room.memory, &places[0]);
    MPI_Get_address(host, &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_BYTE, &both_memories);
    MPI_Type_commit(&both_memories);
    code = MPI_Send(MPI_BOTTOM, 1, both_memories, 1, 0, comm);
    MPI_Type_free(&both_memories);
  }
  if (rank == 0) printf("code %d heard %d: %s\n", code != MPI_SUCCESS, heard, heard_text);
  MPI_Barrier(MPI_COMM_WORLD);
  if (room.memory != NULL) device_free(room.memory, room.window);
  free(room.expected);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  uint64_t const seed = argc > 3 ? strtoull(argv[2], NULL, 10) : 0;
  if (argc < 3 || size > ranks_max) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(argv[1], "errors") == 0) run_error(argv[2]);
  if (strcmp(argv[1], "reduce") == 0) run_reductions(seed, atol(argv[3]));
  if (strcmp(argv[1], "pack") == 0) run_packing(seed, atol(argv[3]));
  int any = 0;
  MPI_Allreduce(&all_wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("calls %ld wrong %d\n", calls, any);
  MPI_Finalize();
  return any != 0;
}
