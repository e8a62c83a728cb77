/* The handler interface of an Ethernet NIC: the additions to spinloom/handler.h for handlers of frames.
 *
 * Contract: a source defines any of header_handler, payload_handler and completion_handler as for messages of Portals
 * (spinloom/handler.h), and
 *     int initialise_handler(void *state);
 *     int mail_handler(const spl_mail_t mail, void *state);
 * h.user_hdr of the header handler and p.base of the payload handler point to the whole frame that a rule set has
 * taken, from the Ethernet header on; completion handlers have the last frame of their message. spl_frame() names the
 * frame in each handler. It may be changed in place: the slot belongs to the handler until the handler returns.
 * Host memory of a call is that of the context: PTL_HANDLER_HOST_MEM and PTL_ME_HOST_MEM mean the same. There are no
 * events, counters, puts or gets. docs/ethernet.md says what follows each return code.
 *
 * Sources: FPsPIN, deliverable D4.7 of RED-SEA, sections 4.2 to 4.4; PsPIN's runtime.
 */
#ifndef SPINLOOM_FRAME_H
#define SPINLOOM_FRAME_H

#include "spinloom/handler.h"

#define SPL_HOST_HPUS 32u          /* HPUs that can have a page in host memory */
#define SPL_HOST_PAGE_BYTES 4096u
#define SPL_HOST_PAGE_PAYLOAD 64u  /* the place of a request's payload in its page */
#define SPL_HOST_COUNTERS 16u
#define SPL_HOST_RING_OFFSET (SPL_HOST_HPUS * SPL_HOST_PAGE_BYTES) /* the ring of notices, behind the pages */
#define SPL_HOST_RING_NOTICES 256u
#define SPL_HOST_BYTES (SPL_HOST_RING_OFFSET + SPL_HOST_RING_NOTICES * 16u) /* pages and ring; what follows is free */

/* The first member of the state of a context whose handlers ask the host or count. The host reads and writes it. */
struct spl_host_data {
  uint64_t response[SPL_HOST_HPUS]; /* the host's answer to each HPU */
  uint64_t request[SPL_HOST_HPUS];  /* each HPU's newest request */
  struct {
    uint32_t sum;
    uint32_t count;
  } counter[SPL_HOST_COUNTERS];
  uint32_t notices_sent;
  uint32_t notices_read; /* the host writes it */
};

/* An entry of the ring of notices; written in two parts, the sequence number last. */
struct spl_host_notice {
  uint64_t argument;
  uint32_t value;
  uint32_t sequence; /* counts from 1 */
};

/* A request or a response in 64 bits: an identifier that counts, a length or any 32-bit value, the HPU. */
#define SPL_HOST_FLAG(id, length, hpu) \
  ((uint64_t)(uint8_t)(id) | (uint64_t)(uint32_t)(length) << 8 | (uint64_t)(uint16_t)(hpu) << 40)
#define SPL_HOST_FLAG_ID(flag) ((uint8_t)(flag))
#define SPL_HOST_FLAG_LENGTH(flag) ((uint32_t)((flag) >> 8))
#define SPL_HOST_FLAG_HPU(flag) ((uint16_t)((flag) >> 40))

/* Headers as they lie in a frame: fields of more than one byte are in network order (spl_net16, spl_net32). They lie at
 * even offsets, as those of Ethernet, IPv4 and UDP do. */
