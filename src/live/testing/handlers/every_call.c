/* Makes every call of the interface once; the answers decide the return code and the state.
 *
 * Contract: constants: 16 bytes. State: at least 256 bytes. Header: copies its whole argument to the state. */
#include "spinloom/handler.h"

typedef struct {
  uint64_t words[32];
} every_state;

static int failed(int which) { return 100 + which; }

int header_handler(const ptl_header_t h, void* state) {
  uint64_t* const words = ((every_state*)state)->words;
  const uint8_t* const user = h.user_hdr;
  words[0] = h.type;
  words[1] = h.length;
  words[2] = h.target_id.rank;
  words[3] = h.source_id.rank;
  words[4] = h.match_bits;
  words[5] = h.offset;
  words[6] = h.hdr_data;
  words[7] = h.user_hdr_length;
  words[8] = h.user_hdr_length > 0 ? user[h.user_hdr_length - 1] : 0;
  words[9] = PTL_MY_HPU;
  words[10] = PTL_MY_VHPU;
  words[11] = PTL_NUM_HPUS;
  return PROCESS_DATA;
}

int payload_handler(const ptl_payload_t p, void* state) {
  uint64_t* const words = ((every_state*)state)->words;
  const uint8_t* const constants = spl_constants();
  uint64_t mine[4] = {1, 2, 3, 4};
  uint64_t before = 0;
  ptl_dma_h handle = 0;
  ptl_ct_event_t counts = {5, 6};
  ptl_process_t peer = {{0, 0}};
  peer.rank = 3;
  const uint64_t begin = spl_cycles();
  if (PtlHandlerDMAToHostNB(p.base, 8, p.length, PTL_ME_HOST_MEM, &handle) != SUCCESS) return failed(1);
  if (PtlHandlerDMATest(handle) != 1) return failed(2);
  if (PtlHandlerDMAToHostNB(constants, 200, 16, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT, NULL) != SUCCESS)
    return failed(3);
  if (PtlHandlerDMAToHostB(mine, 224, sizeof mine, PTL_DMA_NO_EVENT) != SUCCESS) return failed(4);
  if (PtlHandlerDMAToHostNB(words, 256, 16, PTL_DMA_NO_EVENT, NULL) != SUCCESS) return failed(5);
  if (PtlHandlerDMAFromHostNB(300, &words[4], 24, PTL_ME_HOST_MEM, &handle) != SUCCESS) return failed(6);
  if (PtlHandlerDMAWait(handle) != SUCCESS) return failed(7);
  if (PtlHandlerDMAFromHostB(340, mine, 16, PTL_ME_HOST_MEM) != SUCCESS) return failed(8);
  words[8] = mine[0];
  words[9] = mine[1];
  if (PtlHandlerDMACASNB(400, 1, 2, &words[10], PTL_ME_HOST_MEM, &handle) != SUCCESS) return failed(9);
  if (PtlHandlerDMACASB(408, 1, 2, &before, PTL_ME_HOST_MEM) != SUCCESS) return failed(10);
  if (PtlHandlerDMAFetchAddNB(416, 5, &words[11], 4, PTL_ME_HOST_MEM, NULL) != SUCCESS) return failed(11);
  words[12] = before;
  if (PtlHandlerDMAFetchAddB(424, 5, &before, 8, PTL_ME_HOST_MEM) != SUCCESS) return failed(12);
  words[13] = before;
  words[14] = 7;
  if (PtlHandlerCAS(&words[14], 7, 1ull << 40) != 1) return failed(13);
  if (PtlHandlerCAS(&words[14], 7, 9) != 0) return failed(14);
  if (PtlHandlerFAdd(&words[14], &before, 3) != 0) return failed(15);
  words[15] = before;
  if (PtlHandlerFAdd(&words[14], NULL, 3) != 0) return failed(16);
  PtlHandlerYield();
  if (PtlHandlerPutFromHost(1ull << 33, 1ull << 34, 1, PTL_ACK_REQ, peer, 11, 1ull << 35, NULL, 12) != SUCCESS)
    return failed(17);
  if (PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, peer, 13, 14, (void*)16, 15) != SUCCESS)
    return failed(18);
  if (PtlHandlerGetFromHost(1, 2, 1, peer, 17, 18, NULL, PTL_HANDLER_HOST_MEM) != SUCCESS) return failed(19);
  if (PtlHandlerGetFromDevice(mine, 24, peer, 19, 20) != SUCCESS) return failed(20);
  words[16] = mine[0];
  words[17] = mine[2];
  if (PtlHandlerAtomicFromHost(8, 16, 0, PTL_ACK_REQ, peer, 21, 22, NULL, 23, PTL_SUM, PTL_DOUBLE) != SUCCESS)
    return failed(21);
  if (PtlHandlerAtomicFromDevice(mine, 8, 1, PTL_NO_ACK_REQ, peer, 24, 25, NULL, 26, PTL_BXOR, PTL_UINT64_T) != SUCCESS)
    return failed(22);
  if (PtlHandlerFetchAtomicFromDevice(mine, 8, peer, 27, 28, 29, 30, PTL_CSWAP, PTL_UINT64_T) != SUCCESS)
    return failed(23);
  words[18] = mine[0];
  if (spl_debug("every call", 31) != SUCCESS) return failed(24);
  if (PtlHandlerCTInc(counts) != SUCCESS) return failed(25);
  if (PtlHandlerCTGet(&counts) != SUCCESS) return failed(26);
  words[19] = counts.success;
  counts.failure = 1ull << 36;
  if (PtlHandlerCTSet(counts) != SUCCESS) return failed(27);
  words[20] = p.entry_offset + p.offset;
  words[21] = spl_cycles() >= begin;
  if (PtlHandlerDMAToHostNB(p.base, 1ull << 40, 1, PTL_ME_HOST_MEM, NULL) != SEGV) return failed(28);
  if (PtlHandlerDMAFromHostB(0, (uint8_t*)state + 100000, 8, PTL_ME_HOST_MEM) != SEGV) return failed(29);
  if (PtlHandlerDMAFromHostB(0, NULL, 8, PTL_ME_HOST_MEM) != SEGV) return failed(30);
  return 12345;
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  uint64_t* const words = ((every_state*)state)->words;
  words[22] = (uint32_t)dropped_bytes;
  words[23] = flow_control_triggered;
  (void)spl_issue(0xff); /* stops the handler */
  words[24] = 1;
  return SUCCESS;
}
