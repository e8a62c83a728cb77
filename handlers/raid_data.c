/* A data node of a RAID-5 array: writes, reads, and what its parity node acknowledges, without the host.
 *
 * Contract: the entry's memory is the node's blocks; a client has entries of its own for its writes and reads, and one
 * write under way. Constants: raid_data_constants; `role` says what the entry is for.
 *   write: each packet is exchanged with the old bytes in host memory, and their exclusive or, the delta, goes on to
 *     the parity node, to the same offset, as a message of its own. The client hears of it when the parity node has
 *     acknowledged every byte: an empty message to answer_bits that carries the write's header data.
 *   read: the message is 8 bytes, the length of the piece at the message's offset; it is put to offset 0 of the
 *     client's entry at answer_bits, with the request's header data. user_header_bytes of the context is 8.
 *   acknowledged: the parity node's messages; their header data is how many bytes they acknowledge. The context shares
 *     the state of the write's.
 * A write or a read that is not inside the first block_bytes of the entry fails as a whole. State: 24 bytes.
 * Source: SC'17 sPIN paper, section 5.3.
 */
#include "raid.h"

enum {
  ROLE_WRITE = 0,
  ROLE_READ = 1,
  ROLE_ACKNOWLEDGED = 2
};

typedef struct {
  uint32_t role;
  uint32_t block_bytes;
  uint32_t parity_rank; /* write */
  uint32_t parity_bits; /* write: match bits of the entry for this node and client at the parity node */
  uint32_t answer_bits; /* match bits of the client's entry for what comes back */
} raid_data_constants;

typedef struct {
  uint64_t pending_bytes; /* bytes that the parity node has not yet acknowledged */
  uint64_t tag;           /* the write's header data */
  uint32_t client;
} raid_data_state;

static const raid_data_constants *constants(void) { return spl_constants(); }

static int acknowledge(const raid_data_state *kept) {
  return PtlHandlerPutFromDevice(NULL, 0, 0, PTL_NO_ACK_REQ, raid_rank(kept->client), constants()->answer_bits, 0, NULL,
                                 kept->tag);
}

/* The code of a header handler that has done all there is to do. */
static int ended(int call) { return call == SUCCESS ? DROP : call; }

static bool inside(ptl_size_t offset, ptl_size_t length) {
  return offset <= constants()->block_bytes && length <= constants()->block_bytes - offset;
}

static int serve_write(const ptl_header_t *h, raid_data_state *kept) {
  if (!inside(h->offset, h->length)) return SEGV;
  kept->pending_bytes = h->length;
  kept->tag = h->hdr_data;
  kept->client = h->source_id.rank;
  return h->length > 0 ? PROCESS_DATA : ended(acknowledge(kept));
}

static int serve_read(const ptl_header_t *h) {
  const uint64_t *const length = h->user_hdr;
  if (h->user_hdr_length < sizeof *length) return FAIL;
  if (!inside(h->offset, *length)) return SEGV;
  return ended(PtlHandlerPutFromHost(h->offset, *length, 0, PTL_NO_ACK_REQ, h->source_id, constants()->answer_bits, 0,
                                     NULL, h->hdr_data));
}

static int serve_acknowledgement(const ptl_header_t *h, raid_data_state *kept) {
  uint64_t before = 0;
  const int counted = PtlHandlerFAdd(&kept->pending_bytes, &before, -h->hdr_data);
  if (counted != SUCCESS) return counted;
  return before == h->hdr_data ? ended(acknowledge(kept)) : DROP;
}

int header_handler(const ptl_header_t h, void *state) {
  switch (constants()->role) {
    case ROLE_WRITE: return serve_write(&h, state);
    case ROLE_READ: return serve_read(&h);
    case ROLE_ACKNOWLEDGED: return serve_acknowledgement(&h, state);
    default: return FAIL;
  }
}

int payload_handler(const ptl_payload_t p, void *state) {
  uint32_t delta[RAID_PACKET_BYTES / sizeof(uint32_t)];
  const ptl_size_t at = p.entry_offset + p.offset;
  (void)state;
  if (p.length > sizeof delta) return FAIL;
  const int fetched = PtlHandlerDMAFromHostB(at, delta, p.length, PTL_ME_HOST_MEM);
  if (fetched != SUCCESS) return fetched;
  const int stored = PtlHandlerDMAToHostNB(p.base, at, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
  if (stored != SUCCESS) return stored;
  raid_xor(delta, p.base, (uint32_t)p.length);
  return PtlHandlerPutFromDevice(delta, p.length, 0, PTL_NO_ACK_REQ, raid_rank(constants()->parity_rank),
                                 constants()->parity_bits, at, NULL, 0);
}