#define SPL_HEADER __attribute__((packed, aligned(2)))
typedef struct {
  uint8_t destination[6];
  uint8_t source[6];
  uint16_t type;
} SPL_HEADER spl_eth_t;
typedef struct {
  uint8_t version_words; /* version in the upper half, length of the header in words in the lower */
  uint8_t service;
  uint16_t length; /* the bytes of header and payload */
  uint16_t identification;
  uint16_t fragment;
  uint8_t time_to_live;
  uint8_t protocol;
  uint16_t checksum;
  uint32_t source;
  uint32_t destination;
} SPL_HEADER spl_ipv4_t;
typedef struct {
  uint16_t source;
  uint16_t destination;
  uint16_t length; /* the bytes of header and payload */
  uint16_t checksum;
} SPL_HEADER spl_udp_t;
typedef struct {
  uint8_t type;
  uint8_t code;
  uint16_t checksum;
  uint16_t identifier;
  uint16_t sequence;
} SPL_HEADER spl_icmp_t;
typedef struct {
  uint16_t hardware, protocol;
  uint8_t hardware_bytes, protocol_bytes;
  uint16_t operation; /* 1 asks, 2 answers */
  uint8_t sender[6];
  uint32_t sender_ip;
  uint8_t target[6];
  uint32_t target_ip;
} SPL_HEADER spl_arp_t;
/* sPIN lightweight message protocol, in the payload of UDP (deliverable D4.7, section 4.4.1). */
typedef struct {
  uint16_t flags;
  uint32_t message;
  uint32_t offset; /* the place of the payload in its message */
} SPL_HEADER spl_slmp_t;
#define SPL_SLMP_EOM 0x8000u
#define SPL_SLMP_SYN 0x4000u
#define SPL_SLMP_ACK 0x2000u
#define SPL_SLMP_REPORT 0x1000u /* ours (docs/slmp.md): the acknowledgement says how many packets there is room for */
#define SPL_SLMP_PORT 9330u

/* The addresses for which a handler answers: constants of the shipped handlers that answer frames. */
typedef struct {
  uint8_t mac[6];
  uint16_t unused;
  uint32_t ip; /* the network's byte order; 0: any */
} spl_station_t;

/* Between network order and that of the handler's processor, both ways. */
static inline uint16_t spl_net16(uint16_t value) { return (uint16_t)(value >> 8 | value << 8); }
static inline uint32_t spl_net32(uint32_t value) {
  return value >> 24 | (value >> 8 & 0xff00u) | (value & 0xff00u) << 8 | value << 24;
}

/* A request of another context's handler. Mail has no frame. */
typedef struct {
  uint64_t argument;
  uint32_t value;
  uint32_t context; /* the context of the handler that has sent it */
} spl_mail_t;

#if !defined(__cplusplus)
int initialise_handler(void *state);
int mail_handler(const spl_mail_t mail, void *state);
#endif

#if defined(__riscv) || !defined(__cplusplus)

#if defined(__riscv)
static inline uint8_t *spl_frame(void) { return (uint8_t *)SPL_HPU_PACKET_BASE; }
static inline uint32_t spl_frame_bytes(void) { return spl_window()[SPL_CMD_FRAME_BYTES / 4]; }
static inline uint32_t spl_frame_message(void) { return spl_window()[SPL_CMD_MESSAGE / 4]; }
static inline uint32_t spl_frame_rule_set(void) { return spl_window()[SPL_CMD_RULE_SET / 4]; }
static inline uint32_t spl_frame_flags(void) { return spl_window()[SPL_CMD_FLAGS / 4]; }
#else
static inline uint8_t *spl_frame(void) { return spl_hpu_at_hand->frame; }
static inline uint32_t spl_frame_bytes(void) { return spl_hpu_at_hand->frame_bytes; }
static inline uint32_t spl_frame_message(void) { return spl_hpu_at_hand->message; }
static inline uint32_t spl_frame_rule_set(void) { return spl_hpu_at_hand->rule_set; }
static inline uint32_t spl_frame_flags(void) { return spl_hpu_at_hand->flags; }
#endif

/* Sends len bytes as a frame; returns at once. *h names the send (PtlHandlerDMATest, PtlHandlerDMAWait); NULL: nobody
 * waits for it. The frame lies in packet memory or in the state, and stays as it is until it has been sent: a slot of
 * packet memory is kept by itself. SEGV, and nothing is sent, if it lies elsewhere or has no possible length. */
static inline int spl_send_frame(const void *frame, uint32_t len, ptl_dma_h *h) {
  __asm__ volatile("" ::: "memory"); /* the frame has been written before it is read */
  spl_local(1, frame);
  spl_word(4, len);
  return spl_started(spl_issue(SPL_CALL_SEND_FRAME), h);
}

/* Runs the mail handler of a context, some time later, on any of its HPUs. FAIL, and nothing is sent, if that context
 * is not active, has no mail handler, or has too much mail already: a handler that needs the mail tries again at the
 * next frame. */
