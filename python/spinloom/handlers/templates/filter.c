/* Lets through the records that a predicate takes, and drops the others: what a database would push to its NIC.
 *
 * A record is 8 bytes: a 32-bit key and a 32-bit value. Those whose key is below the limit (first constant) go to the
 * entry's memory, one behind the other, in any order; the state counts them. A record must not be cut in two by the
 * end of a packet, so a packet is a whole number of records; what is left of a message's end is dropped.
 */
#include "spinloom/handler.h"

#define RECORDS_MAX 512 /* the records of a packet of 4 KiB, which fit on the stack */

typedef struct {
  uint32_t key;
  uint32_t value;
} record;

typedef struct {
  uint64_t taken; /* records in the entry's memory */
} filter_state;

int payload_handler(const ptl_payload_t p, void *state) {
  filter_state *const kept = state;
  const uint32_t limit = *(const uint32_t *)spl_constants();
  const record *const came = (const record *)p.base;
  record taken[RECORDS_MAX];
  const uint32_t count = (uint32_t)p.length / sizeof(record);
  uint32_t n = 0;
  if (count > RECORDS_MAX) return FAIL;
  for (uint32_t i = 0; i < count; ++i) {
    if (came[i].key < limit) taken[n++] = came[i];
  }
  if (n == 0) return SUCCESS;
  /* Room for n records: no other handler gets the same. */
  uint64_t first = 0;
  PtlHandlerFAdd(&kept->taken, &first, n);
  /* From the stack, so it blocks: the bytes have been read when it returns. */
  return PtlHandlerDMAToHostB(taken, first * sizeof(record), n * sizeof(record), PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  const filter_state *const kept = state;
  (void)dropped_bytes;
  (void)flow_control_triggered;
  spl_debug("records taken", (uint32_t)kept->taken);
  return SUCCESS;
}
