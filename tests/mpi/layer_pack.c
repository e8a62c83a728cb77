/* Packs and unpacks random datatypes and says what came out: SEED ROUNDS. What it prints must not depend on the layer.
 *
 * Each round makes a random tree of constructors, packs some elements behind others at a random position, and unpacks
 * them into a buffer of other bytes; positions and both buffers go into a sum. Then the errors: rooms that are too
 * short, types that are not committed, no communicator. Last, a type of absolute addresses; not every MPI takes that
 * one. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LARGE
#define LARGE 0
#endif
#if LARGE
#if MPI_VERSION < 4
#error "not this MPI: it has no MPI_Pack_c"
#endif
typedef MPI_Count Number;
#define PACK MPI_Pack_c
#define UNPACK MPI_Unpack_c
#define PACK_SIZE MPI_Pack_size_c
#else
typedef int Number;
#define PACK MPI_Pack
#define UNPACK MPI_Unpack
#define PACK_SIZE MPI_Pack_size
#endif

/* Cases that an MPI gets wrong without the layer are left out: Open MPI packs blocks that step back from other places
 * (see docs/mpi-differences.md); MPICH ends the process if a room is too short or a type is not committed. */
#ifdef OPEN_MPI
enum { may_step_back = 0, returns_errors = 1 };
#else
enum { may_step_back = 1, returns_errors = 0 };
#endif
enum { margin = 1 << 16, room = 1 << 20 };

