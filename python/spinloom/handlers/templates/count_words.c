/* Counts the words of the messages that come: runs of bytes other than blanks (space, tab, line feed, ...).
 *
 * The payload handler runs once for each packet, on any processor, in any order; packets of one message may be worked
 * on at the same time. So a word that goes on in the next packet must be counted once whichever packet is first: a word
 * belongs to the packet that holds its first byte, and whether a packet's first byte begins a word can only be said by
 * who knows the byte before it. Each packet leaves two bits for that in the state; the completion handler puts the
 * pieces together. The message itself lands in the entry's memory as it would without handlers. One message at a time.
 */
#include "spinloom/handler.h"

#define PACKETS_MAX 4096 /* packets of a message; 2 bits each */

typedef struct {
  uint64_t words;                     /* the result: of all messages so far */
  uint32_t joints[PACKETS_MAX / 16];  /* bit 0: begins inside a word, bit 1: ends inside one */
} count_state;

/* Constants of the context: the packet size, which the handler cannot know. */
static uint32_t packet_bytes(void) { return *(const uint32_t *)spl_constants(); }

static int is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

int payload_handler(const ptl_payload_t p, void *state) {
  count_state *const kept = state;
  const uint32_t packet = (uint32_t)p.offset / packet_bytes();
  if (packet >= PACKETS_MAX) return FAIL;
  uint32_t words = 0;
  int inside = 0;
  for (uint32_t i = 0; i < p.length; ++i) {
    const int blank = is_blank(p.base[i]);
    words += !blank && !inside;
    inside = !blank;
  }
  const uint32_t joint = (uint32_t)!is_blank(p.base[0]) | (uint32_t)inside << 1;
  /* Other processors use the same word of the state at the same time: that is what atomics are for. */
  __atomic_fetch_or(&kept->joints[packet / 16], joint << packet % 16 * 2, __ATOMIC_RELAXED);
  PtlHandlerFAdd(&kept->words, NULL, words);
  return PtlHandlerDMAToHostNB(p.base, p.offset, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
}

/* Runs when all packets of the message are done: a word over a joint was counted twice. */
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  count_state *const kept = state;
  uint32_t twice = 0;
  uint32_t inside = 0; /* bit 1 of the packet before */
  (void)dropped_bytes;
  (void)flow_control_triggered;
  for (uint32_t i = 0; i < PACKETS_MAX / 16; ++i) {
    uint32_t word = kept->joints[i];
    kept->joints[i] = 0; /* the next message finds none */
    if (word == 0) {
      inside = 0;
      continue;
    }
    for (uint32_t packet = 0; packet < 16; ++packet, word >>= 2) {
      twice += inside & word & 1;
      inside = word >> 1 & 1;
    }
  }
  kept->words -= twice;
  spl_debug("words so far", (uint32_t)kept->words);
  return SUCCESS;
}
