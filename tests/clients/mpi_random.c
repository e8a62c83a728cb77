/* Random messages between all pairs of ranks: datatypes of both ends, lengths, tags, ways to send and to receive.
 *
 * argv[1]: rounds (40), argv[2]: seed (1). All ranks draw the same plan; the bytes of each message are its own.
 */
#include "mpi_types.h"

enum { messages = 24, tags = 5 };

typedef struct {
  int from, to, tag, way, elements;
  uint64_t key, seed_out, seed_in;
} plan_t;

static int length_of(uint64_t* state) {
  const int kind = below(state, 10);
  if (kind < 5) return 1 + below(state, 64);
  if (kind < 8) return 1 + below(state, 4096);
  return 1 + below(state, 60000);
}

static void send_it(const plan_t* plan, const unsigned char* from, MPI_Datatype type, MPI_Request* request) {
  switch (plan->way) {
    case 0: MPI_Issend(from, 1, type, plan->to, plan->tag, MPI_COMM_WORLD, request); break;
    case 1: MPI_Ibsend(from, 1, type, plan->to, plan->tag, MPI_COMM_WORLD, request); break;
    default: MPI_Isend(from, 1, type, plan->to, plan->tag, MPI_COMM_WORLD, request); break;
  }
}

static void exchange(uint64_t* state) {
  plan_t plans[messages];
  layout_t out[messages], in[messages];
  unsigned char *sent[messages], *received[messages];
  MPI_Request requests[2 * messages];
  int count = 0;
  for (int i = 0; i < messages; ++i) {
    plan_t* plan = &plans[i];
    plan->from = below(state, ranks);
    plan->to = below(state, ranks);
    plan->tag = below(state, tags);
    plan->way = below(state, 6);
    plan->elements = length_of(state);
    plan->key = drawn(state);
    plan->seed_out = drawn(state) >> 1;
    plan->seed_in = drawn(state) >> 1;
  }
  const int late = below(state, 3); /* receives: before, after, or after a pause of the others */
  for (int turn = 0; turn < 2; ++turn) {
    const int receives = (turn == 0) == (late == 0);
    for (int i = 0; i < messages; ++i) {
      plan_t* plan = &plans[i];
      if (receives && plan->to == rank) {
        in[i] = make_layout(&plan->seed_in, plan->elements);
        received[i] = memory(in[i].span);
        memset(received[i], 0xa5, in[i].span);
        MPI_Irecv(received[i], 1, in[i].type, plan->from, plan->tag, MPI_COMM_WORLD, &requests[count++]);
      }
      if (!receives && plan->from == rank) {
        out[i] = make_layout(&plan->seed_out, plan->elements);
        sent[i] = laid_out(&out[i], plan->key, 0x5a);
        send_it(plan, sent[i], out[i].type, &requests[count++]);
      }
    }
    if (turn == 0 && late == 2) MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < messages; ++i) {
    if (plans[i].to == rank) {
      expect(__LINE__, "the first wrong byte of a message", -1, misplaced(&in[i], received[i], plans[i].key, 0xa5));
      drop_layout(&in[i]);
      free(received[i]);
    }
    if (plans[i].from == rank) {
      expect(__LINE__, "the first wrong byte at the sender", -1, misplaced(&out[i], sent[i], plans[i].key, 0x5a));
      drop_layout(&out[i]);
      free(sent[i]);
    }
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int rounds = argc > 1 ? atoi(argv[1]) : 40;
  uint64_t state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) << 32;
  const int room = messages * (60000 * 4 + MPI_BSEND_OVERHEAD + 64);
  void* buffer = memory((uint64_t)room);
  MPI_Buffer_attach(buffer, room);
  for (int round = 0; round < rounds; ++round) exchange(&state);
  int detached = 0;
  MPI_Buffer_detach(&buffer, &detached);
  free(buffer);
  return end();
}
