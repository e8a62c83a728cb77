/* Long messages from rank 0 to rank 1 while a rail is away for a while.
 *
 * Usage: rails_return FILE. Rank 1, which reads the bytes, says "going" after some messages. FILE is made when the rail
 * is there again. "back": rail 1 has carried the bytes of four messages since then. Every byte is compared. */
#include "rails_common.h"

static uint64_t carried_by_the_second(void) {
  spl_rails_fact fact;
  OK(spl_rails_describe(rails, 1, &fact));
  return fact.carried_bytes;
}

int main(int argc, char** argv) {
  if (argc != 2) return 3;
  const uint64_t bytes = 4 << 20;
  begin();
  OK(spl_rails_open(ni, NULL, &rails));
  unsigned char* const memory = some_memory(bytes);
  uint64_t before = 0;
  int was_away = 0;
  for (uint64_t number = 0, more = 1; more != 0; ++number) {
    spl_rails_request request;
    unsigned char word = 1;
    if (my_rank == 0) {
      fill(memory, number, bytes);
      OK(spl_rails_send(rails, memory, bytes, 1, 1, &request));
      OK(spl_rails_wait(rails, request, NULL));
      OK(spl_rails_receive(rails, &word, 1, 1, 2, 0, &request));
    } else {
      memset(memory, 0, bytes);
      OK(spl_rails_receive(rails, memory, bytes, 0, 1, 0, &request));
      OK(spl_rails_wait(rails, request, NULL));
      CHECK_BYTES(memory, number, bytes);
      const uint64_t carried = carried_by_the_second();
      if (number == 20) printf("going\n"), fflush(stdout);
      if (!was_away && access(argv[1], F_OK) == 0) was_away = 1, before = carried;
      if (was_away && carried > before + 4 * bytes) word = 0;
      OK(spl_rails_send(rails, &word, 1, 0, 2, &request));
    }
    OK(spl_rails_wait(rails, request, NULL));
    more = word;
  }
  uint64_t repeated = 0;
  OK(spl_rails_repeated(rails, &repeated));
  EXPECT(0, repeated);
  if (my_rank == 1) printf("back\n");
  OK(spl_rails_close(rails));
  return end();
}
