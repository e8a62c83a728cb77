/* Calls with buffers in a GPU's memory that have no gaps, or have them, for who counts which way they go: on two ranks,
 *   device_ways ITEMS plain|gaps|mixed
 * mixed: as gaps, and every second number is said to be a float. ITEMS is even then. Each rank's calls have `buffers`
 * buffers of numbers, and two of a reduction, in each of `rounds` rounds. Ends with "buffers N reduced M wrong 0" from
 * rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/device.h"

enum { items_max = 4000, stride = 3, span = items_max * stride, rounds = 3, buffers = 11 };

static int rank, wrong, items;
static int *from, *to; /* the addresses that MPI is told */
static int *from_seen, *to_seen; /* the addresses that are seen here */

static int* ints(unsigned char* bytes) { return (int*)(void*)bytes; }

static void fill(int round) {
  for (int i = 0; i < span; ++i) {
    from_seen[i] = (rank + 1) * 100000 + round * 1000 + i;
    to_seen[i] = -2;
  }
}
/* Checks that the items of rank `sender` lie `every` apart here, as they did there, and nothing else has changed. */
static void expect(char const* what, int round, int every, int sender) {
  for (int i = 0; i < span; ++i) {
    int const is_item = i % every == 0 && i < items * every;
    int const want = is_item ? (sender + 1) * 100000 + round * 1000 + i : -2;
    if (to_seen[i] == want) continue;
    if (wrong++ < 4) fprintf(stderr, "rank %d: %s, item %d is %d, not %d\n", rank, what, i, to_seen[i], want);
    return;
  }
}

static void messages(int round, MPI_Datatype type, int count, int every) {
  int const peer = 1 - rank;
  MPI_Comm const comm = MPI_COMM_WORLD;
  MPI_Request request[2];
  MPI_Status status;
  MPI_Message message;
  fill(round);
  if (rank == 0) MPI_Send(from, count, type, peer, 1, comm);
  if (rank == 1) MPI_Recv(to, count, type, peer, 1, comm, &status), expect("Recv", round, every, peer);
  fill(round);
  if (rank == 1) MPI_Ssend(from, count, type, peer, 2, comm);
  if (rank == 0) {
    MPI_Mprobe(peer, 2, comm, &message, &status);
    MPI_Mrecv(to, count, type, &message, &status), expect("Mrecv", round, every, peer);
  }
  fill(round);
  MPI_Irecv(to, count, type, peer, 3, comm, &request[0]);
  MPI_Isend(from, count, type, peer, 3, comm, &request[1]);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  expect("Irecv", round, every, peer);
  fill(round);
  MPI_Sendrecv(from, count, type, peer, 4, to, count, type, peer, 4, comm, MPI_STATUS_IGNORE);
  expect("Sendrecv", round, every, peer);
  MPI_Recv_init(to, count, type, peer, 5, comm, &request[0]);
  MPI_Send_init(from, count, type, peer, 5, comm, &request[1]);
  fill(round);
  MPI_Startall(2, request);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  expect("Start", round, every, peer);
  MPI_Request_free(&request[0]), MPI_Request_free(&request[1]);
}

static void collectives(int round, MPI_Datatype type, int count, int every) {
  int counts[2] = {0, 0}, places[2] = {0, 0};
  fill(round);
  if (rank == 0) MPI_Bcast(from, count, type, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Bcast(to, count, type, 0, MPI_COMM_WORLD), expect("Bcast", round, every, 0);
  fill(round);
  counts[1 - rank] = count;
  MPI_Alltoallv(from, counts, places, type, to, counts, places, type, MPI_COMM_WORLD);
  expect("Alltoallv", round, every, 1 - rank);
}

static void sums(int round) {
  fill(round);
  MPI_Allreduce(from, to, items, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < items; ++i)
    if (to_seen[i] != 300000 + 2 * (round * 1000 + i)) ++wrong;
}

static MPI_Datatype one_kind(void) {
  MPI_Datatype made;
  MPI_Type_vector(items, 1, stride, MPI_INT, &made);
  MPI_Type_commit(&made);
  return made;
}
static MPI_Datatype two_kinds(void) {
  int const lengths[2] = {1, 1};
  MPI_Aint const places[2] = {0, stride * (MPI_Aint)sizeof(int)};
  MPI_Datatype const kinds[2] = {MPI_INT, MPI_FLOAT};
  MPI_Datatype pair, each, made;
  MPI_Type_create_struct(2, lengths, places, kinds, &pair);
  MPI_Type_create_resized(pair, 0, 2 * stride * (MPI_Aint)sizeof(int), &each);
  MPI_Type_contiguous(items / 2, each, &made);
  MPI_Type_commit(&made);
  MPI_Type_free(&pair), MPI_Type_free(&each);
  return made;
}

int main(int argc, char** argv) {
  unsigned char* window;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  items = atoi(argv[1]);
  from = ints(device_alloc(span * sizeof(int), &window)), from_seen = ints(window);
  to = ints(device_alloc(span * sizeof(int), &window)), to_seen = ints(window);
  int const is_mixed = strcmp(argv[2], "mixed") == 0, has_gaps = is_mixed || strcmp(argv[2], "gaps") == 0;
  MPI_Datatype const apart = is_mixed ? two_kinds() : one_kind();
  for (int round = 0; round < rounds; ++round) {
    MPI_Datatype const type = has_gaps ? apart : MPI_INT;
    int const count = has_gaps ? 1 : items, every = has_gaps ? stride : 1;
    messages(round, type, count, every), collectives(round, type, count, every);
    sums(round);
  }
  MPI_Datatype freed = apart;
  MPI_Type_free(&freed);
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("buffers %d reduced %d wrong %d\n", rounds * buffers, 2 * rounds, any);
  device_free((unsigned char*)from, (unsigned char*)from_seen),
      device_free((unsigned char*)to, (unsigned char*)to_seen);
  MPI_Finalize();
  return any != 0;
}
