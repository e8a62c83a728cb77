/* Messages that come before their receives, of 0 B to 1 MiB, and synchronous sends, which end only when they are
 * matched.
 *
 * A message that matches the receive of a later one of the same sender has arrived before it: so a receiver knows,
 * without a clock, that messages are unexpected. Whether a blocking MPI_Ssend returned too early is told by a word in
 * memory that all ranks of this machine map.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_common.h"

enum { marker = 9999, mark_back = 9998, longest = 1 << 20 };

static const int lengths[] = {0,     1,     3,     8,      9,       64,      100,    512,     1024,        2000,
                              2047,  2048,  2049,  4096,   8191,    8192,    8193,   16384,   20000,       32768,
                              65535, 65536, 65537, 100000, 1 << 17, 1 << 18, 300001, 1 << 19, longest - 1, longest};
enum { kinds = sizeof lengths / sizeof *lengths };

static unsigned char in[longest + 64];

static void received(int line, const MPI_Status* status, int from, int kind, uint64_t key) {
  int count = -1;
  MPI_Get_count(status, MPI_BYTE, &count);
  expect(line, "the source", from, status->MPI_SOURCE);
  expect(line, "the tag", kind, status->MPI_TAG);
  expect(line, "the length", lengths[kind], count);
  expect(line, "the first wrong byte", -1, difference(in, key, (uint64_t)lengths[kind]));
}

/* All lengths at once to the next rank, which receives them last first, by five ways to look at them. */
static void unexpected(void) {
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  unsigned char* out[kinds];
  MPI_Request requests[kinds + 1];
  for (int kind = 0; kind < kinds; ++kind) {
    out[kind] = memory((uint64_t)lengths[kind]);
    fill(out[kind], (uint64_t)(rank * 1000 + kind), (uint64_t)lengths[kind]);
    MPI_Isend(out[kind], lengths[kind], MPI_BYTE, next, kind, MPI_COMM_WORLD, &requests[kind]);
  }
  MPI_Isend(NULL, 0, MPI_BYTE, next, marker, MPI_COMM_WORLD, &requests[kinds]);
  MPI_Recv(NULL, 0, MPI_BYTE, before, marker, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int kind = kinds - 1; kind >= 0; --kind) {
    const uint64_t key = (uint64_t)(before * 1000 + kind);
    MPI_Status status;
    MPI_Message message;
    int found = 0, count = -1;
    memset(in, 0xee, sizeof in);
    switch (kind % 5) {
      case 0: MPI_Recv(in, sizeof in, MPI_BYTE, before, kind, MPI_COMM_WORLD, &status); break;
      case 1: MPI_Recv(in, lengths[kind], MPI_BYTE, MPI_ANY_SOURCE, kind, MPI_COMM_WORLD, &status); break;
      case 2:
        MPI_Probe(MPI_ANY_SOURCE, kind, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        EXPECT(lengths[kind], count);
        MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        break;
      case 3:
        while (!found) MPI_Iprobe(before, kind, MPI_COMM_WORLD, &found, &status);
        MPI_Recv(in, sizeof in, MPI_BYTE, before, kind, MPI_COMM_WORLD, &status);
        break;
      default:
        MPI_Mprobe(before, kind, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in, sizeof in, MPI_BYTE, &message, &status);
        break;
    }
    received(__LINE__, &status, before, kind, key);
    expect(__LINE__, "the byte behind a message", 0xee, in[lengths[kind]]);
  }
  MPI_Waitall(kinds + 1, requests, MPI_STATUSES_IGNORE);
  for (int kind = 0; kind < kinds; ++kind) free(out[kind]);
}

/* Rank `from` sends synchronously to `to`, which has it in hand and says so before it posts the receive. */
static void synchronous(int from, int to, int kind, atomic_int* posted) {
  const uint64_t key = (uint64_t)(from * 1000 + to * 100000 + kind);
  MPI_Status status;
  if (rank == from) {
    unsigned char* out = memory((uint64_t)lengths[kind]);
    MPI_Request request;
    int done = 0, back = 0;
    fill(out, key, (uint64_t)lengths[kind]);
    MPI_Issend(out, lengths[kind], MPI_BYTE, to, kind, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, to, marker, MPI_COMM_WORLD);
    while (!back) { /* the receiver has it by then, and no receive for it */
      MPI_Iprobe(to, mark_back, MPI_COMM_WORLD, &back, MPI_STATUS_IGNORE);
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) break;
    }
    EXPECT(0, done);
    MPI_Recv(NULL, 0, MPI_BYTE, to, mark_back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    EXPECT(0, done);
    MPI_Send(NULL, 0, MPI_BYTE, to, marker, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* and one that blocks */
    MPI_Ssend(out, lengths[kind], MPI_BYTE, to, kind, MPI_COMM_WORLD);
    EXPECT(1, atomic_load(posted));
    MPI_Send(NULL, 0, MPI_BYTE, to, marker, MPI_COMM_WORLD);
    /* and one whose receive is there */
    MPI_Recv(NULL, 0, MPI_BYTE, to, mark_back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ssend(out, lengths[kind], MPI_BYTE, to, kind, MPI_COMM_WORLD);
    free(out);
  } else if (rank == to) {
    MPI_Recv(NULL, 0, MPI_BYTE, from, marker, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, from, mark_back, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, from, marker, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    memset(in, 0, sizeof in);
    MPI_Recv(in, sizeof in, MPI_BYTE, from, kind, MPI_COMM_WORLD, &status);
    received(__LINE__, &status, from, kind, key);

    memset(in, 0, sizeof in);
    MPI_Probe(from, kind, MPI_COMM_WORLD, &status); /* it is here, unmatched */
    atomic_store(posted, 1);
    MPI_Recv(in, sizeof in, MPI_BYTE, from, kind, MPI_COMM_WORLD, &status);
    received(__LINE__, &status, from, kind, key);
    MPI_Recv(NULL, 0, MPI_BYTE, from, marker, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    atomic_store(posted, 0);

    memset(in, 0, sizeof in);
    MPI_Request request;
    MPI_Irecv(in, sizeof in, MPI_BYTE, from, kind, MPI_COMM_WORLD, &request);
    MPI_Send(NULL, 0, MPI_BYTE, from, mark_back, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    received(__LINE__, &status, from, kind, key);
  }
}

/* A word for each rank that all of them map. */
static atomic_int* shared_words(void) {
  char path[] = "/tmp/spinloom-mpi-XXXXXX";
  int file = -1;
  if (rank == 0) {
    file = mkstemp(path);
    if (file < 0 || ftruncate(file, 4096) != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Bcast(path, sizeof path, MPI_BYTE, 0, MPI_COMM_WORLD);
  FILE* opened = rank == 0 ? fdopen(file, "r+") : fopen(path, "r+");
  if (opened == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  void* words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(opened), 0);
  if (words == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 3);
  fclose(opened);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(path);
  return words;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int round = 0; round < 3; ++round) unexpected();
  atomic_int* posted = shared_words();
  for (int kind = 0; kind < kinds; ++kind) {
    for (int from = 0; from < ranks; ++from) {
      const int to = (from + 1 + kind % (ranks - 1)) % ranks;
      synchronous(from, to, kind, &posted[to]);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  return end();
}
