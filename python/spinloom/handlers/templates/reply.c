/* Answers each message from the NIC: every byte of it, with upper and lower case exchanged.
 *
 * The header handler keeps who asked; payload handlers make the answer of their packet on the stack and put it back at
 * the packet's offset. Nothing reaches the host's memory: it sees that a message came and was answered.
 */
#include "spinloom/handler.h"

#define PACKET_BYTES_MAX 4096 /* the most that fits on the stack */

typedef struct {
  ptl_process_t asked_by;
} reply_state;

int header_handler(const ptl_header_t h, void *state) {
  reply_state *const kept = state;
  kept->asked_by = h.source_id;
  return PROCESS_DATA;
}

static uint8_t exchanged(uint8_t byte) {
  const uint8_t lower = byte | 0x20;
  return lower >= 'a' && lower <= 'z' ? byte ^ 0x20 : byte;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const reply_state *const kept = state;
  uint8_t answer[PACKET_BYTES_MAX];
  if (p.length > sizeof answer) return FAIL;
  for (uint32_t i = 0; i < p.length; ++i) answer[i] = exchanged(p.base[i]);
  const ptl_match_bits_t match_bits = 2;
  return PtlHandlerPutFromDevice(answer, p.length, 0, PTL_NO_ACK_REQ, kept->asked_by, match_bits, p.offset, NULL, 0);
}
