/* Random messages around a ring of ranks, each checked byte by byte: SEED ROUNDS [threads].
 *
 * Each round every rank sends one message to the next rank and receives one from the rank before, of a random datatype,
 * count, tag, way to send, way to receive and way to complete, which all ranks draw alike from the seed. What arrives is
 * compared with a list of the type's bytes that is written down beside the MPI type; gaps must keep their bytes. Ends
 * with "messages N wrong 0" from rank 0; a wrong round is named on stderr. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_pieces = 1 << 16, room = 1 << 21, margin = 4096 };

typedef struct {
  MPI_Datatype type;
  int count;
  long pieces;          /* of all `count` elements, in packed order */
  long *offset, *bytes; /* from the buffer's address */
  long packed;          /* bytes */
} Form;

static uint64_t state;
static uint64_t draw(void) { /* splitmix64 */
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static long below(long n) { return (long)(draw() % (uint64_t)n); }

static void piece(Form *form, long offset, long bytes) {
  form->offset[form->pieces] = offset;
  form->bytes[form->pieces++] = bytes;
  form->packed += bytes;
}

/* A type of about 2^below(19) bytes in all. */
static void make(Form *form) {
  long const target = 64 + (1L << (6 + below(12))) + below(1000);
  long one = 0, extent = 0, i, j;
  form->pieces = form->packed = 0;
  switch (below(6)) {
    case 0: { /* vector of doubles */
      int const count = 1 + (int)below(60), length = 1 + (int)below(5), stride = length + (int)below(4);
      MPI_Type_vector(count, length, stride, MPI_DOUBLE, &form->type);
      one = 8L * count * length, extent = 8L * ((count - 1) * stride + length);
      form->count = (int)(target / one) + 1;
      for (j = 0; j < form->count; ++j)
        for (i = 0; i < count; ++i) piece(form, j * extent + 8 * i * stride, 8L * length);
      break;
    }
    case 1: { /* list of ints, each place once, in any order */
      int place[200], length[200], n = 2 + (int)below(198), k;
      for (i = 0; i < n; ++i) place[i] = 8 * (int)i, length[i] = 1 + (int)below(7);
      for (i = n - 1; i > 0; --i) j = below(i + 1), k = place[i], place[i] = place[j], place[j] = k;
      MPI_Datatype list;
      MPI_Type_indexed(n, length, place, MPI_INT, &list);
      extent = 32L * n;
      MPI_Type_create_resized(list, 0, extent, &form->type);
      MPI_Type_free(&list);
      for (one = 0, i = 0; i < n; ++i) one += 4L * length[i];
      form->count = (int)(target / one) + 1;
      for (j = 0; j < form->count; ++j)
        for (i = 0; i < n; ++i) piece(form, j * extent + 4L * place[i], 4L * length[i]);
      break;
    }
    case 2: { /* struct { int; double[3]; char } */
      int length[3] = {1, 3, 1};
      MPI_Aint place[3] = {0, 8, 32};
      MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, made;
      MPI_Type_create_struct(3, length, place, types, &made);
      MPI_Type_create_resized(made, 0, 40, &form->type);
      MPI_Type_free(&made);
      form->count = (int)(target / 29) + 1;
      for (j = 0; j < form->count; ++j) piece(form, 40 * j, 4), piece(form, 40 * j + 8, 24), piece(form, 40 * j + 32, 1);
      break;
    }
    case 3: { /* a box in an array of three dimensions */
      int size[3], sub[3], start[3];
      for (i = 0; i < 3; ++i) sub[i] = 1 + (int)below(9), start[i] = (int)below(4), size[i] = sub[i] + start[i] + (int)below(4);
      MPI_Type_create_subarray(3, size, sub, start, MPI_ORDER_C, MPI_FLOAT, &form->type);
      one = 4L * sub[0] * sub[1] * sub[2], extent = 4L * size[0] * size[1] * size[2];
      form->count = (int)(target / one) + 1;
      if (form->count * extent > room) form->count = 1;
      for (j = 0; j < form->count; ++j)
        for (i = 0; i < sub[0]; ++i)
          for (int k = 0; k < sub[1]; ++k)
            piece(form, j * extent + 4L * (((start[0] + i) * size[1] + start[1] + k) * size[2] + start[2]), 4L * sub[2]);
      break;
    }
    case 4: { /* a transpose: columns of a matrix of 16-byte elements */
      int const n = 2 + (int)below(60);
      MPI_Datatype column, stepped;
      MPI_Type_vector(n, 1, n, MPI_C_DOUBLE_COMPLEX, &column);
      MPI_Type_create_resized(column, 0, 16, &stepped);
      MPI_Type_contiguous(n, stepped, &form->type);
      MPI_Type_free(&column), MPI_Type_free(&stepped);
      form->count = 1;
      for (j = 0; j < n; ++j)
        for (i = 0; i < n; ++i) piece(form, 16 * (i * n + j), 16);
      break;
    }
    default: /* contiguous */
      MPI_Type_contiguous(1 + (int)below(100), MPI_SHORT, &form->type);
      MPI_Aint lb, all;
      MPI_Type_get_extent(form->type, &lb, &all);
      form->count = (int)(target / all) + 1;
      piece(form, 0, form->count * all);
  }
  MPI_Type_commit(&form->type);
}

static unsigned char content(long round, int rank, long at) {
  uint64_t z = (uint64_t)round * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xbf58476d1ce4e5b9u + (uint64_t)at * 0x94d049bb133111ebu;
  return (unsigned char)(z >> 56 ^ z >> 32);
}

static void fill(unsigned char *memory, Form const *form, long round, int rank) {
  long at = 0;
  for (long i = 0; i < form->pieces; ++i)
    for (long k = 0; k < form->bytes[i]; ++k) memory[margin + form->offset[i] + k] = content(round, rank, at++);
}

static int complete(int way, MPI_Request *request, int n, MPI_Status *status) {
  int done = 0, index, flag = 0, some, indices[2];
  MPI_Status got[2];
  switch (way) {
    case 0:
      for (int i = 0; i < n; ++i) MPI_Wait(&request[i], &status[i]);
      return 0;
    case 1:
      return MPI_Waitall(n, request, status);
    case 2:
      for (; done < n; ++done) MPI_Waitany(n, request, &index, &got[0]), status[index] = got[0];
      return 0;
    case 3:
      for (; done < n; done += some) {
        MPI_Waitsome(n, request, &some, indices, got);
        for (int i = 0; i < some; ++i) status[indices[i]] = got[i];
      }
      return 0;
    case 4:
      for (int i = 0; i < n; ++i)
        for (flag = 0; !flag;) MPI_Test(&request[i], &flag, &status[i]);
      return 0;
    case 5:
      while (!flag) MPI_Testall(n, request, &flag, status);
      return 0;
    case 6:
      while (done < n) {
        MPI_Testany(n, request, &index, &flag, &got[0]);
        if (flag && index != MPI_UNDEFINED) status[index] = got[0], ++done;
      }
      return 0;
    default:
      while (done < n) {
        MPI_Testsome(n, request, &some, indices, got);
        for (int i = 0; i < some; ++i) status[indices[i]] = got[i];
        done += some;
      }
      return 0;
  }
}

int main(int argc, char **argv) {
  int provided, rank, size, wrong = 0, all_wrong = 0;
  long messages = 0;
  MPI_Init_thread(&argc, &argv, argc > 3 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (argc < 3) MPI_Abort(MPI_COMM_WORLD, 2);
  uint64_t const seed = strtoull(argv[1], NULL, 10);
  long const rounds = atol(argv[2]);
  MPI_Comm comms[2] = {MPI_COMM_WORLD};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]); /* the ranks the other way round */
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  unsigned char *out = malloc(room + 2 * margin), *in = malloc(room + 2 * margin), *expected = malloc(room + 2 * margin);
  Form form = {.offset = malloc(most_pieces * sizeof(long)), .bytes = malloc(most_pieces * sizeof(long))};

  for (long round = 0; round < rounds; ++round) {
    state = seed * 1000003 + (uint64_t)round * 7919;
    make(&form);
    MPI_Comm const comm = comms[below(2)];
    int me, tag = (int)below(5), from_any = below(3) == 0, tag_any = below(3) == 0;
    int const receive = (int)below(9), send = (int)below(6), way = (int)below(8), extra = (int)below(2);
    MPI_Comm_rank(comm, &me);
    int const to = (me + 1) % size, before = (me + size - 1) % size;
    int const source = from_any ? MPI_ANY_SOURCE : before, any = tag_any ? MPI_ANY_TAG : tag;
    memset(in, 0xa5, room + 2 * margin), memset(out, 0x5a, room + 2 * margin);
    fill(out, &form, round, me);
    memset(expected, 0xa5, room + 2 * margin);
    unsigned char *const sent = out + margin, *const got = in + margin;
    MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, kept[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status[2];
    MPI_Message message;
    int flag = 0, replaced = 0;
    memset(status, 0, sizeof status);

    if (receive == 7) {
      MPI_Sendrecv(sent, form.count, form.type, to, tag, got, form.count + extra, form.type, source, any, comm, &status[0]);
    } else if (receive == 8) {
      memcpy(in, out, room + 2 * margin), memcpy(expected, out, room + 2 * margin), replaced = 1;
      MPI_Sendrecv_replace(got, form.count, form.type, to, tag, source, any, comm, &status[0]);
    } else {
      if (receive < 2) MPI_Irecv(got, form.count + extra, form.type, source, any, comm, &request[0]);
      if (receive == 2) {
        MPI_Recv_init(got, form.count + extra, form.type, source, any, comm, &request[0]);
        kept[0] = request[0];
        MPI_Start(&request[0]);
      }
      int const posted = receive <= 2;
      switch (send) {
        case 0: MPI_Isend(sent, form.count, form.type, to, tag, comm, &request[1]); break;
        case 1: MPI_Issend(sent, form.count, form.type, to, tag, comm, &request[1]); break;
        case 2:
          MPI_Send_init(sent, form.count, form.type, to, tag, comm, &request[1]);
          kept[1] = request[1];
          MPI_Startall(1, &request[1]);
          break;
        case 3:
          if (posted) MPI_Barrier(comm), MPI_Irsend(sent, form.count, form.type, to, tag, comm, &request[1]);
          else MPI_Isend(sent, form.count, form.type, to, tag, comm, &request[1]);
          break;
        case 4:
          if (posted) MPI_Send(sent, form.count, form.type, to, tag, comm);
          else MPI_Isend(sent, form.count, form.type, to, tag, comm, &request[1]);
          break;
        default:
          if (posted) MPI_Ssend(sent, form.count, form.type, to, tag, comm);
          else MPI_Issend(sent, form.count, form.type, to, tag, comm, &request[1]);
      }
      switch (receive) {
        case 3: MPI_Recv(got, form.count + extra, form.type, source, any, comm, &status[0]); break;
        case 4: {
          int count = 0;
          MPI_Probe(source, any, comm, &status[0]);
          MPI_Get_count(&status[0], form.type, &count);
          if (count != form.count) wrong = 1, fprintf(stderr, "round %ld rank %d: probed %d, not %d\n", round, rank, count, form.count);
          MPI_Recv(got, form.count, form.type, status[0].MPI_SOURCE, status[0].MPI_TAG, comm, &status[0]);
          break;
        }
        case 5:
          while (!flag) MPI_Iprobe(source, any, comm, &flag, &status[0]);
          MPI_Irecv(got, form.count, form.type, source, any, comm, &request[0]);
          break;
        case 6:
          MPI_Mprobe(source, any, comm, &message, &status[0]);
          if (extra) MPI_Mrecv(got, form.count, form.type, &message, &status[0]);
          else MPI_Imrecv(got, form.count, form.type, &message, &request[0]);
          break;
      }
      if (receive == 1) MPI_Request_get_status(request[0], &flag, &status[0]);
      int const open = (request[0] != MPI_REQUEST_NULL) + (request[1] != MPI_REQUEST_NULL);
      if (open == 2) complete(way, request, 2, status);
      if (open == 1 && request[0] != MPI_REQUEST_NULL) complete(way, request, 1, status);
      if (open == 1 && request[1] != MPI_REQUEST_NULL) complete(way, request + 1, 1, status + 1);
      for (int i = 0; i < 2; ++i)
        if (kept[i] != MPI_REQUEST_NULL) MPI_Request_free(&kept[i]);
    }
    (void)replaced;
    fill(expected, &form, round, before);
    int count = 0, bytes = 0, unit;
    MPI_Get_count(&status[0], form.type, &count);
    MPI_Get_elements(&status[0], MPI_BYTE, &bytes);
    MPI_Type_size(form.type, &unit);
    if (memcmp(in, expected, room + 2 * margin) != 0 || count != form.count || bytes != unit * form.count ||
        status[0].MPI_SOURCE != before || status[0].MPI_TAG != tag) {
      long at = 0;
      while (at < room + 2 * margin && in[at] == expected[at]) ++at;
      fprintf(stderr, "round %ld rank %d (receive %d, send %d, way %d): first wrong byte %ld, count %d of %d, bytes %d, source %d of %d, tag %d of %d\n",
              round, rank, receive, send, way, at - margin, count, form.count, bytes, status[0].MPI_SOURCE, before, status[0].MPI_TAG, tag);
      wrong = 1;
    }
    MPI_Type_free(&form.type);
    messages += size;
    MPI_Barrier(comm); /* wildcards of the next round must not meet this one */
    if (wrong) break;
  }
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("messages %ld wrong %d\n", messages, all_wrong);
  MPI_Comm_free(&comms[1]);
  MPI_Finalize();
  return all_wrong;
}
