/* Calls of one rank with buffers of a GPU (MPI_Reduce_local, MPI_Pack_external, memory for buffered sends), and sends
 * with a large count, which the MPI may not have itself. On two ranks. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "layer/device.h"

enum { items = 500, stride = 3, span = items * stride, packed_bytes = 2 * items * (int)sizeof(int) };

/* Programs as mpi4py take the call with a large count where they find it. */
extern int MPI_Send_c(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm) __attribute__((weak));

static int wrong, checks;

static void expect(int is_right, char const* what) {
  ++checks;
  if (!is_right) ++wrong, fprintf(stderr, "%s\n", what);
}

static int* ints(unsigned char* bytes) { return (int*)(void*)bytes; }

static void reduce_locally(void) {
  unsigned char *in_window, *out_window;
  unsigned char* const in = device_alloc(items * sizeof(int), &in_window);
  unsigned char* const out = device_alloc(items * sizeof(int), &out_window);
  for (int i = 0; i < items; ++i) ints(in_window)[i] = i, ints(out_window)[i] = 1000 * i;
  expect(MPI_Reduce_local(in, out, items, MPI_INT, MPI_SUM) == MPI_SUCCESS, "MPI_Reduce_local fails");
  int right = 1;
  for (int i = 0; i < items; ++i) right = right && ints(out_window)[i] == 1001 * i && ints(in_window)[i] == i;
  expect(right, "MPI_Reduce_local: other sums");
  device_free(in, in_window), device_free(out, out_window);
}

static void pack_portably(MPI_Datatype every_third) {
  unsigned char *from_window, *to_window, *packed_window;
  unsigned char* const from = device_alloc(span * sizeof(int), &from_window);
  unsigned char* const to = device_alloc(span * sizeof(int), &to_window);
  unsigned char* const packed = device_alloc(packed_bytes, &packed_window);
  for (int i = 0; i < span; ++i) ints(from_window)[i] = i + 1, ints(to_window)[i] = -1;
  memset(packed_window, 0xee, packed_bytes);
  MPI_Aint place = 8, size = 0;
  expect(MPI_Pack_external_size("external32", 1, every_third, &size) == MPI_SUCCESS && size == items * 4,
         "another size");
  expect(MPI_Pack_external("external32", from, 1, every_third, packed, packed_bytes, &place) == MPI_SUCCESS &&
             place == 8 + size,
         "MPI_Pack_external fails");
  int right = packed_window[7] == 0xee && packed_window[place] == 0xee; /* big-endian, and nothing around it */
  for (int i = 0; i < items; ++i) {
    unsigned char const* const four = packed_window + 8 + (ptrdiff_t)4 * i;
    right = right && (four[2] << 8 | four[3]) == stride * i + 1 && four[0] == 0;
  }
  expect(right, "MPI_Pack_external: other bytes");
  place = 8;
  expect(MPI_Unpack_external("external32", packed, packed_bytes, &place, to, 1, every_third) == MPI_SUCCESS,
         "MPI_Unpack_external fails");
  right = 1;
  for (int i = 0; i < span; ++i) right = right && ints(to_window)[i] == (i % stride == 0 ? i + 1 : -1);
  expect(right, "MPI_Unpack_external: other bytes");
  device_free(from, from_window), device_free(to, to_window), device_free(packed, packed_window);
}

static void exchange(MPI_Datatype every_third, int rank) {
  unsigned char *window, *buffer_window;
  int const buffer_bytes = 3 * (items * (int)sizeof(int) + MPI_BSEND_OVERHEAD);
  unsigned char* const memory = device_alloc(span * sizeof(int), &window);
  unsigned char* const buffer = device_alloc(buffer_bytes, &buffer_window);
  expect(MPI_Buffer_attach(buffer, buffer_bytes) == MPI_SUCCESS, "MPI_Buffer_attach fails");
  int const ways = MPI_Send_c != NULL ? 3 : 2;
  for (int way = 0; way < 3; ++way) { /* both ranks must do as many, whatever they find */
    for (int i = 0; i < span; ++i) ints(window)[i] = rank == 0 ? way * 10000 + i : -1;
    if (rank == 0 && way < 2) MPI_Bsend(memory, 1, every_third, 1, way, MPI_COMM_WORLD);
    if (rank == 0 && way == 2 && ways == 3) MPI_Send_c(memory, 1, every_third, 1, way, MPI_COMM_WORLD);
    if (rank == 0 && way == 2 && ways == 2) MPI_Send(memory, 1, every_third, 1, way, MPI_COMM_WORLD);
    if (rank == 0) continue;
    MPI_Recv(memory, 1, every_third, 0, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int right = 1;
    for (int i = 0; i < span; ++i) right = right && ints(window)[i] == (i % stride == 0 ? way * 10000 + i : -1);
    expect(right, way == 2 ? "a send with a large count: other bytes" : "a buffered send: other bytes");
  }
  void* given = NULL;
  int given_bytes = 0;
  expect(MPI_Buffer_detach(&given, &given_bytes) == MPI_SUCCESS && given == buffer && given_bytes == buffer_bytes,
         "MPI_Buffer_detach gives another buffer");
  device_free(memory, window), device_free(buffer, buffer_window);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype every_third;
  MPI_Type_vector(items, 1, stride, MPI_INT, &every_third);
  MPI_Type_commit(&every_third);
  reduce_locally();
  pack_portably(every_third);
  exchange(every_third, rank);
  MPI_Type_free(&every_third);
  int sum[2] = {wrong, checks}, of_all[2];
  MPI_Reduce(sum, of_all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("checks %d wrong %d\n", of_all[1], of_all[0]);
  MPI_Finalize();
  return 0;
}
