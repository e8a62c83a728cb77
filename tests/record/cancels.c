/* Requests that are cancelled in time, and others too late, on two ranks; what came of each is printed by rank 1. */
#include <mpi.h>
#include <stdio.h>

enum { tag_early = 3, tag_late = 4, tag_persistent = 5, tag_freed = 6, tag_any = 7 };

static int was_cancelled(MPI_Request* request) {
  MPI_Status status;
  int flag = 0;
  MPI_Wait(request, &status);
  MPI_Test_cancelled(&status, &flag);
  return flag;
}

/* A receive whose message is there: its cancel comes too late. */
static void receive_late(int source, int tag, char* text) {
  MPI_Status status;
  MPI_Probe(0, tag, MPI_COMM_WORLD, &status);
  MPI_Request request;
  MPI_Irecv(text, 100, MPI_BYTE, source, tag, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  printf("late %d\n", was_cancelled(&request));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char text[100] = {0};
  MPI_Request request;
  if (rank == 1) {
    MPI_Irecv(text, 100, MPI_BYTE, 0, tag_early, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    printf("early %d\n", was_cancelled(&request));
    MPI_Irecv(text, 100, MPI_BYTE, MPI_ANY_SOURCE, tag_any, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    int done = 0;
    int which = 0;
    while (!done) MPI_Testany(1, &request, &which, &done, MPI_STATUS_IGNORE);
    MPI_Irecv(text, 100, MPI_BYTE, 0, tag_freed, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    MPI_Recv_init(text, 100, MPI_BYTE, 0, tag_persistent, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Send(text, 90, MPI_BYTE, 1, tag_early, MPI_COMM_WORLD);
    MPI_Send(text, 80, MPI_BYTE, 1, tag_late, MPI_COMM_WORLD);
    MPI_Send(text, 70, MPI_BYTE, 1, tag_late, MPI_COMM_WORLD);
    MPI_Send(text, 60, MPI_BYTE, 1, tag_persistent, MPI_COMM_WORLD);
    MPI_Send(text, 50, MPI_BYTE, 1, tag_any, MPI_COMM_WORLD);
  } else {
    MPI_Recv(text, 90, MPI_BYTE, 0, tag_early, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    receive_late(0, tag_late, text);
    receive_late(MPI_ANY_SOURCE, tag_late, text);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Recv(text, 50, MPI_BYTE, 0, tag_any, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