static uint64_t state;
static uint64_t draw(void) { /* splitmix64 */
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static int below(int n) { return (int)(draw() % (uint64_t)n); }

static uint64_t sum_of(uint64_t sum, void const* bytes, long n) { /* FNV-1a */
  unsigned char const* at = bytes;
  for (long i = 0; i < n; ++i) sum = (sum ^ at[i]) * 0x100000001b3u;
  return sum;
}

static MPI_Datatype leaf(void) {
  MPI_Datatype const leaves[] = {MPI_CHAR, MPI_SHORT,     MPI_INT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX,
                                 MPI_2INT, MPI_DOUBLE_INT};
  return leaves[below(7)];
}

/* A type that is not committed, and that the caller frees. */
static MPI_Datatype tree(int depth) {
  MPI_Datatype child, made;
  if (depth == 0) {
    MPI_Type_contiguous(1 + below(3), leaf(), &made);
    return made;
  }
  child = tree(depth - 1);
  MPI_Aint lb, extent;
  MPI_Type_get_extent(child, &lb, &extent);
  int n = 1 + below(5), lengths[5], places[5];
  MPI_Aint bytes[5];
  for (int i = 0, at = 0; i < n; ++i) {
    lengths[i] = below(4);
    places[i] = at + below(3);
    at = places[i] + lengths[i];
    bytes[i] = places[i] * extent;
  }
  int const swaps = n > 1 && below(2);
  if (swaps && may_step_back) { /* another order */
    int const length = lengths[0], place = places[0];
    MPI_Aint const byte = bytes[0];
    lengths[0] = lengths[n - 1], places[0] = places[n - 1], bytes[0] = bytes[n - 1];
    lengths[n - 1] = length, places[n - 1] = place, bytes[n - 1] = byte;
  }
  switch (below(8)) {
    case 0: MPI_Type_vector(n, 1 + lengths[0], 1 + lengths[0] + below(3), child, &made); break;
    case 1: MPI_Type_create_hvector(n, 1, extent * (1 + below(3)), child, &made); break;
    case 2: MPI_Type_indexed(n, lengths, places, child, &made); break;
    case 3: MPI_Type_create_hindexed(n, lengths, bytes, child, &made); break;
    case 4: {
      for (int i = 0; i < n; ++i) places[i] = 3 * i + below(2);
      MPI_Type_create_indexed_block(n, 1 + below(2), places, child, &made);
      break;
    }
    case 5: {
      MPI_Datatype types[5];
      for (int i = 0; i < n; ++i) types[i] = i % 2 ? child : MPI_INT, bytes[i] = (extent + 64) * 4 * i;
      MPI_Type_create_struct(n, lengths, bytes, types, &made);
      break;
    }
    case 6: {
      int const size[2] = {2 + below(4), 2 + below(4)}, part[2] = {1 + below(2), 1 + below(2)};
      int const start[2] = {below(size[0] - part[0] + 1), below(size[1] - part[1] + 1)};
      MPI_Type_create_subarray(2, size, part, start, below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child, &made);
      break;
    }
    default: MPI_Type_create_resized(child, lb - 8 * below(2), extent + 16 * below(3), &made);
  }
  MPI_Type_free(&child);
  return made;
}

static int class_of(int code) {
  int class = 0;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

static unsigned char *memory, *other, *packed;

static void fill(unsigned char* to, long n) {
  for (long i = 0; i < n; ++i) to[i] = (unsigned char)draw();
}

/* One byte too few, and a type that is not committed. */
static void errors_of(MPI_Datatype type, int count, int size) {
  MPI_Datatype raw;
  MPI_Type_vector(2, 1, 2, type, &raw);
  Number none = 0, half = 0, bare = 0;
  Number const least = (Number)count * size - 1;
  if (least >= 0) {
    int const packs = PACK(memory + margin, count, type, packed, least, &none, MPI_COMM_WORLD);
    int const unpacks = UNPACK(packed, least, &half, other + margin, count, type, MPI_COMM_WORLD);
    printf("; short %d %d at %ld", class_of(packs), class_of(unpacks), packs == MPI_SUCCESS ? (long)none : 0L);
  }
  int const uncommitted = PACK(memory + margin, 1, raw, packed, room, &bare, MPI_COMM_WORLD);
  int const unread = UNPACK(packed, room, &bare, other + margin, 1, raw, MPI_COMM_WORLD);
  printf("; not committed %d %d at %ld", class_of(uncommitted), class_of(unread), (long)bare);
  MPI_Type_free(&raw);
}

static void round_of(long number) {
  MPI_Datatype type = tree(below(4));
  MPI_Type_commit(&type);
  MPI_Count true_lb, true_extent, lb, extent;
  MPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
  MPI_Type_get_extent_x(type, &lb, &extent);
  int count = 1 + below(40), size = 0;
  MPI_Type_size(type, &size);
  while (count > 1 && (count * llabs(extent) + true_extent > room - margin || (long)count * size > room / 2))
    count /= 2;
  if (count * llabs(extent) + true_extent <= room - margin && size <= room / 2) {
    uint64_t sum = 0xcbf29ce484222325u;
    Number most = 0, position = below(100), back = position;
    PACK_SIZE(count, type, MPI_COMM_WORLD, &most);
    Number const behind = position + most;
    long const all = 2 * margin + room;
    fill(memory, all), fill(other, all), memset(packed, 0xa5, (size_t)behind + 64);
    int code = PACK(memory + margin, count, type, packed, behind, &position, MPI_COMM_WORLD);
    sum = sum_of(sum, packed, (long)behind + 64);
    printf("%ld: pack %d, %ld to %ld of %ld, sum %016llx", number, class_of(code), (long)back, (long)position,
           (long)behind, (unsigned long long)sum);
    code = UNPACK(packed, behind, &back, other + margin, count, type, MPI_COMM_WORLD);
    printf("; unpack %d to %ld, sum %016llx", class_of(code), (long)back, (unsigned long long)sum_of(sum, other, all));
    /* One byte too few, and a type that is not committed. */
    if (returns_errors) errors_of(type, count, size);
    printf("\n");
  }
  MPI_Type_free(&type);
}

static void other_errors(void) {
  MPI_Datatype type;
  MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  Number at = 0;
  int codes[4];
  for (int again = 0; again < 2; ++again) {
    codes[0] = PACK(memory, 3, type, packed, 96, &at, MPI_COMM_NULL);
    codes[1] = PACK(memory, -1, type, packed, 96, &at, MPI_COMM_WORLD);
    codes[2] = UNPACK(packed, 96, &at, memory, 3, type, MPI_COMM_NULL);
    at = 1;
    codes[3] = PACK(memory, 3, type, packed, 96, &at, MPI_COMM_SELF);
    printf("errors %d %d %d %d\n", class_of(codes[0]), class_of(codes[1]), class_of(codes[2]), class_of(codes[3]));
    at = 0;
    if (PACK(memory, 3, type, packed, 96, &at, MPI_COMM_SELF) != MPI_SUCCESS || at != 96) printf("wrong\n");
    at = 0;
  }
  MPI_Type_free(&type);
}

static void absolute(void) {
  MPI_Datatype list;
  MPI_Aint places[3];
  int const lengths[3] = {24, 8, 100};
  for (int i = 0; i < 3; ++i) MPI_Get_address(memory + margin + 500 * i, &places[i]);
  MPI_Type_create_hindexed(3, lengths, places, MPI_BYTE, &list);
  MPI_Type_commit(&list);
  Number at = 0;
  int good = PACK(MPI_BOTTOM, 1, list, packed, room, &at, MPI_COMM_WORLD) == MPI_SUCCESS && at == 132;
  for (int i = 0, from = 0; good && i < 3; from += lengths[i++])
    good = memcmp(packed + from, memory + margin + 500 * i, (size_t)lengths[i]) == 0;
  memset(packed, 7, 132);
  at = 0;
  good = good && UNPACK(packed, 132, &at, MPI_BOTTOM, 1, list, MPI_COMM_WORLD) == MPI_SUCCESS;
  for (int i = 0; good && i < 3; ++i)
    for (int j = -1; j <= lengths[i]; ++j)
      good = good && (memory[margin + 500 * i + j] == 7) == (j >= 0 && j < lengths[i]);
  fprintf(stderr, "absolute %s\n", good ? "good" : "refused");
  MPI_Type_free(&list);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  long const rounds = argc > 2 ? atol(argv[2]) : 100;
  memory = malloc(2 * margin + room), other = malloc(2 * margin + room), packed = malloc(2 * room);
  fill(memory, 2 * margin + room);
  if (rank == 0) {
    for (long i = 0; i < rounds; ++i) round_of(i);
    if (returns_errors) other_errors();
    memset(memory, 3, 2 * margin + room);
    absolute();
    printf("done\n");
  }
  free(memory), free(other), free(packed);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
