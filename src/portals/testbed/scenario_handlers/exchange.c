/* Writes each packet's bytes, by exclusive or with those of a peer's entry at the same offset, and adds 1 to both words
 * of another entry of the peer. Constants: the peer's rank, the match bits of its first entry; those of the other entry
 * are one more. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  const uint32_t* const constants = spl_constants();
  uint8_t theirs[512];
  uint64_t one = 1;
  uint64_t before = 1;
  ptl_process_t peer = {{0, 0}};
  peer.rank = constants[0];
  (void)state;
  if (p.length > sizeof theirs) return FAIL;
  int result = PtlHandlerGetFromDevice(theirs, p.length, peer, constants[1], p.offset);
  if (result != SUCCESS) return result;
  for (uint32_t i = 0; i < p.length; ++i) theirs[i] ^= p.base[i];
  result = PtlHandlerDMAToHostB(theirs, p.offset, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT);
  if (result != SUCCESS) return result;
  result = PtlHandlerAtomicFromDevice(&one, sizeof one, 0, PTL_NO_ACK_REQ, peer, constants[1] + 1, 0, NULL, 0, PTL_SUM,
                                      PTL_UINT64_T);
  if (result != SUCCESS) return result;
  result =
      PtlHandlerFetchAtomicFromDevice(&before, sizeof before, peer, constants[1] + 1, 8, 0, 0, PTL_SUM, PTL_UINT64_T);
  return result != SUCCESS || before > 1000 ? FAIL : SUCCESS;
}
