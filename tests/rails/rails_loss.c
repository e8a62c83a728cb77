/* Long messages from rank 0 to rank 1 until rank 0 has lost a rail, and 20 more; then rank 1 sends 20.
 *
 * Rank 0 says "going" when the first has come, and at the end which rails are left, and whether fragments were
 * repeated. Every byte is compared. */
#include "rails_common.h"

static unsigned left(void) {
  uint32_t count = 0;
  unsigned left = 0;
  OK(spl_rails_count(rails, &count));
  for (uint32_t rail = 0; rail < count; ++rail) {
    int reaches = 0;
    OK(spl_rails_reaches(rails, rail, 1 - my_rank, &reaches));
    left += (unsigned)reaches;
  }
  return left;
}

/* Sends or receives a message with this number, and says whether the sender goes on. */
static int move(unsigned from, uint64_t number, unsigned char* memory, uint64_t bytes, int more) {
  spl_rails_request request;
  unsigned char word = (unsigned char)more;
  if (my_rank == from) {
    fill(memory, number, bytes);
    OK(spl_rails_send(rails, memory, bytes, 1 - from, 1, &request));
    OK(spl_rails_wait(rails, request, NULL));
    OK(spl_rails_send(rails, &word, 1, 1 - from, 2, &request));
  } else {
    memset(memory, 0, bytes);
    OK(spl_rails_receive(rails, memory, bytes, from, 1, 0, &request));
    OK(spl_rails_wait(rails, request, NULL));
    CHECK_BYTES(memory, number, bytes);
    OK(spl_rails_receive(rails, &word, 1, from, 2, 0, &request));
  }
  OK(spl_rails_wait(rails, request, NULL));
  return word;
}

int main(void) {
  const uint64_t bytes = 4 << 20;
  begin();
  OK(spl_rails_open(ni, NULL, &rails));
  unsigned char* const memory = some_memory(bytes);
  const unsigned all = left();
  uint64_t number = 0;
  for (unsigned after = 0, more = 1; more != 0; ++number) {
    if (my_rank == 0 && left() < all) ++after;
    more = (unsigned)move(0, number, memory, bytes, after < 20);
    if (my_rank == 0 && number == 0) printf("going\n"), fflush(stdout);
  }
  for (unsigned i = 0; i < 20; ++i) move(1, ++number, memory, bytes, 1);
  uint64_t repeated = 0;
  OK(spl_rails_repeated(rails, &repeated));
  printf("rank %u: %u of %u rails are left; fragments were%s repeated\n", my_rank, left(), all,
         repeated > 0 ? "" : " not");
  OK(spl_rails_close(rails));
  return end();
}
