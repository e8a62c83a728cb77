/* Messages that are too long for their receives: what the program learns of them, by each call that may tell.
   too_long returns | handler: all ways, one line each. too_long fatal WAY: the job ends by one. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ints = 4096, room = 100, tag = 7 };
static MPI_Datatype spread;
static int* data;

static int of(int code, MPI_Status const* status) {
  int class;
  MPI_Error_class(code, &class);
  return class == MPI_ERR_IN_STATUS ? status->MPI_ERROR : code;
}

static int ends(const char* way, MPI_Request* request, MPI_Status* status) {
  int over = 0, index = 0, code = MPI_SUCCESS;
  if (strcmp(way, "waitall") == 0) return of(MPI_Waitall(1, request, status), status);
  if (strcmp(way, "waitany") == 0) return MPI_Waitany(1, request, &index, status);
  if (strcmp(way, "waitsome") == 0) return of(MPI_Waitsome(1, request, &over, &index, status), status);
  while (code == MPI_SUCCESS && !over) {
    if (strcmp(way, "test") == 0)
      code = MPI_Test(request, &over, status);
    else if (strcmp(way, "testall") == 0)
      code = MPI_Testall(1, request, &over, status);
    else if (strcmp(way, "testany") == 0)
      code = MPI_Testany(1, request, &index, &over, status);
    else if (strcmp(way, "testsome") == 0)
      code = MPI_Testsome(1, request, &over, &index, status);
    else
      return MPI_Wait(request, status);
  }
  return of(code, status);
}

static int receives(const char* way, MPI_Status* status) {
  MPI_Request request;
  MPI_Message message;
  int code;
  if (strcmp(way, "sendrecv") == 0)
    return MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, data, room, MPI_INT, 0, tag, MPI_COMM_WORLD, status);
  if (strcmp(way, "sendrecv_replace") == 0)
    return MPI_Sendrecv_replace(data, room, MPI_INT, MPI_PROC_NULL, 0, 0, tag, MPI_COMM_WORLD, status);
  if (strcmp(way, "probe") == 0) MPI_Probe(0, tag, MPI_COMM_WORLD, status);
  if (strcmp(way, "mrecv") == 0 || strcmp(way, "imrecv") == 0) {
    MPI_Mprobe(0, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    if (way[0] == 'm') return MPI_Mrecv(data, room, MPI_INT, &message, status);
    MPI_Imrecv(data, room, MPI_INT, &message, &request);
    return MPI_Wait(&request, status);
  }
  if (strcmp(way, "persistent") == 0) {
    MPI_Recv_init(data, room, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    code = MPI_Wait(&request, status);
    MPI_Request_free(&request);
    return code;
  }
  if (strcmp(way, "recv") == 0 || strcmp(way, "probe") == 0)
    return MPI_Recv(data, room, MPI_INT, 0, tag, MPI_COMM_WORLD, status);
  if (strcmp(way, "freed") == 0) { /* its type is gone when the request ends */
    MPI_Datatype two;
    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_commit(&two);
    MPI_Irecv(data, room / 2, two, 0, tag, MPI_COMM_WORLD, &request);
    MPI_Type_free(&two);
    return MPI_Wait(&request, status);
  }
  MPI_Irecv(data, room, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
  return ends(way, &request, status);
}

static char const* const ways[] = {"recv",       "probe",    "mrecv",    "imrecv",  "sendrecv", "sendrecv_replace",
                                   "persistent", "wait",     "test",     "waitall", "testall",  "waitany",
                                   "testany",    "waitsome", "testsome", "freed"};

static int called, on_world;
static void handler(MPI_Comm* comm, int* code, ...) {
  int class;
  MPI_Error_class(*code, &class);
  called += class == MPI_ERR_TRUNCATE;
  on_world += class == MPI_ERR_TRUNCATE && *comm == MPI_COMM_WORLD;
}

/* The first call that the text names. */
static char const* call_in(char* text) {
  char* const name = strstr(text, "MPI_");
  char* const end = name == NULL || strstr(text, "error stack") == NULL ? NULL : strchr(name, '(');
  if (end == NULL) return strstr(text, "runcate") ? "none" : "other";
  *end = 0;
  return name;
}

static void tell(const char* way) {
  MPI_Status status;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length, class, count;
  for (int i = 0; i < 2 * ints; ++i) data[i] = -1;
  memset(&status, 0, sizeof status);
  called = on_world = 0;
  int const code = receives(way, &status);
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &class);
  MPI_Get_count(&status, MPI_INT, &count);
  int behind = 0;
  for (int i = room; i < 2 * ints; ++i) behind += data[i] != -1;
  printf("%s %s from %d tag %d count %d by %s, handler %d %d, %d behind the buffer\n", way,
         class == MPI_ERR_TRUNCATE ? "truncated" : "other", status.MPI_SOURCE, status.MPI_TAG, count, call_in(text),
         called, on_world, behind);
}

int main(int words, char** word) {
  int rank;
  MPI_Errhandler ours;
  MPI_Init(&words, &word);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(ints, 1, 2, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  data = calloc(2 * ints, sizeof *data);
  for (int i = 0; i < 4; ++i)
    MPI_Sendrecv(data, 1, spread, 1 - rank, 1, data, 1, spread, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm_create_errhandler(handler, &ours);
  if (strcmp(word[1], "returns") == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(word[1], "handler") == 0) MPI_Comm_set_errhandler(MPI_COMM_WORLD, ours);
  MPI_Errhandler_free(&ours);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (words > 2 && strcmp(word[2], ways[i]) != 0) continue;
    if (rank == 0)
      MPI_Send(data, 1, spread, 1, tag, MPI_COMM_WORLD);
    else
      tell(ways[i]);
  }
  /* The next message, which is not too long, arrives right. */
  for (int i = 0; i < 2 * ints; ++i) data[i] = rank == 0 ? i : -1;
  if (rank == 0)
    MPI_Send(data, 1, spread, 1, tag, MPI_COMM_WORLD);
  else
    MPI_Recv(data, 1, spread, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int wrong = 0;
  for (int i = 0; rank == 1 && i < 2 * ints; ++i) wrong += data[i] != (i % 2 == 0 ? i : -1);
  if (rank == 1) printf("%d wrong at the end\n", wrong);
  MPI_Type_free(&spread);
  free(data);
  MPI_Finalize();
  return 0;
}
