/* Partitioned messages between two ranks with buffers in a GPU's memory: parts become ready in several orders, also by
 * threads while the request is waited for; every byte is compared. Ends with "parts N wrong 0" from rank 0; N is 0
 * where the MPI has no such messages. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/device.h"

static int rank, wrong, moved;

#if MPI_VERSION >= 4
enum { parts = 6, items = 500, stride = 3, span = parts * items * stride, turns = 4 };
static int *memory, *seen; /* the address that MPI is told, and the one that is seen here */
static MPI_Request request;

static int item(int turn, int i) { return turn * 100000 + i; }

static int every_now;
static void write_part(int turn, int part) {
  for (int i = part * items; i < (part + 1) * items; ++i) seen[i * every_now] = item(turn, i);
}
static int turn_now;
static void* ready_some(void* first) {
  for (int part = *(int*)first; part < parts; part += 2) {
    write_part(turn_now, part);
    MPI_Pready(part, request);
  }
  return NULL;
}
static void send_parts(int turn) {
  int last_first[2] = {5, 4};
  int first[2] = {0, 1};
  pthread_t thread[2];
  for (int i = 0; i < span; ++i) seen[i] = -3;
  turn_now = turn;
  MPI_Start(&request);
  if (turn % 2 == 0) {
    for (int i = 0; i < 2; ++i) pthread_create(&thread[i], NULL, ready_some, &first[i]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
    return;
  }
  write_part(turn, 5), write_part(turn, 4);
  MPI_Pready_list(2, last_first, request);
  for (int part = 1; part < 4; ++part) write_part(turn, part);
  MPI_Pready_range(1, 3, request);
  write_part(turn, 0);
  MPI_Pready(0, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
static void expect(int turn, int first, int end, char const* when) {
  for (int i = first; i < end; ++i) {
    int const is_item = i % every_now == 0 && i / every_now < parts * items;
    if (seen[i] == (is_item ? item(turn, i / every_now) : -4)) continue;
    if (wrong++ < 4) fprintf(stderr, "turn %d, %s: item %d is %d\n", turn, when, i, seen[i]);
    return;
  }
}
static void receive_parts(int turn) {
  int const part_span = items * every_now;
  for (int i = 0; i < span; ++i) seen[i] = -4;
  MPI_Start(&request);
  for (int part = parts - 1; turn < 2 && part >= 0; --part) {
    int flag = 0;
    while (flag == 0) MPI_Parrived(request, part, &flag);
    expect(turn, part * part_span, part == parts - 1 ? (part + 1) * part_span - every_now + 1 : (part + 1) * part_span,
           "arrived");
    seen[part * part_span] = -5; /* the program's own from here on */
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int part = 0; turn < 2 && part < parts; ++part) {
    if (seen[part * part_span] != -5 && wrong++ < 4) fprintf(stderr, "turn %d: part %d came twice\n", turn, part);
    seen[part * part_span] = item(turn, part * items);
  }
  expect(turn, 0, span, "ended");
}
static void exchange(MPI_Datatype type, int every) {
  every_now = every;
  if (rank == 0) MPI_Psend_init(memory, parts, items, type, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (rank == 1) MPI_Precv_init(memory, parts, items, type, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int turn = 0; turn < turns; ++turn) {
    if (rank == 0) send_parts(turn);
    if (rank == 1) receive_parts(turn);
    MPI_Barrier(MPI_COMM_WORLD);
    moved += parts;
  }
  MPI_Request_free(&request);
}
static void all_parts(void) {
  unsigned char* window;
  MPI_Datatype apart;
  memory = (int*)(void*)device_alloc(span * sizeof(int), &window), seen = (int*)(void*)window;
  MPI_Type_create_resized(MPI_INT, 0, stride * sizeof(int), &apart);
  MPI_Type_commit(&apart);
  exchange(MPI_INT, 1);
  exchange(apart, stride);
  MPI_Type_free(&apart);
  device_free((unsigned char*)memory, (unsigned char*)seen);
}
#else
static void all_parts(void) {}
#endif

int main(int argc, char** argv) {
  int provided, any = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  all_parts();
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("parts %d wrong %d\n", moved, any);
  MPI_Finalize();
  return any != 0;
}
