/* Asks the MPI library that it was compiled with about datatypes, through the C interface.
 *
 * Standard input: one question a line, integers in decimal: a datatype in prefix order (mpi_program.py), count, base,
 * length. For each question it prints one line of JSON: size, bounds, true bounds and the packed bytes of `count`
 * elements at memory[base]. It fills the memory as mpi_worker.py does.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES_MAX = 64 };

static long long read_number(void) {
  long long value = 0;
  if (scanf("%lld", &value) != 1) {
    fprintf(stderr, "mpi_peer: the question ends early\n");
    exit(2);
  }
  return value;
}

static int read_ints(int* to) {
  const int count = (int)read_number();
  if (count > ENTRIES_MAX) exit(2);
  for (int i = 0; i < count; ++i) to[i] = (int)read_number();
  return count;
}

static void read_addresses(MPI_Aint* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = (MPI_Aint)read_number();
}

static const int distributions[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};

static MPI_Datatype primitive(void) {
  const MPI_Datatype known[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX};
  MPI_Datatype copy;
  MPI_Type_dup(known[read_number()], &copy);
  return copy;
}

/* Numbers of the constructors: mpi_program.py. */
static MPI_Datatype construct(int constructor);

static MPI_Datatype datatype(void) {
  const int constructor = (int)read_number();
  const MPI_Aint lb = (MPI_Aint)read_number();
  const MPI_Aint extent = (MPI_Aint)read_number();
  MPI_Datatype made = construct(constructor);
  MPI_Aint told_lb;
  MPI_Aint told_extent;
  MPI_Type_get_extent(made, &told_lb, &told_extent);
  if (told_lb != lb || told_extent != extent) { /* padded: a library may */
    MPI_Datatype fixed;
    MPI_Type_create_resized(made, lb, extent, &fixed);
    MPI_Type_free(&made);
    made = fixed;
  }
  return made;
}

static MPI_Datatype construct_struct(void) {
  int lengths[ENTRIES_MAX];
  MPI_Aint at[ENTRIES_MAX];
  MPI_Datatype members[ENTRIES_MAX];
  MPI_Datatype made;
  const int count = read_ints(lengths);
  read_addresses(at, count);
  for (int i = 0; i < count; ++i) members[i] = datatype();
  MPI_Type_create_struct(count, lengths, at, members, &made);
  for (int i = 0; i < count; ++i) MPI_Type_free(&members[i]);
  return made;
}

static MPI_Datatype construct(int constructor) {
  int a[ENTRIES_MAX], b[ENTRIES_MAX], c[ENTRIES_MAX], d[ENTRIES_MAX];
  MPI_Aint at[ENTRIES_MAX];
  MPI_Datatype child, made = MPI_DATATYPE_NULL;
  int count, first, second;
  if (constructor == 0) return primitive();
  if (constructor == 8) return construct_struct();
  switch (constructor) {
    case 1:
      count = (int)read_number();
      child = datatype();
      MPI_Type_contiguous(count, child, &made);
      break;
    case 2:
    case 3:
      count = (int)read_number();
      first = (int)read_number();
      at[0] = (MPI_Aint)read_number();
      child = datatype();
      if (constructor == 2)
        MPI_Type_vector(count, first, (int)at[0], child, &made);
      else
        MPI_Type_create_hvector(count, first, at[0], child, &made);
      break;
    case 4:
    case 5:
      count = read_ints(a);
      read_addresses(at, count);
      for (int i = 0; i < count; ++i) b[i] = (int)at[i];
      child = datatype();
      if (constructor == 4)
        MPI_Type_indexed(count, a, b, child, &made);
      else
        MPI_Type_create_hindexed(count, a, at, child, &made);
      break;
    case 6:
    case 7:
      first = (int)read_number();
      count = (int)read_number();
      read_addresses(at, count);
      for (int i = 0; i < count; ++i) b[i] = (int)at[i];
      child = datatype();
      if (constructor == 6)
        MPI_Type_create_indexed_block(count, first, b, child, &made);
      else
        MPI_Type_create_hindexed_block(count, first, at, child, &made);
      break;
    case 9:
      at[0] = (MPI_Aint)read_number();
      at[1] = (MPI_Aint)read_number();
      child = datatype();
      MPI_Type_create_resized(child, at[0], at[1], &made);
      break;
    case 10:
      count = read_ints(a);
      read_ints(b);
      read_ints(c);
      first = (int)read_number();
      child = datatype();
      MPI_Type_create_subarray(count, a, b, c, first ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child, &made);
      break;
    case 11:
      first = (int)read_number();
      second = (int)read_number();
      count = read_ints(a);
      read_ints(b);
      read_ints(c);
      read_ints(d);
      for (int i = 0; i < count; ++i) b[i] = distributions[b[i]];
      for (int i = 0; i < count; ++i) c[i] = c[i] < 0 ? MPI_DISTRIBUTE_DFLT_DARG : c[i];
      const int row_major = (int)read_number();
      child = datatype();
      MPI_Type_create_darray(first, second, count, a, b, c, d, row_major ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child,
                             &made);
      break;
    case 12:
      child = datatype();
      MPI_Type_dup(child, &made);
      break;
    default: fprintf(stderr, "mpi_peer: no constructor %d\n", constructor); exit(2);
  }
  MPI_Type_free(&child);
  return made;
}

static void answer(void) {
  MPI_Datatype type = datatype();
  const int count = (int)read_number();
  const long long base = read_number();
  const long long length = read_number();
  MPI_Aint lb, extent, true_lb, true_extent;
  int size, room, position = 0;
  MPI_Type_commit(&type);
  MPI_Type_size(type, &size);
  MPI_Type_get_extent(type, &lb, &extent);
  MPI_Type_get_true_extent(type, &true_lb, &true_extent);
  MPI_Pack_size(count, type, MPI_COMM_SELF, &room);
  unsigned char* memory = malloc((size_t)length);
  unsigned char* packed = malloc((size_t)room + 1);
  if (memory == NULL || packed == NULL) exit(3);
  for (long long i = 0; i < length; ++i) memory[i] = (unsigned char)((i * 131 + i / 251) % 256);
  MPI_Pack(memory + base, count, type, packed, room, &position, MPI_COMM_SELF);
  printf("{\"size\": %d, \"bounds\": [%lld, %lld], \"true_bounds\": [%lld, %lld], \"packed\": \"", size, (long long)lb,
         (long long)extent, (long long)true_lb, (long long)true_extent);
  for (int i = 0; i < position; ++i) printf("%02x", packed[i]);
  printf("\"}\n");
  free(packed);
  free(memory);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Init(&argc, &argv);
  MPI_Get_library_version(version, &length);
  for (int i = 0; version[i] != '\0'; ++i) putchar(version[i] == '\n' ? ' ' : version[i]);
  putchar('\n');
  for (long long questions = read_number(); questions > 0; --questions) answer();
  MPI_Finalize();
  return 0;
}
