/* More messages than a receiver looks at: unexpected ones, and ones whose receives wait, while it is elsewhere.
 *
 * argv[1]: messages of each sender (3000). Queues of events and lists of unexpected headers fill; Open MPI then stops
 * its senders and starts them again (flow control of the portal table entry). Nothing is lost and the order stays.
 */
#include <unistd.h>

#include "mpi_common.h"

enum { words = 5, done_tag = 7, data_tag = 3 };

static int64_t word(int from, int i, int at) { return ((int64_t)from << 40) + (int64_t)i * words + at; }

static void check(int line, const int64_t* at, int from, int i) {
  long long bad = -1;
  for (int w = 0; w < words && bad < 0; ++w) {
    if (at[w] != word(from, i, w)) bad = w;
  }
  expect(line, "the first wrong word", -1, bad);
}

static void send_all(int count) {
  int64_t* out = memory(sizeof(int64_t) * words * (uint64_t)count);
  MPI_Request* requests = memory(sizeof(MPI_Request) * (uint64_t)count);
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w < words; ++w) out[i * words + w] = word(rank, i, w);
    MPI_Isend(out + i * words, words, MPI_INT64_T, 0, data_tag, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  free(requests), free(out);
}

/* Receives begin when all of a sender's messages have left it, or after a while. */
static void unexpected(int count) {
  if (rank != 0) {
    send_all(count);
  } else {
    int64_t in[words];
    for (int i = 0; i < count; ++i) {
      for (int from = 1; from < ranks; ++from) {
        if (i == 0 && from == 1) usleep(100000);
        MPI_Recv(in, words, MPI_INT64_T, from, data_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(__LINE__, in, from, i);
      }
    }
  }
}

static void expected(int count) {
  if (rank != 0) {
    MPI_Recv(NULL, 0, MPI_BYTE, 0, done_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    send_all(count);
    return;
  }
  const int senders = ranks - 1;
  int64_t* in = memory(sizeof(int64_t) * words * (uint64_t)(count * senders));
  MPI_Request* requests = memory(sizeof(MPI_Request) * (uint64_t)(count * senders));
  for (int i = 0; i < count * senders; ++i) {
    MPI_Irecv(in + i * words, words, MPI_INT64_T, 1 + i % senders, data_tag, MPI_COMM_WORLD, &requests[i]);
  }
  for (int to = 1; to < ranks; ++to) MPI_Send(NULL, 0, MPI_BYTE, to, done_tag, MPI_COMM_WORLD);
  usleep(100000);
  MPI_Waitall(count * senders, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count * senders; ++i) check(__LINE__, in + i * words, 1 + i % senders, i / senders);
  free(requests), free(in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int count = argc > 1 ? atoi(argv[1]) : 3000;
  for (int round = 0; round < 3; ++round) {
    unexpected(count);
    MPI_Barrier(MPI_COMM_WORLD);
    expected(count);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT(0, wrong); /* every rank has an answer, also those that only send */
  return end();
}
