/* Two ranks whose buffers lie in the memory of one GPU: each takes what the other sends from there.
 *
 * Usage: device_pairs calls | late | short | host | lost | full | start. Prints how many messages there were and how
 * many bytes were wrong. Every byte of a receiver's buffer is compared, gaps included. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/device.h"

enum { rows = 200, columns = 64, cells = rows * columns, room = cells * 8 };

static int rank, peer, messages, wrong;
static MPI_Comm world;

struct Buffer {
  unsigned char *memory, *window;
};
static struct Buffer buffer_of(int on_device) {
  struct Buffer made;
  if (on_device) {
    made.memory = device_alloc(room, &made.window);
  } else {
    made.memory = made.window = malloc(room);
  }
  return made;
}
static void free_buffer(struct Buffer one, int on_device) {
  if (on_device)
    device_free(one.memory, one.window);
  else
    free(one.memory);
}

static unsigned char sent_byte(int turn, int i) { return (unsigned char)(i * 13 + i / 256 + turn * 31 + 1); }
static unsigned char old_byte(int turn, int i) { return (unsigned char)(i * 5 + turn + 7); }
static void fill(struct Buffer one, int turn, int sends) {
  for (int i = 0; i < room; ++i) one.window[i] = sends ? sent_byte(turn, i) : old_byte(turn, i);
}

/* A datatype, as the places of its bytes in their order. */
struct Kind {
  MPI_Datatype type;
  int *places, bytes;
};
static void add(struct Kind* kind, int first, int bytes) {
  for (int i = 0; i < bytes; ++i) kind->places[kind->bytes++] = first + i;
}
enum { column, run, blocks, pieces, kinds };
static struct Kind kind_of(int which) {
  struct Kind made = {MPI_DATATYPE_NULL, malloc(sizeof(int) * room), 0};
  int lengths[3] = {3, 1, 2}, starts[3] = {8, 0, 4};
  switch (which) {
    case column: /* four columns of a matrix */
      MPI_Type_vector(rows, 4, columns, MPI_DOUBLE, &made.type);
      for (int r = 0; r < rows; ++r) add(&made, r * columns * 8, 32);
      break;
    case run:
      MPI_Type_contiguous(rows * 4, MPI_DOUBLE, &made.type);
      add(&made, 0, rows * 32);
      break;
    case blocks: { /* blocks of several lengths, not in order */
      MPI_Datatype one;
      MPI_Type_indexed(3, lengths, starts, MPI_DOUBLE, &one);
      MPI_Type_create_hvector(rows * 4 / 6, 1, 128, one, &made.type);
      MPI_Type_free(&one);
      for (int k = 0; k < rows * 4 / 6; ++k)
        for (int b = 0; b < 3; ++b) add(&made, k * 128 + starts[b] * 8, lengths[b] * 8);
      break;
    }
    default: { /* bytes with holes */
      MPI_Type_vector(rows * 32, 1, 3, MPI_BYTE, &made.type);
      for (int k = 0; k < rows * 32; ++k) add(&made, k * 3, 1);
    }
  }
  MPI_Type_commit(&made.type);
  return made;
}
static void free_kind(struct Kind* kind) {
  MPI_Type_free(&kind->type);
  free(kind->places);
}

/* The buffer of a receiver: `bytes` of the message are in place, everything else is as it was. */
static void compare(struct Buffer one, const struct Kind* from, const struct Kind* to, int bytes, int turn) {
  unsigned char* const wanted = malloc(room);
  for (int i = 0; i < room; ++i) wanted[i] = old_byte(turn, i);
  for (int i = 0; i < bytes; ++i) wanted[to->places[i]] = sent_byte(turn, from->places[i]);
  for (int i = 0; i < room; ++i) wrong += wanted[i] != one.window[i];
  free(wanted);
  ++messages;
}

enum { blocking, synchronous, non_blocking, persistent, exchange, matched, calls };