static inline int spl_mail(uint32_t context, uint32_t value, uint64_t argument) {
  spl_word(1, context);
  spl_word64(2, argument);
  spl_word(4, value);
  return (int)spl_issue(SPL_CALL_MAIL);
}

/* A count of the NIC or of the handler's context, or the number of free packet slots; its lower 32 bits. */
static inline uint32_t spl_telemetry(uint32_t which) {
  spl_word(1, which);
  return spl_issue(SPL_CALL_TELEMETRY);
}

/* Adds a value to one of the counters that the host reads: their sum, and how many there were. */
static inline void spl_count(struct spl_host_data *host, unsigned counter, uint32_t value) {
  __atomic_fetch_add(&host->counter[counter].sum, value, __ATOMIC_RELAXED);
  __atomic_fetch_add(&host->counter[counter].count, 1u, __ATOMIC_RELAXED);
}

/* Asks the host and waits for its answer, a 32-bit value. The request's payload has been copied to this HPU's page of
 * host memory, from SPL_HOST_PAGE_PAYLOAD on. The host may change it before it answers. */
static inline uint32_t spl_host_request(struct spl_host_data *host, uint32_t length) {
  const uint32_t hpu = PTL_MY_HPU;
  const uint8_t id = (uint8_t)(host->request[hpu] + 1);
  host->request[hpu] = SPL_HOST_FLAG(id, length, hpu);
  (void)PtlHandlerDMAToHostB(&host->request[hpu], (ptl_size_t)hpu * SPL_HOST_PAGE_BYTES, 8, PTL_HANDLER_HOST_MEM);
  const volatile uint32_t *answer = (const volatile uint32_t *)&host->response[hpu];
  while ((uint8_t)answer[0] != id) PtlHandlerYield();
  return answer[0] >> 8 | answer[1] << 24; /* the host writes all 64 bits at once */
}

/* Tells the host something and goes on; the host takes notices from a ring. FAIL, and nothing is told, if the host has
 * not read SPL_HOST_RING_NOTICES of them. */
static inline int spl_host_notify(struct spl_host_data *host, uint32_t value, uint64_t argument) {
  const volatile uint32_t *read = &host->notices_read;
  uint32_t sent = __atomic_load_n(&host->notices_sent, __ATOMIC_RELAXED);
  do {
    if (sent - *read >= SPL_HOST_RING_NOTICES) return FAIL;
  } while (!__atomic_compare_exchange_n(&host->notices_sent, &sent, sent + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  const struct spl_host_notice notice = {argument, value, sent + 1};
  const ptl_size_t at = SPL_HOST_RING_OFFSET + (ptl_size_t)(sent % SPL_HOST_RING_NOTICES) * sizeof notice;
  (void)PtlHandlerDMAToHostB(&notice.argument, at, 8, PTL_HANDLER_HOST_MEM);
  return PtlHandlerDMAToHostB(&notice.value, at + 8, 8, PTL_HANDLER_HOST_MEM);
}

/* The Internet checksum's sum (RFC 1071) of len bytes, added to `sum`; spl_checksum() ends it. In network order. */
static inline uint32_t spl_checksum_add(uint32_t sum, const void *bytes, uint32_t len) {
  const uint8_t *at = (const uint8_t *)bytes;
  for (; len >= 2; len -= 2, at += 2) sum += (uint32_t)at[0] | (uint32_t)at[1] << 8;
  if (len > 0) sum += at[0];
  return sum;
}
static inline uint16_t spl_checksum(uint32_t sum) {
  sum = (sum & 0xffffu) + (sum >> 16);
  sum = (sum & 0xffffu) + (sum >> 16);
  return (uint16_t)~sum;
}
/* The checksum after one 16-bit word of what it covers has changed (RFC 1624, equation 3). In network order. */
static inline uint16_t spl_checksum_update(uint16_t checksum, uint16_t before, uint16_t after) {
  return spl_checksum((uint32_t)(uint16_t)~checksum + (uint16_t)~before + after);
}

#endif
#endif
