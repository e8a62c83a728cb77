/* Adds up vectors of several senders, UDP frame by UDP frame, and sends each of them the sum when all have come.
 *
 * Contract: a datagram is reduce_part and `words` words of 32 bits, which are added modulo 2^32. Sender s sends each
 *   block once; block b has slot b % slots, and blocks of one slot follow each other: the next is taken when the sum of
 *   the one before has been sent. A frame of another block, and a second one of the same sender, is dropped; one that
 *   is no part, or whose numbers do not fit, is for the host's stack. Constants: reduce_constants. State: reduce_slot
 *   for each slot, zero at the beginning.
 * Invariants: (1) `round`, a word, says for which block of the slot who has come; who sets his bit in it adds; (2) who
 *   adds last sends the sums and begins the next round. Threads: any number of handlers.
 */
#include "udp_service.h"

#define SENDERS 16u
#define WORDS 344u /* a frame's worth */

typedef struct {
  uint32_t senders, words, slots;
} reduce_constants;

typedef struct {
  uint32_t block;
  uint16_t sender;
  uint16_t words;
} __attribute__((packed)) reduce_part;
typedef struct {
  uint32_t value;
} __attribute__((packed)) word;

typedef struct {
  uint32_t round; /* number of the block in this slot, its lower 16 bits above; a bit for each sender below */
  uint32_t added;
  uint32_t sums[WORDS];
  udp_headers senders[SENDERS];
  uint8_t answer[sizeof(udp_headers) + sizeof(reduce_part) + WORDS * sizeof(uint32_t)];
} reduce_slot;

/* True if this part is the first of its sender for the block that the slot is at. The slot then records the sender. */
static bool joins(reduce_slot *slot, uint32_t round, uint32_t sender) {
  uint32_t seen = __atomic_load_n(&slot->round, __ATOMIC_ACQUIRE);
  do {
    if (seen >> 16 != (round & 0xffffu) || (seen >> sender & 1) != 0) return false;
  } while (!__atomic_compare_exchange_n(&slot->round, &seen, seen | 1u << sender, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE));
  return true;
}

static int answer_all(reduce_slot *slot, const reduce_constants *given, const reduce_part *part) {
  const uint32_t bytes = given->words * (uint32_t)sizeof(uint32_t);
  udp_headers *const headers = (udp_headers *)slot->answer;
  reduce_part *const told = (reduce_part *)(headers + 1);
  int result = SUCCESS;
  told->block = part->block;
  told->words = part->words;
  memcpy(told + 1, slot->sums, bytes);
  for (uint32_t sender = 0; sender < given->senders; ++sender) {
    ptl_dma_h sent;
    *headers = slot->senders[sender];
    udp_answer(headers, sizeof *told + bytes);
    told->sender = (uint16_t)sender;
    const int code = spl_send_frame(slot->answer, sizeof *headers + sizeof *told + bytes, &sent);
    (void)PtlHandlerDMAWait(sent); /* the next answer lies in the same place */
    if (code != SUCCESS) result = code;
  }
  return result;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const reduce_constants *const given = spl_constants();
  uint32_t bytes;
  const reduce_part *const part = (const reduce_part *)udp_payload(sizeof *part, &bytes);
  if (part == NULL || part->sender >= given->senders || part->words != given->words) return PROCEED;
  if (given->senders > SENDERS || given->words > WORDS) return FAIL;
  if (bytes - sizeof *part < given->words * sizeof(uint32_t)) return PROCEED;
  reduce_slot *const slot = (reduce_slot *)state + part->block % given->slots;
  const uint32_t round = part->block / given->slots;
  if (!joins(slot, round, part->sender)) return DROP;
  slot->senders[part->sender] = *(const udp_headers *)spl_frame();
  const word *const words = (const word *)(part + 1);
  for (uint32_t i = 0; i < given->words; ++i) __atomic_fetch_add(&slot->sums[i], words[i].value, __ATOMIC_RELAXED);
  if (__atomic_fetch_add(&slot->added, 1u, __ATOMIC_ACQ_REL) + 1 < given->senders) return SUCCESS;
  const int result = answer_all(slot, given, part);
  memset(slot->sums, 0, sizeof slot->sums);
  slot->added = 0;
  __atomic_store_n(&slot->round, (round + 1) << 16, __ATOMIC_RELEASE);
  return result;
}