/* One message each way. */
static void move(int call, struct Buffer out, const struct Kind* from, struct Buffer in, const struct Kind* to) {
  MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status;
  MPI_Message message;
  int bytes = 0;
  switch (call) {
    case blocking:
    case synchronous:
      for (int turn = 0; turn < 2; ++turn) {
        if (turn != rank)
          MPI_Recv(in.memory, 1, to->type, peer, call, world, &status);
        else if (call == blocking)
          MPI_Send(out.memory, 1, from->type, peer, call, world);
        else
          MPI_Ssend(out.memory, 1, from->type, peer, call, world);
      }
      break;
    case non_blocking:
      MPI_Irecv(in.memory, 1, to->type, peer, call, world, &request[0]);
      MPI_Isend(out.memory, 1, from->type, peer, call, world, &request[1]);
      MPI_Wait(&request[0], &status);
      MPI_Wait(&request[1], MPI_STATUS_IGNORE);
      break;
    case persistent:
      MPI_Recv_init(in.memory, 1, to->type, peer, call, world, &request[0]);
      MPI_Send_init(out.memory, 1, from->type, peer, call, world, &request[1]);
      MPI_Startall(2, request);
      MPI_Wait(&request[0], &status);
      MPI_Wait(&request[1], MPI_STATUS_IGNORE);
      MPI_Request_free(&request[0]);
      MPI_Request_free(&request[1]);
      break;
    case exchange:
      MPI_Sendrecv(out.memory, 1, from->type, peer, call, in.memory, 1, to->type, peer, call, world, &status);
      break;
    default:
      MPI_Isend(out.memory, 1, from->type, peer, call, world, &request[1]);
      MPI_Mprobe(peer, call, world, &message, &status);
      MPI_Mrecv(in.memory, 1, to->type, &message, &status);
      MPI_Wait(&request[1], MPI_STATUS_IGNORE);
  }
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  wrong += bytes != from->bytes || status.MPI_SOURCE != peer || status.MPI_TAG != call;
}

/* Every call, every type against every other that holds as many bytes. */
static void run_calls(int receiver_on_device) {
  struct Buffer out = buffer_of(1), in = buffer_of(receiver_on_device);
  for (int call = 0; call < calls; ++call) {
    for (int a = 0; a < kinds; ++a) {
      for (int b = 0; b < kinds; ++b) {
        struct Kind from = kind_of(a), to = kind_of(b);
        if (from.bytes <= to.bytes && (a == pieces) == (b == pieces)) {
          const int turn = (call * kinds + a) * kinds + b;
          fill(out, turn, 1);
          fill(in, turn, 0);
          move(call, out, &from, in, &to);
          compare(in, &from, &to, from.bytes, turn);
        }
        free_kind(&from);
        free_kind(&to);
      }
    }
  }
  free_buffer(out, 1);
  free_buffer(in, receiver_on_device);
}

/* Ranks find out about each other's device when first buffers come. */
static void meet(void) {
  struct Buffer one = buffer_of(1);
  for (int i = 0; i < 3; ++i) {
    MPI_Sendrecv(one.memory, 8, MPI_BYTE, peer, 99, one.memory + 8, 8, MPI_BYTE, peer, 99, world, MPI_STATUS_IGNORE);
    MPI_Barrier(world);
  }
  free_buffer(one, 1);
}

/* The receiver asks for the message only after the sender has got over it. */
static void run_late(int may_fail) {
  struct Buffer one = buffer_of(1);
  struct Kind from = kind_of(column), to = kind_of(run);
  const int turn = 5;
  int code = MPI_SUCCESS;
  MPI_Request request;
  fill(one, turn, rank == 0);
  if (rank == 0) {
    MPI_Isend(one.memory, 1, from.type, 1, 1, world, &request);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 1, 2, world);
  } else {
    MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, world, MPI_STATUS_IGNORE);
    code = MPI_Recv(one.memory, 1, to.type, 0, 1, world, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS) compare(one, &from, &to, from.bytes, turn);
  }
  if (code != MPI_SUCCESS && may_fail) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    printf("rank %d: %s\n", rank, text);
  }
  if (code != MPI_SUCCESS && !may_fail) ++wrong;
  free_kind(&from);
  free_kind(&to);
  free_buffer(one, 1);
}

