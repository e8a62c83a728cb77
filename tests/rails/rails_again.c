/* Long messages between rank 0 and rank 1 while a rail is lost, and comes back.
 *
 * Both read the other's messages in turn, with every byte compared. Rank 1 says "going" after some messages, "lost"
 * when the second rail does not reach rank 0 any more, and "again" when it does. They go on until the rail has since
 * then carried the bytes of four messages to each. */
#include "rails_common.h"

static void move(unsigned from, uint64_t tag, void* memory, uint64_t bytes) {
  spl_rails_request request;
  if (my_rank == from) {
    OK(spl_rails_send(rails, memory, bytes, 1 - from, tag, &request));
  } else {
    OK(spl_rails_receive(rails, memory, bytes, from, tag, 0, &request));
  }
  OK(spl_rails_wait(rails, request, NULL));
}

int main(void) {
  const uint64_t bytes = 4 << 20;
  begin();
  OK(spl_rails_open(ni, NULL, &rails));
  unsigned char* const memory = some_memory(bytes);
  uint64_t before = 0;
  int was_lost = 0, again = 0;
  unsigned char done[2] = {0, 0};
  for (uint64_t number = 0; !done[0] || !done[1]; ++number) {
    const unsigned from = (unsigned)(number % 2);
    if (my_rank == from) {
      fill(memory, number, bytes);
    } else {
      memset(memory, 0, bytes);
    }
    move(from, 1, memory, bytes);
    if (my_rank != from) CHECK_BYTES(memory, number, bytes);
    if (my_rank == 1 && number == 20) printf("going\n"), fflush(stdout);
    int reaches = 0;
    spl_rails_fact fact;
    OK(spl_rails_reaches(rails, 1, 1 - my_rank, &reaches));
    OK(spl_rails_describe(rails, 1, &fact));
    if (!was_lost && !reaches) {
      was_lost = 1;
      if (my_rank == 1) printf("lost\n"), fflush(stdout);
    }
    if (was_lost && !again && reaches) {
      again = 1;
      before = fact.carried_bytes;
      if (my_rank == 1) printf("again\n"), fflush(stdout);
    }
    if (again && fact.carried_bytes > before + 4 * bytes) done[my_rank] = 1;
    move(0, 2, &done[0], 1);
    move(1, 2, &done[1], 1);
  }
  if (my_rank == 1) printf("carried\n");
  OK(spl_rails_close(rails));
  return end();
}
