/* A PMPI wrapper that writes text traces of some calls, in the form of LogGOPSim's liballprof:
 * docs/formats/text-trace.md. Only what tests/record/programs/texts.c calls. A library that is linked before the
 * MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE* file;

static double us(void) { return PMPI_Wtime() * 1e6; }
static void number(long value) { fprintf(file, ":%ld", value); }
static void address(const void* at) { fprintf(file, ":%lu", (unsigned long)at); }
static void type(MPI_Datatype datatype) {
  int size = 0;
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  PMPI_Type_size(datatype, &size);
  PMPI_Type_get_extent(datatype, &lb, &extent);
  if (datatype == MPI_INT) {
    fputs(":1", file);
  } else if (datatype == MPI_DOUBLE) {
    fputs(":10", file);
  } else {
    fprintf(file, ":%lu", (unsigned long)datatype);
  }
  fprintf(file, ",%d,%ld", size, (long)extent);
}
static int size_of(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}
static void communicator(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  fprintf(file, ":%lu,%d,%d", (unsigned long)comm, rank, size_of(comm));
}
static void list(const int* values, MPI_Comm comm) {
  address(values);
  for (int i = 0; i < size_of(comm); ++i) fprintf(file, "%c%d", i == 0 ? ':' : ',', values[i]);
}

/* A call between its two times. */
#define CALL(name, call, arguments)          \
  fprintf(file, "MPI_" #name ":%.0f", us()); \
  const int code = call;                     \
  arguments;                                 \
  fprintf(file, ":%.0f\n", us());            \
  return code

int MPI_Init(int* argc, char*** argv) {
  int rank = 0;
  char path[4096];
  const int code = PMPI_Init(argc, argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/pmpi-trace-rank-%d.txt", getenv("TEXT_TRACES"), rank);
  file = fopen(path, "w");
  if (file == NULL) abort();
  fprintf(file, "# hostname: here.(none)\n\nMPI_Init:-:%lu:%lu:%.0f\n", (unsigned long)argc, (unsigned long)argv, us());
  return code;
}
int MPI_Finalize(void) {
  fprintf(file, "MPI_Finalize:%.0f:-\n", us());
  fclose(file);
  return PMPI_Finalize();
}
int MPI_Send(const void* buffer, int count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm) {
  CALL(Send, PMPI_Send(buffer, count, datatype, peer, tag, comm),
       (address(buffer), number(count), type(datatype), number(peer), number(tag), communicator(comm)));
}
int MPI_Recv(void* buffer, int count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  CALL(
      Recv, PMPI_Recv(buffer, count, datatype, peer, tag, comm, status),
      (address(buffer), number(count), type(datatype), number(peer), number(tag), communicator(comm), address(status)));
}
int MPI_Isend(const void* buffer, int count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  CALL(Isend, PMPI_Isend(buffer, count, datatype, peer, tag, comm, request),
       (address(buffer), number(count), type(datatype), number(peer), number(tag), communicator(comm),
        address(request)));
}
int MPI_Irecv(void* buffer, int count, MPI_Datatype datatype, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  CALL(Irecv, PMPI_Irecv(buffer, count, datatype, peer, tag, comm, request),
       (address(buffer), number(count), type(datatype), number(peer), number(tag), communicator(comm),
        address(request)));
}
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  CALL(Waitall, PMPI_Waitall(count, requests, statuses), (number(count), address(requests), address(statuses)));
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  CALL(Wait, PMPI_Wait(request, status), (address(request), address(status)));
}
int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* made) {
  CALL(Comm_split, PMPI_Comm_split(comm, colour, key, made),
       (communicator(comm), number(colour), number(key), address(made)));
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  CALL(Comm_dup, PMPI_Comm_dup(comm, made), (communicator(comm), address(made)));
}
int MPI_Comm_free(MPI_Comm* comm) { CALL(Comm_free, PMPI_Comm_free(comm), address(comm)); }
int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  CALL(Comm_rank, PMPI_Comm_rank(comm, rank), (communicator(comm), address(rank)));
}
int MPI_Barrier(MPI_Comm comm) { CALL(Barrier, PMPI_Barrier(comm), communicator(comm)); }
int MPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  CALL(Bcast, PMPI_Bcast(buffer, count, datatype, root, comm),
       (address(buffer), number(count), type(datatype), number(root), communicator(comm)));
}
int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  CALL(Allreduce, PMPI_Allreduce(out, in, count, datatype, op, comm),
       (address(out), address(in), number(count), type(datatype), number(3), communicator(comm)));
}
int MPI_Alltoallv(const void* out, const int* out_counts, const int* out_places, MPI_Datatype out_type, void* in,
                  const int* in_counts, const int* in_places, MPI_Datatype in_type, MPI_Comm comm) {
  CALL(Alltoallv, PMPI_Alltoallv(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm),
       (address(out), list(out_counts, comm), list(out_places, comm), type(out_type), address(in),
        list(in_counts, comm), list(in_places, comm), type(in_type), communicator(comm)));
}