/* Fewer bytes than the receiver has room for, also within an element; and more. */
static void run_short(void) {
  struct Buffer one = buffer_of(1);
  struct Kind from = kind_of(run), to = kind_of(blocks);
  MPI_Status status;
  int bytes = 0, class = 0;
  for (int doubles = 799; doubles >= 790; --doubles) {
    fill(one, doubles, rank == 0);
    if (rank == 0) {
      MPI_Send(one.memory, doubles - 10, MPI_DOUBLE, 1, 3, world);
    } else {
      MPI_Recv(one.memory, 1, to.type, 0, 3, world, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      wrong += bytes != (doubles - 10) * 8;
      compare(one, &from, &to, bytes, doubles);
    }
  }
  fill(one, 1, rank == 0);
  if (rank == 0) {
    MPI_Send(one.memory, 1, from.type, 1, 3, world);
  } else {
    const int code = MPI_Recv(one.memory, rows, MPI_DOUBLE, 0, 3, world, &status);
    MPI_Error_class(code, &class);
    wrong += class != MPI_ERR_TRUNCATE;
    ++messages;
  }
  free_kind(&from);
  free_kind(&to);
  free_buffer(one, 1);
}

/* The receiver's device has no memory left for the tables of a layout, and the sender is somewhere else. */
static void run_full(void) {
  enum { blocks_max = 2000 };
  struct Buffer one = buffer_of(1);
  struct Kind from = {MPI_DATATYPE_NULL, malloc(sizeof(int) * room), 0}, to = from;
  int lengths[blocks_max], places[blocks_max], count = 0, at = 0, token = 0;
  MPI_Request request;
  to.places = malloc(sizeof(int) * room);
  for (; count < blocks_max && at + 60 < room; ++count) {
    lengths[count] = 1 + count * 37 % 29;
    places[count] = at;
    at += lengths[count] + 1 + count * 53 % 31;
    add(&from, places[count], lengths[count]);
  }
  add(&to, 0, from.bytes);
  MPI_Type_indexed(count, lengths, places, MPI_BYTE, &from.type);
  MPI_Type_commit(&from.type);
  for (int turn = 0; turn < 4; ++turn) {
    fill(one, turn, rank == 0);
    if (rank == 1) {
      MPI_Recv(one.memory, from.bytes, MPI_BYTE, 0, 4, world, MPI_STATUS_IGNORE);
      compare(one, &from, &to, from.bytes, turn);
      MPI_Send(&token, 1, MPI_INT, 0, 5, world);
    } else if (turn % 2 == 0) {
      MPI_Isend(one.memory, 1, from.type, 1, 4, world, &request);
      MPI_Recv(&token, 1, MPI_INT, 1, 5, world, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Sendrecv(one.memory, 1, from.type, 1, 4, &token, 1, MPI_INT, 1, 5, world, MPI_STATUS_IGNORE);
    }
  }
  free_kind(&from);
  free(to.places);
  free_buffer(one, 1);
}

/* Two requests, of which the second cannot start: what was made ready for the first is nobody else's. */
static void run_start(void) {
  struct Buffer good = buffer_of(1), freed = buffer_of(1), later = buffer_of(1);
  struct Kind from = kind_of(column), to = kind_of(run);
  MPI_Request request[2];
  if (rank == 0) {
    MPI_Send_init(good.memory, 1, from.type, 1, 6, world, &request[0]);
    MPI_Send_init(freed.memory, 1, from.type, 1, 7, world, &request[1]);
    free_buffer(freed, 1);
    wrong += MPI_Startall(2, request) == MPI_SUCCESS;
    MPI_Request_free(&request[0]);
    MPI_Request_free(&request[1]);
  }
  for (int turn = 0; turn < 3; ++turn) {
    fill(good, 40 + turn, 1);
    fill(later, turn, rank == 0);
    if (rank == 0) {
      MPI_Send(later.memory, 1, from.type, 1, 8, world);
    } else {
      MPI_Recv(later.memory, 1, to.type, 0, 8, world, MPI_STATUS_IGNORE);
      compare(later, &from, &to, from.bytes, turn);
    }
  }
  free_kind(&from);
  free_kind(&to);
  free_buffer(good, 1);
  free_buffer(later, 1);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "calls";
  int both[2], all[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world, &rank);
  peer = 1 - rank;
  if (!strcmp(what, "full") && rank == 1) setenv("FAKE_GPU_BYTES", "110592", 1); /* the buffer, the sign and a page */
  meet();
  if (!strcmp(what, "calls")) run_calls(1);
  if (!strcmp(what, "host")) run_calls(0);
  if (!strcmp(what, "late")) run_late(0);
  if (!strcmp(what, "short")) run_short();
  if (!strcmp(what, "lost")) run_late(1);
  if (!strcmp(what, "full")) run_full();
  if (!strcmp(what, "start")) run_start();
  both[0] = messages, both[1] = wrong;
  MPI_Reduce(both, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("messages %d wrong %d\n", all[0], all[1]);
  MPI_Comm_free(&world);
  MPI_Finalize();
  return 0;
}
